//! The Rust API with real sandboxes: its examples, run as a reader of its page would run them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use palisade_testkit::{Invocation, World, example, patiently, sandbox_program};
use serde_json::{Value, json};

use crate::sessions_support::Sessions;

const PAGE: &str = include_str!("../../docs/rust-api.md");

pub(crate) fn run_example(world: &World, name: &str) -> Invocation {
    let program = world.bare(example(name)).env("PALISADE_SANDBOX", sandbox_program());
    program.deadline(patiently(Duration::from_secs(120)))
}

/// No sandbox and nothing of one.
#[track_caller]
fn assert_nothing_is_left(sessions: &Sessions<'_>) {
    let listed = sessions.sandbox(&["ps", "--all", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed, json!({ "sessions": [] }));
}

/// Proves: TOOL-1 rust, TOOL-1 typed-result, ERR-1 rust
#[test]
fn every_call_does_what_it_says() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let output = run_example(&world, "every_call").run();
    assert_eq!((output.code(), &*output.err()), (0, ""), "{}", output.out());
    let left = fs::read_dir(world.project()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["kept"], "only what was applied is in the project");
    assert_nothing_is_left(&sessions);
}

/// Proves: TOOL-1 rust, TOOL-1 typed-result, TOOL-3 same-plan
#[test]
fn the_tools_of_an_agent_share_one_sandbox() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    world.write_in_project("notes", "a note\n");
    let calls = [
        json!({ "tool": "bash", "command": "cat notes; echo told >&2; exit 4" }),
        json!({ "tool": "write", "path": "sub/made", "content": "made\n" }),
        json!({ "tool": "bash", "command": "cat sub/made" }),
        json!({ "tool": "read", "path": "sub/made" }),
        json!({ "tool": "list", "path": "sub" }),
        json!({ "tool": "write", "path": "/usr/made", "content": "" }),
        json!({ "tool": "read", "path": "nothing" }),
        json!({ "tool": "fly" }),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let output = run_example(&world, "agent_tools").stdin(lines).run();
    output.assert_code(0);
    let answers: Vec<Value> =
        output.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), calls.len(), "{}", output.out());
    let bash = &answers[0];
    assert_eq!((&bash["exitCode"], &bash["stdout"]), (&json!(4), &json!("a note\n")));
    assert_eq!((&bash["stderr"], &bash["denied"]), (&json!("told\n"), &json!([])));
    assert_eq!(answers[1], json!({ "written": 5 }));
    assert_eq!(answers[2]["stdout"], "made\n");
    assert_eq!(answers[3], json!({ "content": "made\n" }));
    assert_eq!(answers[4], json!({ "entries": ["made"] }));
    assert_eq!(answers[5]["kind"], "security", "{}", answers[5]);
    assert_eq!(answers[6]["kind"], "validation", "{}", answers[6]);
    assert!(answers[7]["error"].as_str().unwrap().contains("fly"), "{}", answers[7]);
    assert!(!world.project().join("sub").exists(), "the project changed before an apply");
    let told = output.err();
    let id = told.trim().rsplit(' ').next().unwrap();
    assert!(told.contains("2 changes wait in sandbox "), "{told}");
    let diff = sessions.sandbox(&["diff", "--name-only", id]);
    assert_eq!(diff.out(), "sub/made\n", "{}", diff.err());
}

/// Proves: TOOL-1 rust, TOOL-2 as-shown
#[test]
fn what_was_reviewed_is_what_is_applied() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let review = |answer: &str| {
        let words = ["sh", "-c", "echo made > made; echo done"];
        let output = run_example(&world, "review_and_apply").args(words).stdin(answer).run();
        output.assert_code(0);
        output.out().into_owned()
    };
    assert_eq!(review("n\n"), "done\nAdded \"made\"\napply? nothing was applied\n");
    assert!(!world.project().join("made").exists());
    assert_eq!(review("y\n"), "done\nAdded \"made\"\napply? 1 paths applied\n");
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "made\n");
    assert_nothing_is_left(&sessions);
}

/// Proves: TOOL-1 rust, TOOL-2 socket, TOOL-2 one-queue
#[test]
fn a_program_answers_the_questions_of_its_sandbox() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let allowed = world.write("outside/allowed/file", "asked for\n");
    let denied = world.write("outside/denied/file", "not for you\n");
    let ask = |line: String| {
        let readable = world.outside().join("allowed");
        let output = run_example(&world, "answer_questions").arg(readable).arg(line).run();
        output.assert_code(0);
        (output.out().into_owned(), output.err().into_owned())
    };
    let read = |path: &Path| format!("cat {} 2>&1", path.display());
    let (said, told) = ask(read(&allowed));
    assert_eq!(said, "asked for\nexit code 0\n", "{told}");
    assert!(told.contains("allowed: ") && !told.contains("denied: "), "{told}");
    let (said, told) = ask(read(&denied));
    assert!(said.contains("Permission denied\nexit code 1\n"), "{said}{told}");
    assert!(told.contains("denied: ") && !told.contains("allowed: "), "{told}");
    // Reading there is allowed, and nothing else.
    let (said, told) = ask(format!("echo x 2>&1 > {}", allowed.display()));
    assert!(!said.contains("exit code 0"), "{said}{told}");
    assert_eq!(fs::read_to_string(allowed).unwrap(), "asked for\n");
    assert_nothing_is_left(&sessions);
}

/// The page shows parts of the examples word by word, so that what it shows is what was run here. Its other blocks are compiled as doctests.
/// Proves: TOOL-1 rust
#[test]
fn the_page_shows_what_the_examples_do() {
    let source = |name: &str| match name {
        "agent_tools" => include_str!("../../crates/api/examples/agent_tools.rs"),
        "answer_questions" => include_str!("../../crates/api/examples/answer_questions.rs"),
        "review_and_apply" => include_str!("../../crates/api/examples/review_and_apply.rs"),
        other => panic!("no example is called {other}"),
    };
    let shown: Vec<&str> = PAGE.split("<!-- from ").skip(1).collect();
    assert_eq!(shown.len(), 3);
    for part in shown {
        let (name, rest) = part.split_once(" -->\n```rust,no_run\n").unwrap();
        let (block, _) = rest.split_once("```").unwrap();
        // What it needs from elsewhere stands at the beginning of the file there.
        let (uses, code) = block.split_once("\n\n").unwrap();
        assert!(uses.lines().all(|line| line.starts_with("use ")), "{uses}");
        assert!(source(name).contains(code.trim()), "{name} does not have:\n{code}");
    }
}
