//! What the client of a sandbox that outlives its commands is told besides their ends: questions, and limits.

use palisade_testkit::control::interface::{Event, Request, Response, StartCommand};
use palisade_testkit::{Session, World, has_control_group};
use serde_json::Value;

use crate::approve_support;
use crate::gate::hidden;

/// Starts a command that reads a hidden file, and waits for its question: its number and text.
fn asked(session: &mut Session, words: &[&str]) -> (u64, String) {
    let output = tempfile::tempfile().unwrap();
    session.start_command(Session::request(words), &output);
    match session.wait_for(|event| matches!(event, Event::QuestionAsked { .. })) {
        Event::QuestionAsked { question, text } => (question, text),
        other => panic!("{other:?}"),
    }
}

/// The answer to it: whether it is a yes, and where that came from.
fn answered(session: &mut Session, asked: u64) -> (bool, String) {
    match session.wait_for(|event| matches!(event, Event::QuestionAnswered { .. })) {
        Event::QuestionAnswered { question, is_allowed, by } => {
            assert_eq!(question, asked);
            (is_allowed, by)
        }
        other => panic!("{other:?}"),
    }
}

/// Proves: LIFE-4 control
#[test]
fn a_question_and_its_answer_are_told() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let mut session = Session::start(&world, &["--ask-in", "approve"]);
    let (question, text) = asked(&mut session, &["cat", &file, "--", "a secret argument"]);
    assert!(text.starts_with("cat (") && text.contains("wants to read"), "{text}");
    assert!(text.contains(&file) && !text.contains("secret argument"), "{text}");
    world.sandbox(["approve", "--yes", &question.to_string()]).run().assert_code(0);
    assert!(answered(&mut session, question).0);
}

/// Proves: LIFE-4 control
#[test]
fn a_question_that_nobody_answers_is_denied_by_time() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let mut session = Session::start(&world, &["--ask-in", "approve", "--ask-timeout", "1"]);
    let (question, _) = asked(&mut session, &["cat", &file]);
    assert_eq!(answered(&mut session, question), (false, "timeout".to_owned()));
}

/// Proves: LIFE-4 control
#[test]
fn a_question_of_a_further_command_names_no_process_of_the_host() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let mut session = Session::start(&world, &["--ask-in", "approve"]);
    let script = format!("cat '{file}'; true");
    asked(&mut session, &["sh", "-c", &script]);
    let list = || world.sandbox(["approve", "--json"]).run();
    let questions = approve_support::questions(1, list);
    let ancestors = questions[0]["processes"][0]["ancestors"].as_array().unwrap();
    let names: Vec<&str> =
        ancestors.iter().filter_map(|ancestor| ancestor["name"].as_str()).collect();
    assert_eq!(names, ["sh"], "{:?}", Value::from(ancestors.clone()));
}

/// Proves: LIFE-4 control
#[test]
fn a_limit_that_is_reached_is_told_before_the_end() {
    if !has_control_group() {
        return;
    }
    let world = World::new();
    let mut session = Session::start(&world, &["--memory", "64M"]);
    let output = tempfile::tempfile().unwrap();
    let script = "x = b'x' * (256 << 20)";
    session.start_command(Session::request(&["/usr/bin/python3", "-c", script]), &output);
    let limit = session.wait_for(|event| matches!(event, Event::LimitReached { .. }));
    assert_eq!(limit, Event::LimitReached { limit: "memory".to_owned() });
    let ended = loop {
        if let Event::Ended { exit_code, .. } = session.client.next_event().unwrap() {
            break exit_code;
        }
    };
    assert_eq!(ended, 137);
}

/// Entering a directory that is not granted waits for an answer, and that is before the exec.
///
/// Proves: LIFE-4 control
#[test]
fn a_command_that_is_killed_before_its_exec_has_not_started() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let mut session = Session::start(&world, &["--ask-in", "approve"]);
    let directory = std::path::Path::new(&file).parent().unwrap().to_owned();
    let output = tempfile::tempfile().unwrap();
    let start = StartCommand { cwd: Some(directory), ..Session::request(&["true"]) };
    let command = session.start_command(start, &output);
    session.wait_for(|event| matches!(event, Event::QuestionAsked { .. }));
    let kill = Request::Signal { command, signal: 9 };
    assert_eq!(session.client.ask(&kill, &[]).unwrap().0, Response::Done);
    let event = session.wait_for(|event| {
        matches!(event, Event::CommandStarted { .. } | Event::CommandFailed { .. })
    });
    assert!(matches!(event, Event::CommandFailed { exit_code: 125, .. }), "{event:?}");
}
