//! `sandbox hook`: an agent asks before it runs a command, and runs what it is answered.

use crate::sessions_support::{Sessions, wait_until};
use palisade_testkit::{Output, World, sandbox_program};
use serde_json::{Value, json};

fn ask(world: &World, words: &[&str], event: &Value) -> Output {
    world.sandbox(["hook"]).args(words).stdin(event.to_string()).run()
}

fn before(world: &World, command: &str) -> Value {
    json!({
        "session_id": "0199-abc", "transcript_path": "/x.jsonl", "cwd": world.project(),
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": command, "description": "d", "timeout": 120_000 },
        "tool_use_id": "toolu_1",
    })
}

/// What the agent's own shell prints when it runs what it was answered.
fn run_answer(world: &World, answer: &Output) -> Output {
    answer.assert_code(0);
    let answer: Value = serde_json::from_str(&answer.out()).unwrap();
    let answer = &answer["hookSpecificOutput"];
    assert_eq!(answer["permissionDecision"], "allow", "{answer}");
    assert_eq!(answer["updatedInput"]["timeout"], 120_000, "{answer}");
    world.bare("sh").args(["-c", answer["updatedInput"]["command"].as_str().unwrap()]).run()
}

/// Proves: TOOL-6 hooks
#[test]
fn an_agents_commands_run_in_one_session_that_ends_with_it() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    world.write("home/.ssh/id", "top secret\n");
    let script = "echo \"in ${SANDBOX-none}\" 'a  b'; cat ~/.ssh/id; echo kept > /tmp/kept; exit 7";
    for agent in ["claude", "codex"] {
        let done = run_answer(&world, &ask(&world, &[agent], &before(&world, script)));
        assert_eq!((done.out().as_ref(), done.code()), ("in 1 a  b\n", 7), "{}", done.err());
        let same =
            run_answer(&world, &ask(&world, &[agent], &before(&world, "cat /tmp/kept; pwd")));
        assert_eq!(same.out(), format!("kept\n{}\n", world.project().display()));
        let name = format!("{agent}-0199-abc");
        assert!(sessions.inspect(&name)["id"].is_string());
        let end = json!({
            "session_id": "0199-abc", "cwd": world.project(), "hook_event_name": "SessionEnd", "reason": "exit",
        });
        let ended = ask(&world, &[agent], &end);
        assert_eq!((ended.out().as_ref(), ended.code()), ("", 0), "{}", ended.err());
        wait_until("it has ended", || !sessions.sandbox(&["ps"]).out().contains(&name));
    }
    let read = json!({
        "session_id": "0199-abc", "cwd": world.project(), "hook_event_name": "PreToolUse", "tool_name": "Read",
        "tool_input": { "file_path": "/etc/passwd" },
    });
    let other = ask(&world, &["claude"], &read);
    assert_eq!((other.out().as_ref(), other.code()), ("", 0), "{}", other.err());
}

/// Proves: TOOL-6 hooks
#[test]
fn a_command_for_which_there_is_no_sandbox_is_denied() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    for (words, event) in [
        (&["claude", "--", "--preset", "nonsense"][..], before(&world, "true").to_string()),
        (&["claude"], "not an event".to_owned()),
        (&["codex"], before(&world, "true").to_string().replace("command", "other")),
        (&["codex", "--ask"], before(&world, "true").to_string()),
    ] {
        let denied = world.sandbox(["hook"]).args(words).stdin(event).run();
        assert_eq!((denied.out().as_ref(), denied.code()), ("", 2), "{words:?}");
        assert!(denied.err().contains("was not run"), "{}", denied.err());
    }
    for wrong in [&["gemini"][..], &["claude", "--nonsense"]] {
        let denied = world.sandbox(["hook"]).args(wrong).stdin("{}").run();
        assert_eq!((denied.out().as_ref(), denied.code()), ("", 2), "{wrong:?}");
    }
    let event = world.write("event.json", before(&world, "true").to_string());
    for nobody in ["/dev/full", "/dev/null"] {
        let script = format!(
            "exec {} hook claude < {} > {nobody}",
            sandbox_program().display(),
            event.display()
        );
        let denied = world.bare("sh").args(["-c", &script]).run();
        assert_eq!(denied.code(), 2, "{nobody}: {}", denied.err());
    }
    world.sandbox(["stop", "claude-0199-abc"]).run().assert_code(0);
    drop(sessions);
}

/// The settings name this program, and what they name is what answers.
///
/// Proves: TOOL-6 hooks
#[test]
fn the_settings_that_are_printed_work() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let options = ["claude", "--settings", "--", "--env", "GREETING=good day"];
    let printed: Value =
        serde_json::from_str(&world.sandbox(["hook"]).args(options).run().out()).unwrap();
    let hook = &printed["hooks"]["PreToolUse"][0];
    assert_eq!(hook["matcher"], "Bash");
    let line = hook["hooks"][0]["command"].as_str().unwrap();
    let event = before(&world, "echo $GREETING").to_string();
    let answer = world.bare("sh").args(["-c", line]).stdin(event).run();
    assert_eq!(run_answer(&world, &answer).out(), "good day\n", "{line}");
    drop(sessions);
}
