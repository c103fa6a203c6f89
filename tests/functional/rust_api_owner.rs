//! A sandbox belongs to the life of the program that made it, also where that program is killed: for the Rust API and for
//! `sandbox fork --hold`.

use std::time::Duration;

use palisade_testkit::{World, is_alive, patiently};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rust_api::run_example;
use crate::sessions_support::{Sessions, adopt_orphans, descendants, wait_for_end, wait_until};

/// Ids of the sandboxes that run.
fn running(sessions: &Sessions<'_>) -> Vec<String> {
    let listed = sessions.sandbox(&["ps", "--json"]);
    listed.assert_code(0);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let listed = listed["sessions"].as_array().unwrap();
    listed.iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect()
}

/// Proves: TOOL-1 rust-owner
#[test]
fn a_sandbox_ends_with_a_program_that_is_killed() {
    adopt_orphans();
    let world = World::new();
    let sessions = Sessions::new(&world);
    let mut program = run_example(&world, "agent_tools").keep_stdin_open().spawn();
    let call = json!({ "tool": "bash", "command": "sleep 1000 & echo started > made" });
    program.send(format!("{call}\n").as_bytes());
    program.wait_for_stdout("exitCode");
    let ids = running(&sessions);
    assert_eq!(ids.len(), 1);
    let supervisor = sessions.supervisor(&ids[0]);
    let inside = descendants(supervisor);
    assert!(!inside.is_empty());
    program.signal(Signal::KILL);
    drop(program.wait());
    wait_for_end(&inside);
    wait_until("the sandbox has ended", || running(&sessions).is_empty());
    wait_until("its supervisor is gone", || !is_alive(supervisor));
    let diff = sessions.sandbox(&["diff", "--name-only", &ids[0]]);
    assert_eq!(diff.out(), "made\n", "its changes wait: {}", diff.err());
}

/// Proves: TOOL-1 rust-owner, LIFE-5 fork
#[test]
fn a_fork_ends_with_the_input_of_its_caller() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let work = sessions.create(&["--name", "work", "--transaction"]);
    sessions.output_of(&work, &["sh", "-c", "echo one > made"]);
    let fork = world.sandbox(["fork", "--json", "--hold", "--name", "other", "work"]);
    let fork = fork.keep_stdin_open().deadline(patiently(Duration::from_secs(60))).spawn();
    fork.wait_for_stdout("\"id\"");
    assert_eq!(running(&sessions).len(), 2);
    assert_eq!(sessions.output_of("other", &["cat", "made"]), "one\n");
    let output = fork.wait();
    output.assert_code(0);
    let made: Value = serde_json::from_str(output.out().trim()).unwrap();
    assert_eq!((&made["name"], output.out().lines().count()), (&json!("other"), 1));
    assert_eq!(running(&sessions), [work]);
    assert!(output.err().contains("changes wait in session other"), "{}", output.err());
}
