//! A name from outside (of a directory, in a policy file of somebody else's project, of a host) forges no line of ours and
//! reaches no terminal as it is, whichever command prints it.

use std::fs;
use std::path::PathBuf;

use palisade_testkit::{Output, World};
use serde_json::json;

/// A line of its own, and what a terminal acts on: controls of 7 and 8 bits, and a change of direction.
const HOSTILE: &str = "x\nFORGED  allow everything\u{1b}[2K\u{9b}1A\u{202e}y";

#[track_caller]
fn assert_escaped(what: &str, output: &Output) {
    for text in [output.out(), output.err()] {
        assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{what}: {text}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{what}: {text:?}");
    }
}

/// A project of that name, with a policy that has such names in every list.
fn hostile_project(world: &World) -> PathBuf {
    let project = world.path().join(HOSTILE);
    fs::create_dir_all(project.join(".git/objects")).unwrap();
    fs::create_dir_all(project.join(".git/refs")).unwrap();
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir_all(project.join(".palisade")).unwrap();
    let path = format!("/srv/{HOSTILE}");
    let policy = json!({
        "filesystem": {
            "rules": [{ "allow": path, "by": HOSTILE }, { "deny": path }],
            "readOnlyPaths": [path],
            "deniedPaths": [format!("/opt/{HOSTILE}")],
        },
        "process": { "allowedEnvVars": [HOSTILE] },
    });
    fs::write(project.join(".palisade/policy.json"), policy.to_string()).unwrap();
    project
}

/// Proves: AUD-2 escaped-text
#[test]
fn no_command_prints_a_hostile_name_as_it_is() {
    let world = World::new();
    let project = hostile_project(&world);
    let policy = project.join(".palisade/policy.json");
    let policy = policy.to_str().unwrap();
    let commands: &[&[&str]] = &[
        &["policy", "rules"],
        &["policy", "rules", "--json"],
        &["policy", "show"],
        &["policy", "show", "--json"],
        &["policy", "check", policy],
        &["policy", "diff", policy],
        &["policy", "import", "--dry-run", policy],
        &["policy", "export", "--format", "json"],
        &["policy", "export"],
        &["policy", "forget", "99"],
        &["policy", "trust", "--yes"],
        &["policy", "trust", "--list"],
        &["policy", "trust", "--list", "--json"],
        &["policy", "show"],
        &["why", "."],
        &["why", HOSTILE],
        &["why", "--json", HOSTILE],
        &["why", "--write", HOSTILE],
        &["why", "--host", HOSTILE],
        &["why", "--variable", HOSTILE],
        &["plan", "--", "true", HOSTILE],
        &["plan", "--full", "--", "true", HOSTILE],
        &["plan", "--json", "--", "true", HOSTILE],
        &["check-path", "--root", ".", HOSTILE],
        &["explain-syscall", HOSTILE],
        &["run", "--ro", HOSTILE, "--", "true"],
        &["run", "--", HOSTILE],
        &["run", "--", "true", HOSTILE],
        &["learn", "--", "cat", "/srv", HOSTILE],
        &["audit", "show"],
        &["audit", "show", "--json"],
        &["audit", "show", HOSTILE],
        &["audit", "verify"],
        &["net"],
        &["net", HOSTILE],
        &["policy", "trust", "--revoke"],
        &["policy", "forget", "1"],
        &[HOSTILE],
    ];
    for words in commands {
        let output = world.sandbox(words.iter()).cwd(&project).run();
        assert_escaped(&format!("{words:?}"), &output);
    }
    assert!(fs::read_to_string(policy).unwrap().contains("deny"), "one rule was to be forgotten");
}
