use super::*;
use palisade_ask::{FileSubject, Process};
use std::path::PathBuf;

fn question(path: &str) -> Question {
    Question {
        id: QuestionId(3),
        session: "s".to_owned(),
        subject: Subject::File(FileSubject {
            path: PathBuf::from(path),
            access: Access::Read,
            operation: "openat".to_owned(),
            is_directory: false,
            also: Vec::new(),
            directory: Some("/opt/sdk".into()),
        }),
        reason: "nothing grants it".to_owned(),
        processes: vec![Process {
            pid: 42,
            executable: "/usr/bin/cat".to_owned(),
            arguments: Vec::new(),
            cwd: "/".to_owned(),
            ancestors: Vec::new(),
        }],
        requests: vec![1],
        is_secret: false,
        asked_at: jiff::Timestamp::UNIX_EPOCH,
        expires_at: None,
    }
}

fn secret() -> Question {
    let mut question = question("/home/u/.ssh/id_ed25519");
    question.is_secret = true;
    let Subject::File(file) = &mut question.subject;
    file.directory = None;
    question
}

fn pressed(keys: &[u8], question: &Question, after: Duration) -> Pressed {
    let now = Instant::now();
    Prompt::new(question.id, now).press(keys, question, now + after)
}

/// Proves: GATE-8 one-line
#[test]
fn a_question_says_who_wants_what_and_which_keys_there_are() {
    let shown = line(&question("/opt/sdk/a.h"), 2, Colour::No);
    assert_eq!(
        shown,
        "\r\n? cat (42) wants to read /opt/sdk/a.h\r\n  directory: /opt/sdk/**\r\n  2 more waiting, \
         also in `sandbox approve`\r\n  y once  s session  a always  d dir  D dir always  n no  x never \
         "
    );
    assert!(!shown.contains('\x1b'));
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_secret_is_red_and_neither_for_good_nor_with_its_directory() {
    let shown = line(&secret(), 0, Colour::Yes);
    assert!(shown.contains("\x1b[1;31mthe secret /home/u/.ssh/id_ed25519"), "{shown:?}");
    for key in *b"adD" {
        assert_eq!(pressed(&[key], &secret(), Duration::from_secs(5)), Pressed::NotForUs);
    }
}

/// Proves: GATE-8 type-ahead
#[test]
fn keys_typed_before_the_question_could_be_read_are_the_commands() {
    let question = question("/opt/sdk/a.h");
    assert_eq!(pressed(b"y", &question, Duration::from_millis(100)), Pressed::NotForUs);
    assert_eq!(pressed(b"yes", &question, Duration::from_secs(9)), Pressed::NotForUs, "pasted");
    let once = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
    assert_eq!(pressed(b"y", &question, Duration::from_secs(1)), Pressed::Answer(once));
    assert_eq!(pressed(b"q", &question, Duration::from_secs(1)), Pressed::NotForUs);
    assert_eq!(pressed(&[0x03], &question, Duration::ZERO), Pressed::Interrupt);
}

/// Proves: GATE-8 type-ahead
#[test]
fn somebody_in_the_middle_of_a_word_answers_nothing() {
    let question = question("/opt/sdk/a.h");
    let start = Instant::now();
    let mut prompt = Prompt::new(question.id, start);
    let at = |millis| start + Duration::from_millis(millis);
    assert_eq!(prompt.press(b"c", &question, at(2000)), Pressed::NotForUs);
    assert_eq!(prompt.press(b"a", &question, at(2150)), Pressed::NotForUs);
    assert_eq!(prompt.press(b"n", &question, at(2300)), Pressed::NotForUs);
    let no = Answer::Deny { lifetime: Lifetime::Session };
    assert_eq!(prompt.press(b"n", &question, at(2900)), Pressed::Answer(no));
}

/// Attack H03. Proves: GATE-2 true-path
#[test]
fn what_comes_from_inside_can_not_draw_on_the_screen() {
    let mut hostile = question("/opt/\x1b[2J\u{202e}evil\r\nyes");
    hostile.processes[0].executable = "/tmp/\x1b]52;c;aGk=\x07".to_owned();
    let shown = line(&hostile, 0, Colour::No);
    assert!(!shown.contains('\x1b') && !shown.contains('\u{202e}') && !shown.contains('\x07'));
    assert!(shown.contains("\\x1b[2J\\u{202e}evil\\r\\nyes"), "{shown:?}");
    assert!(!notice(&hostile).contains(['\x1b', '\n']));
}
