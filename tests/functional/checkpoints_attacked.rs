//! What a command does to get at hidden files by kept states, or to keep anybody from using them, and what must not be lost
//! (LIFE-5).

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use palisade_testkit::World;

use crate::checkpoints::{keep, project, script};
use crate::inside::{inside, tree};
use crate::sessions_support::Sessions;

/// A command takes the name of a hidden file or directory, and hopes that bringing a state back puts the host's there.
///
/// Proves: LIFE-5 rollback, FS-2 hidden
#[test]
fn a_hidden_file_is_not_readable_after_a_rollback_or_in_a_fork() {
    let world = World::new();
    project(&world);
    world.write_in_project("secret", "top secret\n");
    world.write_in_project("keys/private", "top secret\n");
    world.write_in_project("mixed/hidden", "top secret\n");
    world.write_in_project("mixed/seen", "seen\n");
    let sessions = Sessions::new(&world);
    let flags = ["--name", "work", "--transaction", "--blacklist", "secret", "--blacklist", "keys"];
    let id = sessions.create(&[&flags[..], &["--blacklist", "mixed/hidden"]].concat());
    keep(&sessions, "work");
    let search = ["sh", "-c", "! grep -r 'top secret' . && test ! -e keys/private"];
    let check = |session: &str| sessions.output_of(session, &search);
    let take = "echo x > secret; mkdir keys; rm -r mixed; mkdir mixed; echo x > mixed/hidden";
    for state in ["0", "1", "0"] {
        script(&sessions, "work", take);
        let states = format!("{state}..");
        let shown = sessions.sandbox(&["diff", "work", &states]).out().into_owned();
        assert!(!shown.contains("top secret"), "{shown}");
        sessions.sandbox(&["rollback", "work", state]).assert_code(0);
        check("work");
        assert_eq!(sessions.output_of("work", &["cat", "mixed/seen"]), "seen\n");
        for name in ["secret", "keys"] {
            sessions.sandbox(&["exec", "work", "--", "test", "-e", name]).assert_code(1);
        }
    }
    // From the state in which the names were taken, too.
    script(&sessions, "work", take);
    let taken = keep(&sessions, "work");
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    sessions.sandbox(&["rollback", "work", &taken]).assert_code(0);
    check("work");
    assert_eq!(sessions.output_of("work", &["cat", "secret"]), "x\n");
    for (state, name) in [("0", "zero"), ("1", "one"), (&*taken, "taken")] {
        sessions.sandbox(&["fork", "work", "--at", state, "--name", name]).assert_code(0);
        check(name);
    }
    let kept = tree(&sessions.directory(&id)).into_iter();
    let leaked = kept.filter(|path| fs::read(path).is_ok_and(|text| text == b"top secret\n"));
    assert_eq!(leaked.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(fs::read(world.project().join("secret")).unwrap(), b"top secret\n");
}

/// Proves: LIFE-5 fork
#[test]
fn a_fork_takes_values_of_variables_from_who_forks_and_none_are_kept() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let flags =
        ["--name", "work", "--transaction", "--env", "TOKEN=hunter2", "--env", "LOST=hunter2"];
    let id = sessions.create(&flags);
    assert_eq!(sessions.output_of("work", &["sh", "-c", "echo $TOKEN $LOST"]), "hunter2 hunter2\n");
    let options = sessions.directory(&id).join("options.json");
    assert_eq!(fs::metadata(&options).unwrap().mode() & 0o777, 0o600);
    let kept = fs::read_to_string(&options).unwrap();
    assert!(kept.contains("TOKEN") && !kept.contains("hunter2"), "{kept}");
    let forked = world.sandbox(["fork", "work", "--name", "other"]).env("TOKEN", "mine").run();
    forked.assert_code(0);
    assert!(forked.err().contains("--env LOST is left out"), "{}", forked.err());
    assert_eq!(sessions.output_of("other", &["sh", "-c", "echo $TOKEN $LOST"]), "mine\n");

    inside(&world, &["--transaction", "--env", "TOKEN=hunter2"], "echo 1 > made").assert_code(0);
    let json = sessions.sandbox(&["ps", "--all", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let all = json["sessions"].as_array().unwrap().iter();
    let run = all.filter(|session| session["name"].is_null()).find_map(|it| it["id"].as_str());
    let run = run.unwrap();
    assert!(!sessions.directory(run).join("options.json").exists());
    let refused = sessions.sandbox(&["fork", run]);
    refused.assert_code(125);
    assert!(refused.err().contains("a run of one command"), "{}", refused.err());
}

/// After a rollback to the beginning no changes wait, and all work is in a checkpoint.
///
/// Proves: LIFE-5 checkpoint
#[test]
fn tidying_up_loses_no_checkpoint_with_work() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", "echo 1 > made");
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", "work"]).out(), "");
    let kept = sessions.sandbox(&["prune"]);
    assert!(kept.err().contains("kept, because changes wait: work"), "{}", kept.err());
    let refused = sessions.sandbox(&["rm", "work"]);
    refused.assert_code(125);
    assert!(refused.err().contains("checkpoints that differ"), "{}", refused.err());
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", "--name-status", "work"]).out(), "A\tmade\n");
    sessions.sandbox(&["discard", "work"]).assert_code(0);
    sessions.sandbox(&["rm", "work"]).assert_code(0);
    assert!(!sessions.directory(&id).exists());

    // Those before each command are steps on the way.
    let id = sessions.create(&["--name", "steps", "--transaction", "--checkpoint-each"]);
    script(&sessions, "steps", "echo 1 > made");
    script(&sessions, "steps", "rm made");
    sessions.sandbox(&["stop", "steps"]).assert_code(0);
    sessions.sandbox(&["rm", "steps"]).assert_code(0);
    assert!(!sessions.directory(&id).exists());
}

/// A command must not be able to keep anybody from leaving what it made.
///
/// Proves: LIFE-5 rollback, LIFE-5 checkpoint
#[test]
fn neither_deep_directories_nor_taken_names_keep_a_state_from_being_kept_and_left() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction", "--checkpoint-each"]);
    let make = "rm kept; for i in $(seq 0 1000); do : > .palisade-restoring-$i; done; mkdir deep; cd deep; \
                for i in $(seq 400); do mkdir d; cd d; done; echo x > file";
    script(&sessions, "work", make);
    script(&sessions, "work", "mkdir listed; echo x > listed/file; chmod 400 listed");
    let deep = keep(&sessions, "work");
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    assert_eq!(sessions.output_of("work", &["cat", "kept"]), "kept\n");
    assert_eq!(
        sessions.output_of("work", &["sh", "-c", "ls -A | grep -c -e restoring -e deep || :"]),
        "0\n"
    );
    // Such a depth is too much for a session that lives, and nothing has happened then.
    let refused = sessions.sandbox(&["rollback", "work", &deep]);
    refused.assert_code(125);
    assert!(refused.err().contains("levels of directories"), "{}", refused.err());
    assert_eq!(sessions.output_of("work", &["cat", "kept"]), "kept\n");
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    sessions.sandbox(&["rollback", "work", &deep]).assert_code(0);
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", "work"]).out(), "");
    sessions.sandbox(&["rm", "--force", "work"]).assert_code(0);
}
