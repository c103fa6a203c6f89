//! Who works on a session's changes is killed, at every moment at which something changes: what he did is done or not, his
//! next try does it, and the session goes on (LIFE-2, LIFE-5).

use std::fs;
use std::path::PathBuf;

use palisade_testkit::World;
use serde_json::Value;

use crate::fault_points::{Fault, listed, names_in, state, unfinished_files};
use crate::sessions_support::{Sessions, adopt_orphans, wait_until};

const KILLED: i32 = 128 + 9;

/// Lists the moments of a command, and kills another one like it at each of them. `before` and `after` come around each.
fn kill_at_every_moment(world: &World, command: &[&str], before: impl Fn(), after: impl Fn(&str)) {
    before();
    Fault::list(world).sandbox(world, command).run().assert_code(0);
    let moments = listed(world);
    after("unharmed");
    assert!(moments.len() > 2, "{command:?}: {moments:?}");
    for moment in moments {
        before();
        let output = Fault::KillAt(moment.clone()).sandbox(world, command).run();
        assert_eq!(output.code(), KILLED, "{command:?} at {moment}: {}", output.err());
        world.sandbox(["audit", "verify"]).run().assert_code(0);
        after(&format!("{command:?} at {moment}"));
    }
}

fn assert_all_states_can_be_compared(sessions: &Sessions<'_>, when: &str) {
    let all = sessions.sandbox(&["checkpoints", "--json", "s"]);
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let all = all["checkpoints"].as_array().unwrap();
    assert!(!all.is_empty(), "{when}");
    for checkpoint in all {
        let range = format!("{}..", checkpoint["number"]);
        let compared = sessions.sandbox(&["diff", "s", &range]);
        assert_eq!(compared.code(), 0, "{when}: {range}: {}", compared.err());
    }
}

fn session_with_two_states<'w>(world: &'w World) -> (Sessions<'w>, PathBuf) {
    let sessions = Sessions::new(world);
    let id = sessions.create(&["--transaction", "--name", "s"]);
    for (text, number) in [("one", "1"), ("two", "2")] {
        sessions.output_of("s", &["sh", "-c", &format!("echo {text} > notes")]);
        assert_eq!(sessions.sandbox(&["checkpoint", "s"]).out().trim(), number);
    }
    let directory = sessions.directory(&id);
    (sessions, directory)
}

/// Proves: LIFE-5 crash
#[test]
fn a_checkpoint_that_is_killed_at_any_moment_is_whole_or_none() {
    let world = World::new();
    let (sessions, directory) = session_with_two_states(&world);
    let check = |when: &str| {
        assert_all_states_can_be_compared(&sessions, when);
        sessions.sandbox(&["checkpoint", "s"]).assert_code(0);
        assert_eq!(unfinished_files(&directory), Vec::<PathBuf>::new(), "{when}");
    };
    kill_at_every_moment(
        &world,
        &["checkpoint", "s"],
        || {},
        |when| {
            assert_eq!(sessions.output_of("s", &["cat", "notes"]), "two\n", "{when}");
            check(when);
        },
    );
    sessions.sandbox(&["stop", "s"]).assert_code(0);
    kill_at_every_moment(&world, &["checkpoint", "s"], || {}, check);
}

/// Proves: LIFE-5 crash, LIFE-5 rollback
#[test]
fn a_rollback_that_is_killed_at_any_moment_is_done_or_not() {
    let world = World::new();
    let (sessions, directory) = session_with_two_states(&world);
    let back = ["rollback", "s", "1"];
    let other = || {
        sessions.sandbox(&["rollback", "s", "2"]).assert_code(0);
    };
    kill_at_every_moment(&world, &back, other, |when| {
        let notes = sessions.output_of("s", &["cat", "notes"]);
        assert!(["one\n", "two\n"].contains(&&*notes), "{when}: {notes}");
        assert_all_states_can_be_compared(&sessions, when);
        sessions.sandbox(&back).assert_code(0);
        assert_eq!(sessions.output_of("s", &["sh", "-c", "ls -A; cat notes"]), "notes\none\n");
        assert!(!directory.join("rollback.json").exists(), "{when}");
        assert_eq!(unfinished_files(&directory), Vec::<PathBuf>::new(), "{when}");
    });
    sessions.sandbox(&["stop", "s"]).assert_code(0);
    kill_at_every_moment(&world, &back, other, |when| {
        let difference = sessions.sandbox(&["diff", "s"]).out().into_owned();
        let (one, two) = (difference.contains("+one"), difference.contains("+two"));
        assert!(one != two, "{when}: {difference}");
        assert_eq!(names_in(&directory.join("layers/1")), ["upper"], "{when}");
        sessions.sandbox(&back).assert_code(0);
        assert!(sessions.sandbox(&["diff", "s"]).out().contains("+one"), "{when}");
        assert!(!directory.join("rollback.json").exists(), "{when}");
        assert_eq!(unfinished_files(&directory), Vec::<PathBuf>::new(), "{when}");
    });
}

/// Proves: LIFE-5 crash, LIFE-4 crash
#[test]
fn an_exec_that_is_killed_at_any_moment_leaves_a_session_that_goes_on() {
    adopt_orphans();
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--transaction", "--checkpoint-each", "--name", "s"]);
    kill_at_every_moment(
        &world,
        &["exec", "s", "--", "sh", "-c", "echo x >> notes"],
        || {},
        |when| {
            let is_idle = || sessions.inspect("s")["status"]["commands"] == serde_json::json!([]);
            wait_until(when, is_idle);
            assert_eq!(sessions.output_of("s", &["echo", "on"]), "on\n", "{when}");
            assert_all_states_can_be_compared(&sessions, when);
            assert_eq!(unfinished_files(&sessions.directory(&id)), Vec::<PathBuf>::new(), "{when}");
        },
    );
    // Who asks for the end need not live to see it.
    kill_at_every_moment(
        &world,
        &["stop", "other"],
        || drop(sessions.create(&["--name", "other"])),
        |when| {
            let _ = sessions.sandbox(&["stop", "other"]);
            wait_until(when, || sessions.inspect("other")["isRunning"] == false);
            sessions.sandbox(&["rm", "other"]).assert_code(0);
        },
    );
}

/// Proves: LIFE-2 apply, LIFE-2 discard
#[test]
fn changes_are_applied_discarded_or_removed_by_the_next_try() {
    let world = World::new();
    let made = world.project().join("made");
    let run = || {
        let script = ["run", "--transaction", "--", "sh", "-c", "echo one > made"];
        world.sandbox(script).run().assert_code(0);
    };
    let clean_up = |when: &str| {
        world.sandbox(["prune"]).run().assert_code(0);
        assert_eq!(names_in(&state(&world).join("sessions")), ["names.lock"], "{when}");
        assert_eq!(unfinished_files(&state(&world)), Vec::<PathBuf>::new(), "{when}");
    };
    kill_at_every_moment(&world, &["apply"], run, |when| {
        // Refused if nothing is left to apply.
        let _ = world.sandbox(["apply"]).run();
        assert_eq!(fs::read_to_string(&made).unwrap(), "one\n", "{when}");
        fs::remove_file(&made).unwrap();
        clean_up(when);
    });
    kill_at_every_moment(&world, &["discard"], run, |when| {
        let _ = world.sandbox(["discard"]).run();
        assert!(!made.exists(), "{when}");
        clean_up(when);
    });
}
