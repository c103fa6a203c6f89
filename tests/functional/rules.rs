//! Rules that outlast a question: `policy save` puts them into a file, `why` tells which of them
//! decides (GATE-4, POL-5).

use std::fs;

use palisade_testkit::{Output, World, am_root};
use serde_json::Value;

fn why(world: &World, arguments: &[&str]) -> Output {
    world.sandbox(["why"]).args(arguments).run()
}

#[track_caller]
fn assert_says(output: &Output, code: i32, words: &[&str]) {
    output.assert_code(code);
    for word in words {
        assert!(output.out().contains(word), "no {word:?} in: {}", output.out());
    }
}

const SESSION: &str = "01900000-0000-7000-8000-000000000001";

/// What a session leaves behind whose questions were answered.
fn answered(world: &World, path: &str) {
    let answers = format!(
        r#"[{{"effect": "allow", "path": "{path}", "tree": true, "access": "execute",
             "at": "2026-01-02T03:04:05Z", "by": "terminal"}}]"#
    );
    world.write(format!("home/.local/state/palisade/sessions/{SESSION}.answers.json"), answers);
}

/// Proves: GATE-4 why
#[test]
fn a_path_is_explained_by_its_grant_its_rule_or_the_question() {
    let world = World::new();
    let data = world.write("home/data/a.txt", "a");
    let data = data.to_str().unwrap();
    assert_says(&why(&world, &["/usr/bin/env"]), 0, &["visible, read-only", "system"]);
    assert_says(&why(&world, &["."]), 0, &["visible, writable: project", "preset default:"]);
    assert_says(&why(&world, &["/tmp/x"]), 0, &["private: the run has its own"]);
    assert_says(&why(&world, &["/nowhere/at/all"]), 1, &["neither in the sandbox nor on the host"]);
    assert_says(
        &why(&world, &[data]),
        2,
        &["until you allow it", "denied after 300 s", "/data/**"],
    );
    let quick = why(&world, &["--on-ask", "wait", "--ask-timeout", "20", data]);
    assert_says(&quick, 2, &["denied after 20 s"]);
    assert_says(&why(&world, &["--on-ask", "deny", data]), 1, &["onAsk denies it"]);
    assert_says(&why(&world, &["--blacklist", data, data]), 1, &["it is denied", "--blacklist"]);
    assert_says(&why(&world, &["--ro", data, data]), 0, &["visible, read-only", "--ro"]);
    let policy =
        world.write("p.yaml", "filesystem:\n  rules:\n    - deny: ~/data/\n      by: me\n");
    let denied = why(&world, &["--policy", policy.to_str().unwrap(), data]);
    assert_says(&denied, 1, &["denied by the rule `deny: ", "of the user", "p.yaml:3, by me"]);
    let json = why(&world, &["--json", "--policy", policy.to_str().unwrap(), data]);
    json.assert_code(1);
    let json: Value = serde_json::from_str(&json.out()).unwrap();
    assert_eq!((&json["decision"], &json["effect"]), (&"rule".into(), &"deny".into()));
}

/// Proves: GATE-4 why, FS-2 secret-list
#[test]
fn a_secret_is_named_as_one_and_a_rule_for_its_directory_does_not_open_it() {
    let world = World::new();
    let key = world.write("home/.ssh/id_ed25519", "key");
    let key = key.to_str().unwrap();
    assert_says(&why(&world, &[key]), 2, &["a secret;"]);
    assert!(!why(&world, &[key]).out().contains("would be offered"));
    let directory = world.write("p.yaml", "filesystem:\n  rules:\n    - allow: ~/.ssh/\n");
    assert_says(&why(&world, &["--policy", directory.to_str().unwrap(), key]), 2, &["a secret;"]);
    let exact = world.write("q.yaml", "filesystem:\n  rules:\n    - allow: ~/.ssh/id_ed25519\n");
    assert_says(&why(&world, &["--policy", exact.to_str().unwrap(), key]), 0, &["q.yaml:3"]);
}

/// Proves: POL-5 save, GATE-4 stores
#[test]
fn answers_are_saved_for_the_user_and_nothing_else_in_the_file_moves() {
    let world = World::new();
    world.write("home/tool/bin/run", "x");
    let tool = world.home().join("tool").canonicalize().unwrap();
    let tool = tool.to_str().unwrap();
    let nothing = world.sandbox(["policy", "save"]).run();
    nothing.assert_code(125);
    answered(&world, tool);
    let mine = "# mine\nview: host   # as ever\n";
    let file = world.write("home/.config/palisade/policy.yaml", mine);
    let dry = world.sandbox(["policy", "save", "--dry-run"]).run();
    assert_says(&dry, 0, &[&format!("+    - allow: {tool}/**"), "nothing was written"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), mine);
    let saved = world.sandbox(["policy", "save", "--session", SESSION]).run();
    assert_says(&saved, 0, &[" view: host   # as ever", "+      access: execute", "written to"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(mine) && text.contains("by: terminal"), "{text}");
    let program = format!("{tool}/bin/run");
    assert_says(
        &why(&world, &["--execute", &program]),
        0,
        &["allowed by the rule", "policy.yaml:5"],
    );
    let again = world.sandbox(["policy", "save", "--last"]).run();
    assert_says(&again, 0, &["already contains all of it"]);
}

/// Proves: POL-4 untrusted-project, POL-5 save
#[test]
fn a_project_is_told_to_be_untrusted_and_stays_trusted_once_it_is() {
    let world = World::new();
    world.write("home/tool/x", "x");
    let tool = world.home().join("tool").canonicalize().unwrap();
    let file = tool.join("x");
    answered(&world, tool.to_str().unwrap());
    let saved = world.sandbox(["policy", "save", "--to", "project"]).run();
    assert_says(&saved, 0, &["it is not trusted", "sandbox policy trust"]);
    let asked = why(&world, &[file.to_str().unwrap()]);
    asked.assert_code(2);
    assert!(asked.err().contains("only tighten"), "{}", asked.err());
    world.sandbox(["policy", "trust", "--yes"]).run().assert_code(0);
    assert_says(&why(&world, &[file.to_str().unwrap()]), 0, &["of the project"]);
    answered(&world, "/srv/other");
    let saved = world.sandbox(["policy", "save", "--to", "project"]).run();
    assert_says(&saved, 0, &["it stays trusted"]);
    assert_says(&why(&world, &[file.to_str().unwrap()]), 0, &["of the project"]);
}

/// Proves: GATE-4 stores
#[test]
fn the_organisations_file_is_roots() {
    if am_root() {
        return;
    }
    let world = World::new();
    answered(&world, "/srv/other");
    let saved = world.sandbox(["policy", "save", "--to", "organisation"]).run();
    saved.assert_code(125);
    assert!(saved.err().contains("only root can write it"), "{}", saved.err());
}

/// Proves: POL-5 rules, POL-5 forget
#[test]
fn what_is_saved_is_listed_and_forgotten_by_its_number() {
    let world = World::new();
    let none = world.sandbox(["policy", "rules"]).run();
    assert_says(&none, 0, &["no rules are saved"]);
    let mine = "# mine\nfilesystem:\n  rules:\n    - allow: /srv/one\n      by: terminal\n      at: 2026-01-31T12:00:00Z\n    - deny: /srv/two   # never\n";
    let file = world.write("home/.config/palisade/policy.yaml", mine);
    world.write_in_project(".palisade/policy.yaml", "network:\n  allowedHosts: [a.example]\n");
    let listed = world.sandbox(["policy", "rules"]).run();
    assert_says(
        &listed,
        0,
        &[
            "1  allow host a.example",
            "not trusted",
            "2  allow /srv/one",
            "policy.yaml:4",
            "2026-01-31 12:00 by terminal",
            "3  deny /srv/two",
            "policy.yaml:7",
        ],
    );
    let json: Value =
        serde_json::from_slice(&world.sandbox(["policy", "rules", "--json"]).run().stdout).unwrap();
    assert_eq!(json[0]["counts"], false);
    assert_eq!((&json[1]["layer"], &json[1]["line"]), (&"user".into(), &4.into()));
    let wrong = world.sandbox(["policy", "forget", "9"]).run();
    wrong.assert_code(125);
    assert!(wrong.err().contains("lists 1 to 3"), "{}", wrong.err());
    let gone = world.sandbox(["policy", "forget", "2", "--json"]).run();
    gone.assert_code(0);
    let gone: Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!(gone[0]["what"], "allow /srv/one");
    let left = "# mine\nfilesystem:\n  rules:\n    - deny: /srv/two   # never\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), left);
    assert_says(&world.sandbox(["policy", "forget", "2"]).run(), 0, &["removed: deny /srv/two"]);
    // With the last rule the empty sections go too.
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n");
}

/// Proves: GATE-4 why, NET-8 approval
#[test]
fn a_listed_host_says_what_is_missing_where_the_network_is_off() {
    let world = World::new();
    let mine = "network:\n  allowedHosts:\n    - example.org:443\n";
    world.write("home/.config/palisade/policy.yaml", mine);
    let off = why(&world, &["--host", "example.org"]);
    let words = ["the network is off", "the policy allows `example.org:443`", "policy.yaml:3"];
    assert_says(&off, 1, &words);
    assert_says(&off, 1, &["allow with --network proxy"]);
    assert_says(&why(&world, &["--network", "proxy", "--host", "example.org"]), 0, &["allowed"]);
    assert_says(&why(&world, &["--host", "else.example"]), 1, &["--allow-host else.example"]);
}

/// Proves: GATE-4 why
#[test]
fn a_host_or_a_variable_in_place_of_a_path_gets_a_hint() {
    let world = World::new();
    assert_says(
        &why(&world, &["example.org"]),
        0,
        &["visible", "sandbox why --host example.org\n"],
    );
    let url = why(&world, &["https://example.org:8443/x"]);
    assert!(url.out().contains("sandbox why --host example.org:8443\n"), "{}", url.out());
    assert_says(&why(&world, &["HOME"]), 0, &["visible", "sandbox why --variable HOME\n"]);
    world.write_in_project("example.org", "");
    let there = why(&world, &["example.org"]);
    assert!(!there.out().contains("--host"), "{}", there.out());
}

/// Proves: POL-5 forget
#[test]
fn rules_are_forgotten_by_their_words_and_a_doubtful_word_removes_nothing() {
    let world = World::new();
    let home = world.home().canonicalize().unwrap();
    let mine = "filesystem:\n  rules:\n    - allow: ~/data/x\n    - allow: /srv/data/**\n    - deny: /srv/twice\n    - allow: /srv/twice\n    - allow: /srv/last\nnetwork:\n  allowedHosts: [example.org:443, other.example]\n";
    let file = world.write("home/.config/palisade/policy.yaml", mine);
    let forget = |words: &[&str]| world.sandbox(["policy", "forget"]).args(words).run();
    let refuses = |words: &[&str], told: &str| {
        let refused = forget(words);
        refused.assert_code(125);
        assert!(refused.err().contains(told), "{}", refused.err());
        assert!(refused.err().contains("nothing was removed"), "{}", refused.err());
        assert_eq!(fs::read_to_string(&file).unwrap(), mine);
    };
    refuses(&["/srv/last", "/srv/none"], "no saved rule matches `/srv/none`");
    refuses(&["/srv/data"], "saved: 2 allow /srv/data/** (user)");
    refuses(&["/srv/twice"], "3 deny /srv/twice (user), 4 allow /srv/twice (user)");
    refuses(&["1", "99"], "there is no saved rule 99");
    // The shell writes the home directory out.
    let expanded = home.join("data/x");
    let gone =
        forget(&[expanded.to_str().unwrap(), "example.org:443", "allow /srv/twice", "2", "2"]);
    assert_says(
        &gone,
        0,
        &[
            "removed: allow ~/data/x",
            "removed: allow host example.org:443",
            "removed: allow /srv/twice",
            "removed: allow /srv/data/**",
        ],
    );
    assert_eq!(gone.out().lines().count(), 4, "{}", gone.out());
    let left = "filesystem:\n  rules:\n    - deny: /srv/twice\n    - allow: /srv/last\nnetwork:\n  allowedHosts: [other.example]\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), left);
}

/// What the guard refuses in a run is what `why` says of it, and nobody is asked about a new file of the private home.
///
/// Proves: GATE-4 why, FS-9 git-hooks
#[test]
fn why_and_a_run_agree_about_hooks_and_new_files_of_the_home_directory() {
    let world = World::new();
    world.git_init();
    let hook = ".git/hooks/pre-commit";
    let words = ["protected (`git hooks`)", "allow with --allow-write .git/hooks/pre-commit"];
    assert_says(&why(&world, &["--write", hook]), 1, &words);
    let script = format!("echo x > {hook}");
    assert!(!world.sandbox_run(Vec::<&str>::new(), ["sh", "-c", &script]).run().err().is_empty());
    assert!(!world.project().join(hook).exists());
    assert_says(&why(&world, &["--allow-write", hook, "--write", hook]), 0, &["--allow-write"]);
    let opened = ["--allow-write", hook];
    world.sandbox_run(opened, ["sh", "-c", &script]).run().assert_code(0);
    assert!(world.project().join(hook).exists());
    // Another repository, which a run would be asked about.
    for name in ["objects/x", "refs/x", "hooks/pre-push.sample"] {
        world.write(format!("outside/repo/.git/{name}"), "");
    }
    let other = world.outside().join("repo/.git/hooks/pre-push").display().to_string();
    assert_says(&why(&world, &["--write", &other]), 1, &["an answer does not change that"]);

    let new = world.home().join("newfile");
    let words = ["discarded at the end of the run", "nothing is asked", "keep it with --rw"];
    assert_says(&why(&world, &["--write", new.to_str().unwrap()]), 0, &words);
    let deep = world.home().join("new/dir/file");
    assert_says(&why(&world, &["--write", deep.to_str().unwrap()]), 0, &words);
    let script =
        format!("mkdir -p ~/new/dir; echo x > {}; echo x > {}", new.display(), deep.display());
    world.sandbox_run(["--on-ask", "deny"], ["sh", "-c", &script]).run().assert_code(0);
    assert!(!new.exists() && !deep.exists());
    // What the host has and the view has not is a question still.
    world.write("home/data/file", "x");
    let beside = world.home().join("data/new").display().to_string();
    assert_says(&why(&world, &["--write", &beside]), 2, &["you are asked"]);
}

/// Proves: GATE-4 why
#[test]
fn why_tells_of_writing_of_protected_names_hosts_and_variables() {
    let world = World::new();
    world.write("home/data/file", "x");
    let policy = world.write(
        "p.yaml",
        "network:\n  mode: proxy\n  allowedHosts:\n    - api.example\n  deniedHosts:\n    - bad.example\nfilesystem:\n  readOnlyPaths:\n    - ~/other\n    - ~/data\n",
    );
    let policy = policy.to_str().unwrap();
    let asked = |words: &[&str]| {
        let mut all = vec!["--policy", policy];
        all.extend(words);
        why(&world, &all)
    };
    assert_says(&asked(&["--write", "new.txt"]), 0, &["allowed: writable: project"]);
    assert_says(
        &asked(&["--write", ".envrc"]),
        1,
        &["protected (`.envrc`): direnv", "allow with --allow-write .envrc"],
    );
    let data = world.home().join("data/file").display().to_string();
    assert_says(
        &asked(&["--write", &data]),
        1,
        &["read-only: --ro", "p.yaml:10", "allow with --rw"],
    );
    // What nothing grants is a question, but for what is never written.
    let outside = world.write("outside/notes", "x").display().to_string();
    assert_says(&asked(&["--write", &outside]), 2, &["you are asked", "allow with --rw"]);
    let new = world.outside().join("new").display().to_string();
    assert_says(&asked(&["--write", &new]), 2, &["you are asked"]);
    let startup = world.outside().join(".envrc").display().to_string();
    assert_says(&asked(&["--write", &startup]), 1, &["the name `.envrc` is protected"]);
    let key = world.write("home/.ssh/id_rsa", "x").display().to_string();
    assert_says(&asked(&["--write", &key]), 1, &["secrets are never writable"]);
    for name in ["HEAD", "config", "objects/pack/x"] {
        world.write_in_project(format!(".git/{name}"), "");
    }
    let config = asked(&["--write", ".git/config"]);
    assert_says(&config, 0, &["allowed: writable: project", "core.hooksPath, are denied"]);
    assert_says(&asked(&[&data]), 0, &["granted by user, ", "p.yaml:10"]);
    assert!(!asked(&[&data]).out().contains("p.yaml:9"));
    assert_says(&asked(&["--host", "api.example"]), 0, &["granted by user, ", "p.yaml:4"]);
    assert_says(&asked(&["--host", "bad.example:80"]), 1, &["set by user, ", "p.yaml:6"]);
    assert_says(&asked(&["--host", "else.example"]), 2, &["allow with --allow-host else.example"]);
    assert_says(
        &why(&world, &["--host", "api.example"]),
        1,
        &["the network is off", "--allow-host"],
    );
    let token = world
        .sandbox(["why", "--json", "--variable", "SOME_TOKEN"])
        .env("SOME_TOKEN", "hidden-value")
        .run();
    token.assert_code(1);
    let json: Value = serde_json::from_slice(&token.stdout).unwrap();
    assert_eq!(
        (&json["decision"], &json["allowWith"]),
        (&"denied".into(), &"--env SOME_TOKEN".into())
    );
    assert!(!token.out().contains("hidden-value"), "{}", token.out());
    assert_says(&why(&world, &["--variable", "PATH"]), 0, &["passed on unchanged"]);
}
