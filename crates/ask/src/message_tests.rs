use super::{
    Approve, Audit, ClientCommand, Deny, FsRequest, Request, ServerEvent, Term, TermError,
};
use crate::test_support::{MAX_OPEN, call, connection};
use crate::{Answer, Lifetime, Now, Question, QuestionId, Queue, Scope, Source, Store, to_line};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

fn parse(line: &str) -> ClientCommand {
    serde_json::from_str(line).unwrap()
}

fn approved(line: &str) -> Result<Answer, TermError> {
    match parse(line) {
        ClientCommand::Approve(approve) => approve.answer(),
        ClientCommand::Deny(deny) => deny.answer(),
        other => panic!("{other:?}"),
    }
}

/// Proves: GATE-6 messages, GATE-4 once, GATE-4 session, GATE-4 always, GATE-4 stores
#[test]
fn an_answer_is_said_in_short_or_in_full() {
    let allow = |scope, lifetime| Ok(Answer::Allow { scope, lifetime });
    let deny = |lifetime| Ok(Answer::Deny { lifetime });
    let table = [
        (r#"{"type":"cmd.approve","id":1}"#, allow(Scope::File, Lifetime::Once)),
        (
            r#"{"type":"cmd.approve","id":1,"scope":"file","persist":false}"#,
            allow(Scope::File, Lifetime::Once),
        ),
        (
            r#"{"type":"cmd.approve","id":1,"scope":"file","persist":true}"#,
            allow(Scope::File, Lifetime::Always(Store::User)),
        ),
        (
            r#"{"type":"cmd.approve","id":1,"scope":"dir","persist":false}"#,
            allow(Scope::Directory, Lifetime::Session),
        ),
        (
            r#"{"type":"cmd.approve","id":1,"lifetime":"session","scope":"file"}"#,
            allow(Scope::File, Lifetime::Session),
        ),
        (
            r#"{"type":"cmd.approve","id":1,"persist":true,"lifetime":"always","store":"project"}"#,
            allow(Scope::File, Lifetime::Always(Store::Project)),
        ),
        (
            r#"{"type":"cmd.approve","id":1,"lifetime":"always","store":"org"}"#,
            allow(Scope::File, Lifetime::Always(Store::Organisation)),
        ),
        (r#"{"type":"cmd.deny","id":1}"#, deny(Lifetime::Session)),
        (r#"{"type":"cmd.deny","id":1,"lifetime":"once"}"#, deny(Lifetime::Once)),
        (r#"{"type":"cmd.deny","id":1,"persist":true}"#, deny(Lifetime::Always(Store::User))),
        (
            r#"{"type":"cmd.approve","id":1,"persist":true,"lifetime":"once"}"#,
            Err(TermError::Contradiction),
        ),
        (
            r#"{"type":"cmd.approve","id":1,"persist":false,"lifetime":"always"}"#,
            Err(TermError::Contradiction),
        ),
        (r#"{"type":"cmd.deny","id":1,"store":"user"}"#, Err(TermError::StoreForNothing)),
    ];
    for (line, expected) in table {
        assert_eq!(approved(line), expected, "{line}");
    }
}

#[test]
fn what_is_not_understood_is_not_guessed() {
    for line in [
        r#"{"type":"cmd.approve"}"#,
        r#"{"type":"cmd.approve","id":"1"}"#,
        r#"{"type":"cmd.approve","id":-1}"#,
        r#"{"type":"cmd.approve","id":1,"scope":"directory"}"#,
        r#"{"type":"cmd.approve","id":1,"id":2}"#,
        r#"{"type":"cmd.approve","id":1,"scope":"file","scope":"dir"}"#,
        r#"{"type":"cmd.approve","id":1,"persist":false,"persist":true}"#,
        r#"{"type":"cmd.approve","id":1,"persist":"yes"}"#,
        r#"{"type":"cmd.deny","id":1,"lifetime":"forever"}"#,
        r#"{"type":"cmd.policy.save","scope":"everybody"}"#,
        r#"{"type":"cmd.policy.save"}"#,
        r#"["cmd.approve",1]"#,
    ] {
        assert!(serde_json::from_str::<ClientCommand>(line).is_err(), "{line}");
    }
}

#[test]
fn answers_come_back_as_they_were_sent() {
    let id = QuestionId(3);
    for lifetime in [Lifetime::Once, Lifetime::Session, Lifetime::Always(Store::Organisation)] {
        for answer in [
            Answer::Allow { scope: Scope::File, lifetime },
            Answer::Allow { scope: Scope::Directory, lifetime },
            Answer::Deny { lifetime },
        ] {
            let line = to_line(&ClientCommand::answering(id, answer)).unwrap();
            assert_eq!(approved(&line), Ok(answer), "{line}");
        }
    }
    assert_eq!(
        parse(r#"{"type":"cmd.deny","id":3}"#),
        ClientCommand::Deny(Deny { id, term: Term::default() })
    );
    assert!(matches!(
        parse(r#"{"type":"cmd.approve","id":3,"scope":"dir","flavour":"new"}"#),
        ClientCommand::Approve(Approve { scope: Some(Scope::Directory), .. })
    ));
}

fn asked(path: &[u8]) -> Question {
    let now = Now::read();
    let mut queue = Queue::new("0192-session", MAX_OPEN);
    let mut new = call(1 << 63, "");
    let file = new.subject.file_mut().unwrap();
    file.path = PathBuf::from(OsStr::from_bytes(path));
    file.directory = file.path.parent().map(PathBuf::from);
    queue.ask(new, now);
    queue.open().next().unwrap().clone()
}

fn wire(question: &Question) -> FsRequest {
    match Request::from(question) {
        Request::File(file) => *file,
        Request::Host(host) => panic!("{host:?}"),
    }
}

/// Proves: GATE-6 messages, NET-8 asked
#[test]
fn a_question_about_a_host_goes_over_the_wire_whole() {
    let now = Now::read();
    let mut queue = Queue::new("0192-session", MAX_OPEN);
    queue.ask(connection(9, "bücher\x1b.example"), now);
    let question = queue.open().next().unwrap().clone();
    let line = to_line(&ServerEvent::from(Request::from(&question))).unwrap();
    assert!(line.starts_with(r#"{"type":"event.host_request","id":1,"#), "{line}");
    assert!(line.is_ascii() && !line.contains('\x1b'), "{line}");
    let ServerEvent::HostRequest(wire) = serde_json::from_str(&line).unwrap() else {
        panic!("{line}")
    };
    assert_eq!(Question::from(*wire), question);
    let deny = Answer::Deny { lifetime: Lifetime::Session };
    let decided = queue.answer(QuestionId(1), deny, &Source::Terminal, now).unwrap();
    let written = serde_json::to_value(ServerEvent::Audit(Audit::from(&decided[0]))).unwrap();
    assert_eq!(
        (&written["host"], &written["port"], written.get("path")),
        (&serde_json::json!("bücher\x1b.example"), &serde_json::json!(443), None)
    );
}

/// Proves: GATE-6 messages
#[test]
fn a_question_goes_over_the_wire_whole() {
    for path in [&b"/opt/sdk/a"[..], b"/opt/\xff\xfe/\n\x1b[31m", "/opt/\u{202e}/ü".as_bytes()] {
        let question = asked(path);
        let line = to_line(&ServerEvent::from(Request::from(&question))).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.is_ascii() && !line.contains('\x1b'), "{line}");
        let ServerEvent::FsRequest(wire) = serde_json::from_str(&line).unwrap() else {
            panic!("{line}")
        };
        assert_eq!(wire.path_bytes.is_some(), std::str::from_utf8(path).is_err());
        assert_eq!(Question::from(*wire), question);
    }
}

#[test]
fn bytes_that_are_none_leave_the_text() {
    let mut wire = wire(&asked(b"/opt/sdk/a"));
    for digits in ["abc", "zz", "é1", "+1"] {
        wire.path_bytes = Some(digits.to_owned());
        let question = Question::from(wire.clone());
        let file = question.subject.file().unwrap();
        assert_eq!(file.path, PathBuf::from("/opt/sdk/a"), "{digits}");
    }
}

#[test]
fn a_secret_offers_no_directory_on_the_wire() {
    let mut question = asked(b"/opt/sdk/a");
    question.is_secret = true;
    assert_eq!(wire(&question).directory, None);
}

/// Proves: GATE-6 messages
#[test]
fn a_decision_says_who_and_how_long() {
    let now = Now::read();
    let mut queue = Queue::new("s", MAX_OPEN);
    queue.ask(call(1, "/opt/sdk/a"), now);
    let source = Source::Socket { uid: 1000, pid: 42, name: "editor".to_owned() };
    let answer = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Always(Store::Project) };
    let decided = queue.answer(QuestionId(1), answer, &source, now).unwrap();
    let written: serde_json::Value =
        serde_json::from_str(&to_line(&ServerEvent::Audit(Audit::from(&decided[0]))).unwrap())
            .unwrap();
    assert_eq!(
        written,
        serde_json::json!({
            "type": "event.audit", "id": 1, "decision": "allow", "scope": "file",
            "lifetime": "always", "store": "project", "source": "socket",
            "by": { "uid": 1000, "pid": 42, "name": "editor" },
            "path": "/opt/sdk/a", "ts": now.wall.to_string(),
        })
    );
}

#[test]
fn events_of_a_later_version_are_passed_over() {
    let event: ServerEvent =
        serde_json::from_str(r#"{"type":"event.moon_request","id":1}"#).unwrap();
    assert_eq!(event, ServerEvent::Unknown);
}

/// Proves: GATE-6 messages
#[test]
fn the_example_in_the_documentation_is_spoken() {
    let page = include_str!("../../../docs/protocol.md");
    let (mut events, mut commands) = (0, 0);
    for line in page.lines() {
        if let Some(event) = line.strip_prefix("    <- ") {
            let spoken: ServerEvent = serde_json::from_str(event).unwrap();
            assert_eq!(to_line(&spoken).unwrap().trim_end(), event);
            events += 1;
        } else if let Some(command) = line.strip_prefix("    -> ") {
            parse(command);
            commands += 1;
        }
    }
    assert_eq!((events, commands), (7, 2));
    for name in ["hello", "approve", "deny", "policy.save"] {
        assert!(page.contains(&format!("### `cmd.{name}`")), "{name} is not described");
    }
}
