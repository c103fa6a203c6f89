//! Policies that commands could have written: they grant nothing until somebody trusts their content, and no run
//! writes its own.

use std::fs;

use palisade_testkit::World;

use crate::inside::inside;

/// Proves: POL-4 untrusted-project, POL-4 trust
#[test]
fn a_project_grants_itself_nothing_until_it_is_trusted() {
    let world = World::new();
    world.write("home/private/letter", "private\n");
    let policy = "filesystem: { readOnlyPaths: [~/private] }\nprocess: { debug: false }\n";
    world.write_in_project(".palisade/policy.yaml", policy);
    let script = "cat ~/private/letter 2>/dev/null; echo ran";
    let untrusted = inside(&world, &[], script);
    assert_eq!(untrusted.out(), "ran\n");
    assert!(untrusted.err().contains("policy trust"), "{}", untrusted.err());
    // What tightens is in force all the same.
    let shown = world.sandbox(["policy", "show"]).run();
    let debug =
        shown.out().lines().find(|line| line.starts_with("process.debug")).unwrap().to_owned();
    assert!(debug.contains("false") && debug.contains("project"), "{debug}");

    let asked = world.sandbox(["policy", "trust"]).run();
    asked.assert_code(125);
    assert!(asked.err().contains("--yes"), "{}", asked.err());
    let trusted = world.sandbox(["policy", "trust", "--yes"]).run();
    trusted.assert_code(0);
    assert!(trusted.out().contains("readOnlyPaths"), "{}", trusted.out());
    assert_eq!(inside(&world, &[], script).out(), "private\nran\n");

    world.write_in_project(".palisade/policy.yaml", format!("{policy}view: host\n"));
    assert_eq!(inside(&world, &[], script).out(), "ran\n");
    world.write_in_project(".palisade/policy.yaml", policy);
    world.sandbox(["policy", "trust", "--revoke"]).run().assert_code(0);
    assert_eq!(inside(&world, &[], script).out(), "ran\n");
}

/// Proves: POL-4 untrusted-project
#[test]
fn a_run_cannot_write_the_projects_policy() {
    let world = World::new();
    world.write_in_project(".palisade/policy.yaml", "process: { debug: false }\n");
    let script = "echo 'view: host' > .palisade/policy.yaml; rm -rf .palisade; \
                  mv .palisade moved; touch .palisade/new; cat .palisade/policy.yaml";
    let output = inside(&world, &[], script);
    assert_eq!(output.out(), "process: { debug: false }\n");
    let entries = fs::read_dir(world.project().join(".palisade")).unwrap().count();
    assert_eq!(entries, 1);
}

/// Proves: POL-4 writable-file, POL-4 trust
#[test]
fn a_named_policy_in_the_project_counts_once_it_is_trusted() {
    let world = World::new();
    world.write("home/data/file", "shown\n");
    let file = world.write_in_project("ci.yaml", "filesystem: {readOnlyPaths: [~/data]}\n");
    let read = || inside(&world, &["--on-ask", "deny", "--policy", "ci.yaml"], "cat ~/data/file");
    let untrusted = read();
    assert_ne!(untrusted.code(), 0);
    assert!(untrusted.err().contains("sandbox policy trust"), "{}", untrusted.err());
    let trusted = world.sandbox(["policy", "trust", "--yes", "ci.yaml"]).run();
    trusted.assert_code(0);
    assert!(trusted.out().contains("readOnlyPaths"), "{}", trusted.out());
    assert_eq!(read().out(), "shown\n");
    fs::write(file, "filesystem: {readOnlyPaths: [~/data, ~/more]}\n").unwrap();
    assert_ne!(read().code(), 0);
    let outside = world.write("elsewhere.yaml", "version: 1\n");
    let needless = world.sandbox(["policy", "trust", "--yes"]).arg(outside).run();
    needless.assert_code(125);
    assert!(needless.err().contains("needs no trust"), "{}", needless.err());
}

/// Proves: POL-4 sealed
#[test]
fn a_policy_cannot_be_granted_for_writing_in_its_own_run() {
    let world = World::new();
    let file = world.write("ci.yaml", "version: 1\n");
    let file = file.to_str().unwrap();
    let output = inside(&world, &["--policy", file, "--rw", file], "touch ran");
    output.assert_code(126);
    assert!(output.err().contains("the policy of this run"), "{}", output.err());
}

/// Proves: POL-4 learned-outside
#[test]
fn what_is_written_while_learning_is_refused_and_allowed_by_what_was_learnt() {
    let world = World::new();
    let file = world.write("outside/notes/file", "before\n");
    let script = format!("echo after > {}", file.display());
    let policy = world.home().join(".config/palisade/notes.yaml");
    let learnt =
        world.sandbox(["learn", "--output"]).arg(&policy).args(["--", "sh", "-c", &script]).run();
    assert_eq!(fs::read_to_string(&file).unwrap(), "before\n");
    let told = "1 write was denied in this run and is allowed by the learned policy";
    assert!(learnt.err().contains(told), "{}", learnt.err());
    assert!(learnt.err().contains("notes.yaml; read"), "{}", learnt.err());
    let again =
        world.sandbox(["run", "--policy"]).arg(&policy).args(["--", "sh", "-c", &script]).run();
    again.assert_code(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "after\n");
}

/// Proves: POL-4 learned-outside
#[test]
fn what_is_learnt_is_written_outside_the_project_and_planted_rules_are_not_kept() {
    let world = World::new();
    world.write("home/data/one", "1\n");
    world.write("home/more/two", "2\n");
    let learn = |options: &[&str], path: &str| {
        let mut words = vec!["learn"];
        words.extend(options);
        words.extend(["--", "cat", path]);
        world.sandbox(words).run()
    };
    let one = world.home().join("data/one").display().to_string();
    let two = world.home().join("more/two").display().to_string();
    let first = learn(&[], &one);
    first.assert_code(0);
    let learned = world.home().join(".config/palisade/learned");
    let files: Vec<_> =
        fs::read_dir(&learned).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(fs::read_to_string(&files[0]).unwrap().contains("data/one"));
    assert!(first.err().contains("written to"), "{}", first.err());
    // What was there is shown with what comes to it.
    let second = learn(&[], &two);
    assert!(second.err().contains("including what was in it before"), "{}", second.err());
    assert!(second.err().contains("data/one") && second.err().contains("+ "), "{}", second.err());
    // A file that a command could have written is not added to.
    let planted = "isolationLevel: LEVEL_0\n";
    let file = world.write_in_project("learned.yaml", planted);
    let refused = learn(&["--output", "learned.yaml"], &one);
    refused.assert_code(125);
    assert!(refused.err().contains("could have written it"), "{}", refused.err());
    assert_eq!(fs::read_to_string(file).unwrap(), planted);
    assert!(refused.out().is_empty(), "the command did not run: {}", refused.out());
    let fresh = learn(&["--output", "fresh.yaml"], &one);
    fresh.assert_code(0);
    assert!(world.project().join("fresh.yaml").exists());
}

/// Proves: POL-4 cannot-stall
#[test]
fn a_project_that_nobody_trusts_does_not_stall_or_break_its_runs() {
    let world = World::new();
    let stalls = "resources: {normalizeTime: 1h, timeout: 1ms}\n";
    world.write_in_project(".palisade/policy.yaml", stalls);
    let output = inside(&world, &[], "echo ran");
    assert_eq!(output.out(), "ran\n", "{}", output.err());
    for told in ["`resources.normalizeTime` ignored", "`resources.timeout` ignored"] {
        assert!(output.err().contains(told), "{told}: {}", output.err());
    }
    // Sound by itself, and nothing could start with it.
    world
        .write_in_project(".palisade/policy.yaml", "process: {allowedExecutables: [/bin/false]}\n");
    let output = inside(&world, &[], "echo ran");
    assert_eq!(output.out(), "ran\n", "{}", output.err());
    assert!(output.err().contains("no run could start with it"), "{}", output.err());
}
