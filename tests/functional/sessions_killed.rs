//! A session whose supervisor or creator is killed, at every moment at which something of it changes (LIFE-1): afterwards
//! nothing of it runs, it is known what became of it, and its changes are there.

use std::fs;
use std::path::PathBuf;

use palisade_testkit::World;
use serde_json::Value;

use crate::fault_points::{
    Fault, groups_of, listed, mounts_of, names_in, state, unfinished_files, wait_until_alone,
};
use crate::sessions_support::{Sessions, adopt_orphans, wait_until};

/// How a session comes to its end if nobody kills its supervisor.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Stopped,
    Killed,
    Expired,
}

/// What became of a session, as far as those know who used it.
struct Lived {
    /// None: its creator did not say.
    id: Option<String>,
    has_written: bool,
}

fn live((world, sessions): (&World, &Sessions<'_>), fault: &Fault, end: End) -> Lived {
    let time = if end == End::Expired { "1s" } else { "1h" };
    let create = ["create", "--quiet", "--transaction", "--name", "s", "--ttl", time];
    let created = fault.sandbox(world, &create).run();
    let id = (created.code() == 0).then(|| created.out().trim().to_owned());
    if id.is_none() {
        // Nobody knows of it, so it has to end by itself.
        wait_until_alone(&created.err());
    }
    let written = sessions.sandbox(&["exec", "s", "--", "sh", "-c", "echo one > made"]);
    let has_written = written.code() == 0;
    // What is still there has to be ended.
    sessions.sandbox(&["exec", "-d", "s", "--", "sleep", "1000"]);
    match end {
        End::Stopped => drop(sessions.sandbox(&["stop", "s"])),
        End::Killed => drop(sessions.sandbox(&["kill", "s"])),
        End::Expired => wait_until("it is over", || {
            let found = sessions.sandbox(&["inspect", "--json", "s"]);
            let found = serde_json::from_slice::<Value>(&found.stdout);
            found.is_err() || found.is_ok_and(|found| found["isRunning"] == false)
        }),
    }
    Lived { id, has_written }
}

/// Says the id of the session and how it ended, if there was one.
#[track_caller]
fn assert_nothing_is_left(
    world: &World,
    lived: &Lived,
    when: &str,
    is_applied: bool,
) -> Option<(String, String)> {
    wait_until_alone(when);
    assert_eq!(mounts_of(world), 0, "{when}");
    let sandbox = |words: &[&str]| {
        let output = world.sandbox(words).run();
        assert_eq!(output.code(), 0, "{when}: {words:?}: {}", output.err());
        output
    };
    let all: Value = serde_json::from_slice(&sandbox(&["ps", "--all", "--json"]).stdout).unwrap();
    let all = all["sessions"].as_array().unwrap();
    assert!(all.len() <= 1, "{when}: {all:?}");
    sandbox(&["audit", "verify"]);
    let session = all.first();
    assert!(session.is_some() || lived.id.is_none(), "{when}: it is gone");
    if let Some(session) = session {
        let (id, reason) = (session["id"].as_str().unwrap(), session["endReason"].as_str());
        assert!(lived.id.as_deref().is_none_or(|known| known == id), "{when}");
        assert_eq!(session["isRunning"], false, "{when}");
        match session["state"].as_str().unwrap() {
            "Error" => assert!(reason.unwrap().contains("killed"), "{when}: {reason:?}"),
            // It was killed when its end was written down already, or its creator was.
            "Completed" | "Timeout" => {}
            state => panic!("{when}: {state}"),
        }
        let log = fs::read_to_string(state(world).join("audit.jsonl")).unwrap();
        let count = |kind: &str| {
            let is_it = |line: &&str| line.contains(id) && line.contains(kind);
            log.lines().filter(is_it).count()
        };
        assert!(count("\"SANDBOX_CREATED\"") <= 1, "{when}");
        assert!(count("\"SANDBOX_DESTROYED\"") >= 1, "{when}: its end is not in the log");
        let directory = state(world).join("sessions").join(id);
        assert!(!directory.join("control").exists(), "{when}");
        // Who asked may not have been told that it was written.
        let waiting = world.sandbox(["diff", "--name-only", "s"]).run();
        let waiting = waiting.out();
        let has_written = waiting == "made\n";
        assert!(has_written || waiting.is_empty() && !lived.has_written, "{when}: {waiting}");
        let made = world.project().join("made");
        if has_written && is_applied {
            sandbox(&["apply", "s"]);
            // The command may have been killed between making it and writing to it.
            let content = fs::read_to_string(&made).unwrap();
            assert!(content == "one\n" || content.is_empty() && !lived.has_written, "{when}");
            fs::remove_file(&made).unwrap();
        } else if has_written {
            sandbox(&["discard", "s"]);
        }
        assert!(!made.exists(), "{when}");
        sandbox(&["rm", "s"]);
    }
    assert_eq!(names_in(&state(world).join("sessions")), ["names.lock"], "{when}");
    assert_eq!(unfinished_files(&state(world)), Vec::<PathBuf>::new(), "{when}");
    let word = |key: &str| session.map(|session| session[key].as_str().unwrap().to_owned());
    word("id").zip(word("state"))
}

/// Kills at the moments of a session's life that are wanted, one session each.
fn kill_at(end: End, is_wanted: impl Fn(&[String]) -> Vec<String>) {
    adopt_orphans();
    let world = World::new();
    let sessions = Sessions::new(&world);
    let lived = live((&world, &sessions), &Fault::list(&world), end);
    let all = listed(&world);
    assert!(lived.has_written);
    let mut ids = vec![lived.id.clone().unwrap()];
    assert_nothing_is_left(&world, &lived, "unharmed", true);
    let wanted = is_wanted(&all);
    assert!(wanted.len() > 5, "{all:?}");
    let mut killed = 0;
    for (number, moment) in wanted.iter().enumerate() {
        let fault = Fault::KillAt(moment.clone());
        let lived = live((&world, &sessions), &fault, end);
        let found = assert_nothing_is_left(&world, &lived, moment, number % 2 == 0);
        killed += usize::from(found.as_ref().is_none_or(|(_, state)| state == "Error"));
        ids.extend(found.map(|(id, _)| id));
    }
    // But for those whose end was written down, or that had lost nobody but their creator.
    assert!(killed + 4 >= wanted.len(), "{killed} of {wanted:?}");
    // The next start has swept what the last one left.
    let last = live((&world, &sessions), &Fault::list(&world), End::Stopped);
    assert_nothing_is_left(&world, &last, "the last one", true);
    assert_eq!(groups_of(&ids), Vec::<PathBuf>::new());
    assert_eq!(names_in(&state(&world).join("run/runs")), [""; 0]);
}

fn ending(all: &[String]) -> usize {
    all.iter().position(|moment| moment == "phase ending#1").unwrap()
}

/// Proves: LIFE-4 crash, LIFE-1 state-machine
#[test]
fn a_session_that_is_killed_while_it_starts_leaves_nothing_but_its_record() {
    kill_at(End::Stopped, |all| {
        let running = all.iter().position(|moment| moment == "phase running#1").unwrap();
        all[..running].to_vec()
    });
}

/// Proves: LIFE-4 crash, LIFE-1 state-machine
#[test]
fn a_session_that_is_killed_while_it_runs_keeps_its_changes_and_nothing_else() {
    kill_at(End::Stopped, |all| {
        let running = all.iter().position(|moment| moment == "phase running#1").unwrap();
        all[running..ending(all)].to_vec()
    });
}

/// Proves: LIFE-4 crash, LIFE-1 state-machine
#[test]
fn a_session_that_is_killed_while_it_is_stopped_keeps_its_changes_and_nothing_else() {
    kill_at(End::Stopped, |all| all[ending(all)..].to_vec());
}

/// Proves: LIFE-4 crash, LIFE-3 kill
#[test]
fn a_session_that_is_killed_twice_keeps_its_changes_and_nothing_else() {
    kill_at(End::Killed, |all| all[ending(all)..].to_vec());
}

/// Proves: LIFE-4 crash, LIFE-4 ttl
#[test]
fn a_session_that_is_killed_while_it_expires_keeps_its_changes_and_nothing_else() {
    kill_at(End::Expired, |all| all[ending(all)..].to_vec());
}
