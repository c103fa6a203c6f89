//! A look at Palisade's own directories is an indicator (ESC-1), whoever looks, however short-lived, and only if a command does.

use palisade_testkit::World;
use serde_json::Value;

use crate::escape_response::events;
use crate::sessions_support::Sessions;

/// A program that is gone as soon as it has looked.
const LOOK: [&str; 3] = ["sh", "-c", "exec cat ~/.local/state/palisade/canary"];

fn traversals(world: &World) -> Vec<Value> {
    let attempts = events(world, "ESCAPE_ATTEMPT").into_iter();
    attempts.filter(|attempt| attempt["id"] == "filesystem.traversal").collect()
}

/// Proves: ESC-1 indicators
#[test]
fn who_is_gone_at_once_was_seen_all_the_same() {
    for round in 1..=5 {
        let world = World::new();
        world.sandbox_run(["--on-ask", "deny"], LOOK).run().assert_code(1);
        let seen = traversals(&world);
        assert_eq!(seen.len(), 1, "round {round}: {seen:?}");
        let text = seen[0]["description"].as_str().unwrap();
        assert!(text.contains("by /usr/bin/cat") || text.contains("by /bin/cat"), "{text}");
    }
}

/// What Palisade itself looks for before the first command is no attempt, and does not hide those of commands.
///
/// Proves: ESC-1 indicators
#[test]
fn in_a_session_only_what_a_command_does_counts() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let work = sessions.create(&["--on-ask", "deny"]);
    sessions.output_of(&work, &["true"]);
    assert_eq!(traversals(&world), Vec::<Value>::new());
    sessions.sandbox(&[&["exec", &work, "--"], &LOOK[..]].concat()).assert_code(1);
    sessions.sandbox(&["stop", &work]).assert_code(0);
    assert_eq!(traversals(&world).len(), 1);
}
