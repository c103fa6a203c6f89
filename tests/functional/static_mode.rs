//! Static mode shows the host read-only, less secrets and other homes; dynamic mode hides what nobody listed and says so
//! (GATE-7, GATE-1). The own home is shown when it is used, where the gate is a file system.

use std::fs;
use std::path::Path;

use palisade_testkit::{Output, World, gate_is_fuse};

use crate::inside::inside;

/// A home with another project beside the one that is worked in.
fn with_neighbour() -> World {
    let world = World::new();
    world.write("home/neighbour/src/main.c", "int main(void) { return 0; }\n");
    world.write("home/neighbour/README", "read me\n");
    world.write("home/neighbour/tool", "#!/bin/sh\necho ran\n");
    world.bare("chmod").args(["755"]).arg(world.home().join("neighbour/tool")).run().assert_code(0);
    world.write("home/.ssh/id", "key\n");
    world
}

/// Whether the own home is shown when it is used; otherwise it stays hidden, and there is nothing to test.
fn shows_home() -> bool {
    let shows = gate_is_fuse();
    if !shows {
        eprintln!("skipped: only the gate's file system shows the home directory by rule");
    }
    shows
}

fn denied(output: &Output) -> Vec<String> {
    let report = output.report.as_ref().unwrap();
    let denied = report["deniedPaths"].as_array().into_iter().flatten();
    denied.map(|denied| denied["path"].as_str().unwrap().to_owned()).collect()
}

/// Proves: GATE-7 readable-home, GATE-7 no-questions
#[test]
fn a_project_beside_the_granted_one_is_readable_in_static_mode() {
    if !shows_home() {
        return;
    }
    let world = with_neighbour();
    let script = "cat ~/neighbour/README ~/neighbour/src/main.c; ls ~/neighbour; ~/neighbour/tool; \
                  find ~/neighbour -type f | sort | wc -l; cd ~/neighbour/src && cat main.c; ls -A ~; \
                  test -r ~/neighbour/README && test ! -w ~/neighbour/README && stat -c %s ~/neighbour/README";
    let output = inside(&world, &["--static"], script);
    output.assert_code(0);
    let main = "int main(void) { return 0; }\n";
    let text = output.out();
    let listed: Vec<&str> = text.lines().collect();
    assert!(text.starts_with(&format!("read me\n{main}README\nsrc\ntool\nran\n3\n{main}")));
    assert!(listed.contains(&"neighbour") && listed.contains(&"project"), "{listed:?}");
    assert!(!listed.contains(&".ssh"), "{listed:?}");
    assert_eq!(listed.last(), Some(&"8"), "{listed:?}");
    assert_eq!(output.err(), "", "nothing was denied, and nothing asked");
}

/// Proves: GATE-7 no-secrets
#[test]
fn secrets_in_a_neighbouring_project_are_denied_and_told_in_static_mode() {
    if !shows_home() {
        return;
    }
    let world = with_neighbour();
    world.write("home/neighbour/.env", "TOKEN=hunter2\n");
    world.write("home/neighbour/deep/er/.env.local", "TOKEN=hunter3\n");
    std::os::unix::fs::symlink("../neighbour/.env", world.project().join("linked")).unwrap();
    let script = "cat ~/neighbour/README; ls -A ~/neighbour; \
                  find ~/neighbour -name '.env*'; \
                  cat ~/neighbour/.env ~/neighbour/deep/er/.env.local ~/.ssh/id linked; \
                  cd ~/neighbour && cat .env; cat src/main.c; grep -r hunter . ~";
    let output = inside(&world, &["--static"], script);
    let main = "int main(void) { return 0; }\n";
    assert_eq!(
        output.out(),
        format!("read me\nREADME\ndeep\nsrc\ntool\n{main}"),
        "{}",
        output.err()
    );
    assert!(output.err().contains("Permission denied"), "{}", output.err());
    let denied = denied(&output);
    for secret in ["neighbour/.env", "neighbour/deep/er/.env.local", ".ssh/id"] {
        let path = world.home().join(secret).to_string_lossy().into_owned();
        assert!(denied.contains(&path), "{secret}: {denied:?}");
    }
    assert!(output.err().contains("were denied"), "the end tells: {}", output.err());
}

/// The command moves its directory away while it lists it: the names of the host beside its own stay those of the path that
/// was opened, secrets left out.
///
/// Proves: GATE-7 no-secrets
#[test]
fn a_directory_that_is_moved_while_it_is_listed_tells_no_secret_names() {
    if !shows_home() {
        return;
    }
    let world = World::new();
    for name in ["gh", "myapp"] {
        world.write(format!("home/.config/{name}/file"), "x\n");
    }
    let script = "mkdir -p ~/.config/mine && python3 -c 'import os\n\
         home = os.path.expanduser(\"~\")\n\
         fd = os.open(home + \"/.config\", os.O_RDONLY)\n\
         print(sorted(os.listdir(fd)))\n\
         os.rename(home + \"/.config\", home + \"/moved\")\n\
         print(sorted(os.listdir(fd)))'";
    let output = inside(&world, &["--static"], script);
    output.assert_code(0);
    assert_eq!(output.out(), "['mine', 'myapp']\n".repeat(2), "{}", output.err());
}

/// Proves: GATE-7 readable-home
#[test]
fn git_works_in_a_neighbouring_repository_in_static_mode() {
    if !shows_home() {
        return;
    }
    for secret in [None, Some("home/neighbour/.env")] {
        let world = with_neighbour();
        if let Some(secret) = secret {
            world.write(secret, "TOKEN=hunter2\n");
            world.write("home/neighbour/.gitignore", ".env\n");
        }
        let prepared = "cd ~/neighbour && git init -q && git config user.name T && git config user.email t@example.org \
                        && git add -A && git commit -qm first && echo more >> README";
        world.bare("sh").args(["-c", prepared]).run().assert_code(0);
        let script = "cd ~/neighbour && git --no-optional-locks status --porcelain && git log --format=%s \
                      && git -C ~/neighbour diff --stat | tail -1";
        let output = inside(&world, &["--static"], script);
        output.assert_code(0);
        let expected = " M README\nfirst\n 1 file changed, 1 insertion(+)\n";
        assert_eq!(output.out(), expected, "{}", output.err());
    }
}

/// Proves: GATE-7 read-only-view
#[test]
fn a_neighbouring_project_cannot_be_changed_in_static_mode() {
    if !shows_home() {
        return;
    }
    let world = with_neighbour();
    let changes = [
        "echo x > ~/neighbour/README",
        "echo x >> ~/neighbour/src/main.c",
        "echo x > ~/neighbour/new",
        "mkdir ~/neighbour/directory",
        "rm ~/neighbour/README",
        "mv ~/neighbour/README ~/neighbour/other",
        "chmod 777 ~/neighbour/tool",
        "ln ~/neighbour/README ~/neighbour/linked",
        "cat ~/neighbour/README; echo x > ~/neighbour/README",
        "cd ~/neighbour; echo x > README",
        "cd ~/neighbour/src; rm main.c",
    ];
    for change in changes {
        let output = inside(&world, &["--static"], change);
        assert_ne!(output.code(), 0, "{change}: {}", output.err());
        assert!(!output.err().contains("panicked"), "{change}: {}", output.err());
    }
    assert_eq!(fs::read_to_string(world.home().join("neighbour/README")).unwrap(), "read me\n");
    let names = fs::read_dir(world.home().join("neighbour")).unwrap().count();
    assert_eq!(names, 3, "nothing was made or removed");
    // What is new in the home directory is the run's own, as ever.
    let own = "echo mine > ~/note && cat ~/note && mkdir -p ~/.newtool/state && echo s > ~/.newtool/state/s \
               && mkdir -p ~/.cache/x && touch ~/.cache/x/y && ls -A ~ | grep -c note";
    let output = inside(&world, &["--static"], own);
    output.assert_code(0);
    assert_eq!(output.out(), "mine\n1\n", "{}", output.err());
    assert!(!world.home().join("note").exists());
}

/// Proves: GATE-7 rules
#[test]
fn rules_count_in_the_home_directory_in_static_mode() {
    let world = with_neighbour();
    world.write("home/neighbour/diary/today", "dear diary\n");
    let policy = |rule: &str| {
        let text = format!("version: 1\nmode: static\nfilesystem:\n  rules:\n    - {rule}\n");
        let path = world.write("policy.yaml", text);
        path.to_string_lossy().into_owned()
    };
    let file = policy("{ deny: ~/neighbour/diary/ }");
    let output = inside(&world, &["--policy", &file], "cat ~/neighbour/diary/today");
    assert_ne!(output.code(), 0);
    assert_eq!(output.out(), "");
    if gate_is_fuse() {
        assert!(output.err().contains("Permission denied"), "{}", output.err());
        let output = inside(&world, &["--policy", &file], "cat ~/neighbour/README");
        assert_eq!(output.out(), "read me\n", "{}", output.err());
        let secret = policy("{ allow: ~/.ssh/id }");
        let output = inside(&world, &["--policy", &secret], "cat ~/.ssh/id");
        assert_eq!(output.out(), "key\n", "{}", output.err());
    }
    let elsewhere = policy("{ deny: /srv/ }");
    let output = inside(&world, &["--policy", &elsewhere], "ls /srv; touch ran");
    if gate_is_fuse() {
        assert!(output.err().contains("Permission denied"), "{}", output.err());
    } else {
        output.assert_code(126);
        assert!(output.err().contains("deniedPaths"), "{}", output.err());
        assert!(!world.project().join("ran").exists());
    }
}

/// Proves: GATE-7 flat-listing, GATE-7 flat-start
#[test]
fn a_large_home_makes_no_mounts_until_it_is_used_in_static_mode() {
    if !shows_home() {
        return;
    }
    let (few, many) = (with_neighbour(), with_neighbour());
    for number in 0..3000 {
        many.write(format!("home/project-{number}/file"), "text\n");
    }
    let mounts = "wc -l < /proc/self/mounts";
    let count = |world: &World, script: &str| -> Vec<u64> {
        let output = inside(world, &["--static"], script);
        output.assert_code(0);
        output.out().lines().map(|line| line.trim().parse().unwrap()).collect()
    };
    assert_eq!(count(&few, mounts), count(&many, mounts));
    let listing = format!("{mounts}; ls -l ~ | grep -c project-; {mounts}");
    let [before, listed, after] = count(&many, &listing)[..] else { panic!("three numbers") };
    assert_eq!(listed, 3000);
    assert_eq!(before, after, "to list is not to use");
}

/// Proves: GATE-7 read-only-view, GATE-7 left-out
#[test]
fn the_rest_of_the_host_is_listed_and_readable_in_static_mode() {
    let world = World::new();
    let script = "ls -d /[a-z]*; ls /var/log /srv";
    let bare = world.bare("sh").args(["-c", script]).run();
    let output = inside(&world, &["--static"], script);
    let plan = world.sandbox(["plan", "--full", "--static", "--", "true"]).run();
    for name in bare.out().lines() {
        let is_left_out = ["/home", "/root"].contains(&name)
            || plan.out().contains(&format!("{name} is not in the view"));
        assert!(is_left_out || output.out().lines().any(|line| line == name), "{name}");
    }
    let changed = "touch /srv/new /var/log/new; mkdir /srv/directory";
    assert_ne!(inside(&world, &["--static"], changed).code(), 0);
    assert!(!Path::new("/srv/new").exists() && !Path::new("/var/log/new").exists());
}

/// Proves: GATE-7 said
#[test]
fn the_plan_of_a_static_run_says_what_is_shown_of_the_home() {
    let world = World::new();
    let plan = |gate: &str| {
        let output = world.sandbox(["plan", "--full", "--static", "--gate", gate, "--", "true"]);
        let output = output.run();
        output.assert_code(0);
        output.out().into_owned()
    };
    let hidden = plan("notify");
    assert!(
        hidden.contains("home directories are hidden except what is granted in yours (the"),
        "{hidden}"
    );
    if gate_is_fuse() {
        let shown = plan("fuse");
        assert!(
            shown.contains("is shown when it is used, except secrets and .env files"),
            "{shown}"
        );
        assert!(shown.contains("noticed by fuse"), "{shown}");
    }
}

/// Proves: GATE-7 read-only-view, GATE-1 default-dynamic
#[test]
fn static_mode_shows_what_dynamic_mode_hides() {
    let world = World::new();
    world.write("home/notes/letter", "text\n");
    let script = "ls -d /srv /var/log; cat ~/notes/letter 2>/dev/null; true";
    let shown = inside(&world, &["--static"], script);
    let letter = if gate_is_fuse() { "text\n" } else { "" };
    assert_eq!(shown.out(), format!("/srv\n/var/log\n{letter}"), "{}", shown.err());
    let named = inside(&world, &["--static", "--ro", "~/notes"], script);
    assert_eq!(named.out(), "/srv\n/var/log\ntext\n", "{}", named.err());
    let written = "touch ~/notes/new /srv/new 2>/dev/null && echo wrote; touch ~/new in-project";
    let written = inside(&world, &["--static", "--ro", "~/notes"], written);
    written.assert_code(0);
    assert_eq!(written.out(), "");
    assert!(!world.home().join("new").exists(), "the home directory is the run's own");
    assert_eq!(fs::read_dir(world.home().join("notes")).unwrap().count(), 1);
    assert!(world.project().join("in-project").exists());

    let hidden = inside(&world, &[], "cat ~/notes/letter; ls -d /srv /var/log; ls -A ~");
    assert_eq!(hidden.out(), "project\n");
    let report = hidden.report.unwrap();
    assert_eq!(report["walls"]["mode"], "dynamic");
}

/// Proves: GATE-7 read-only-view
#[test]
fn other_peoples_homes_stay_out_of_a_static_view() {
    let world = World::new();
    world.write("outside/file", "");
    let script = format!("ls -A /home; ls -A /root; ls {}", world.outside().display());
    let output = inside(&world, &["--static"], &script);
    // Directories on the way to the caller's own home are there, with nothing else in them.
    let home = world.home();
    for name in output.out().lines() {
        let is_on_the_way =
            ["/home", "/root"].iter().any(|homes| home.starts_with(Path::new(homes).join(name)));
        assert!(is_on_the_way, "{name}");
    }
    assert!(output.out().lines().count() <= 1, "{}", output.out());
}

/// Proves: GATE-7 deny-list, GATE-7 overlays, GATE-7 no-questions
#[test]
fn static_mode_denies_overlays_and_asks_nothing() {
    let world = World::new();
    world.write("home/notes/letter", "text\n");
    world.write("home/diary/today", "secret\n");
    world.write("home/.ssh/id", "key\n");
    let script = "cat ~/diary/today ~/.ssh/id 2>/dev/null; cat ~/notes/letter; \
                  echo changed > ~/notes/letter; cat ~/notes/letter; cat";
    let flags = ["--static", "--ro", "~", "--blacklist", "~/diary", "--overlay", "~/notes"];
    let output = world.sandbox_run(flags, ["sh", "-c", script]).stdin("own input\n").run();
    output.assert_code(0);
    assert_eq!(output.out(), "text\nchanged\nown input\n");
    assert_eq!(output.err(), "");
    assert_eq!(fs::read_to_string(world.home().join("notes/letter")).unwrap(), "text\n");
}

/// Proves: GATE-7 no-questions, POL-2 not-enforced
#[test]
fn answers_that_need_questions_are_refused_and_deny_is_not() {
    let world = World::new();
    inside(&world, &["--static", "--on-ask", "deny"], "true").assert_code(0);
    for answer in ["allow", "wait"] {
        let output = inside(&world, &["--static", "--on-ask", answer], "touch ran");
        output.assert_code(126);
        assert!(output.err().contains("nothing is asked in this run"), "{}", output.err());
    }
    assert!(!world.project().join("ran").exists());
}
