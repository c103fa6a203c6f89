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
    let file = question.subject.file_mut().unwrap();
    file.directory = None;
    question
}

fn page(colour: Colour) -> Page {
    Page { columns: 80, rows: 24, colour }
}

/// What a person reads: without the sequences in front.
fn read(text: &str) -> &str {
    text.strip_prefix(RESET)
        .unwrap()
        .strip_prefix("\r\n")
        .unwrap()
        .strip_prefix(CLEAR_BELOW)
        .unwrap()
}

/// A question that the terminal has taken at this time.
fn shown_at(question: &Question, now: Instant) -> Prompt {
    let mut prompt = Prompt::new(question.id, "text".to_owned());
    prompt.wrote(4, Delivery::Done, now);
    prompt
}

fn pressed(keys: &[u8], question: &Question, after: Duration) -> Pressed {
    let now = Instant::now();
    shown_at(question, now).press(keys, question, now + after)
}

/// Proves: GATE-8 one-line
#[test]
fn a_question_says_who_wants_what_and_which_keys_there_are() {
    let shown = line(&question("/opt/sdk/a.h"), 2, page(Colour::No));
    assert_eq!(
        read(&shown),
        "? cat (42) wants to read /opt/sdk/a.h\r\n  directory: /opt/sdk/**\r\n  2 more waiting, \
         also in `sandbox approve`\r\n  y once  s session  a always  d dir  D dir always  n no  x never \
         "
    );
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_secret_is_red_and_neither_for_good_nor_with_its_directory() {
    let shown = line(&secret(), 0, page(Colour::Yes));
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
    let mut prompt = shown_at(&question, start);
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
    let shown = line(&hostile, 0, page(Colour::No));
    let shown = read(&shown);
    assert!(!shown.contains('\x1b') && !shown.contains('\u{202e}') && !shown.contains('\x07'));
    assert!(shown.contains("\\x1b[2J\\u{202e}evil\\r\\nyes"), "{shown:?}");
    assert!(!notice(&hostile).contains(['\x1b', '\n']));
}

/// Proves: GATE-8 question-visible
#[test]
fn an_earlier_output_has_no_hold_on_the_question_with_or_without_colours() {
    for colour in [Colour::Yes, Colour::No] {
        let shown = line(&question("/opt/sdk/a.h"), 0, page(colour));
        let before = shown.split("\r\n").next().unwrap();
        assert!(before.starts_with("\x18\x1b\\"), "first of all an open string ends: {before:?}");
        let at = |sequence: &str| before.find(sequence).unwrap_or_else(|| panic!("{sequence:?}"));
        let (saved, restored) = (at("\x1b7"), at("\x1b8"));
        for homing in ["\x1b[r", "\x1b[?6l", "\x1b[?69l"] {
            assert!(saved < at(homing) && at(homing) < restored, "{homing:?} moves the cursor");
        }
        for attribute in ["\x1b[0m", "\x1b(B", "\x0f", "\x1b[?7h", "\x1b[?25h", "\x1b[4l"] {
            assert!(at(attribute) > restored, "{attribute:?} would be undone");
        }
    }
}

/// Proves: GATE-8 question-visible, GATE-8 type-ahead
#[test]
fn a_key_is_no_answer_to_what_the_terminal_has_not_taken() {
    let question = question("/opt/sdk/a.h");
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut prompt = Prompt::new(question.id, "question".to_owned());
    prompt.wrote(3, Delivery::Done, at(0));
    assert_eq!(prompt.unwritten(), b"stion");
    assert_eq!(prompt.press(b"y", &question, at(5)), Pressed::NotForUs, "the half of it");
    assert_eq!(prompt.press(&[0x03], &question, at(5)), Pressed::Interrupt);
    prompt.wrote(5, Delivery::UnderWay, at(6));
    assert!(prompt.unwritten().is_empty() && !prompt.is_shown());
    assert_eq!(prompt.press(b"y", &question, at(8)), Pressed::NotForUs, "on a slow line");
    prompt.wrote(0, Delivery::Done, at(9));
    let soon = at(9) + Duration::from_millis(300);
    assert_eq!(prompt.press(b"y", &question, soon), Pressed::NotForUs, "just arrived");
    assert!(matches!(prompt.press(b"y", &question, at(10)), Pressed::Answer(_)));
}

/// Attack H03. Proves: GATE-8 question-visible
#[test]
fn a_programs_name_does_not_speak_for_us() {
    let mut hostile = question("/opt/sdk/a.h");
    hostile.processes[0].executable = "/p/npm (7) wants to read /etc/motd".to_owned();
    // What stands behind the last slash is the name.
    assert!(program(&hostile).starts_with("motd ("));
    for (name, shown) in [
        ("npm (7) wants to read x", "'npm (7) wants to read x' (42)".to_owned()),
        ("it's", "'it'\\''s' (42)".to_owned()),
        (&"a".repeat(32), format!("{} (42)", "a".repeat(32))),
        (&"a".repeat(33), format!("'{}…' (42)", "a".repeat(32))),
        (&"\x1b".repeat(9), format!("'{}…' (42)", "\\x1b".repeat(8))),
    ] {
        hostile.processes[0].executable = format!("/tmp/{name}");
        assert_eq!(program(&hostile), shown);
        assert!(notice(&hostile).contains(&shown));
    }
}

/// Rows that a text takes on a terminal that wraps.
fn rows_of(text: &str, columns: usize) -> usize {
    text.split("\r\n").map(|row| columns_of(row).div_ceil(columns).max(1)).sum()
}

/// Proves: GATE-8 question-visible
#[test]
fn of_the_longest_path_the_end_and_the_keys_are_on_the_screen() {
    let deep = format!("/srv/{}secret.txt", "very-long-directory-name/".repeat(150));
    let wide = format!("/srv/{}secret.txt", "漢字漢字/".repeat(300));
    for path in [&deep, &wide] {
        let mut question = question(path);
        question.processes[0].executable =
            "/bin/it's ' a ' long ' name ' of a ' program".to_owned();
        let file = question.subject.file_mut().unwrap();
        file.directory = file.path.parent().map(PathBuf::from);
        file.also = vec![file.path.clone(), file.path.clone()];
        for (columns, rows) in [(80, 14), (80, 24), (79, 25), (133, 40), (40, 24), (200, 60)] {
            let shown = line(&question, 12, Page { columns, rows, colour: Colour::No });
            let text = read(&shown);
            assert!(rows_of(text, columns) < rows, "{columns}x{rows}: {text}");
            let length = format!("secret.txt ({} characters)", path.chars().count());
            assert!(text.contains(&length), "{columns}x{rows}: {text}");
            assert!(text.contains(" wants to read /srv/") && text.ends_with("x never "), "{text}");
        }
    }
    let short =
        line(&question("/opt/sdk/a.h"), 0, Page { columns: 20, rows: 4, colour: Colour::No });
    assert!(short.contains("wants to read /opt/sdk/a.h\r\n"), "{short:?}");
}

/// Proves: NET-8 asked
#[test]
fn a_question_about_a_host_has_the_same_keys_but_no_directory() {
    let mut host = question("/");
    let name = "registry.example".to_owned();
    host.subject = Subject::Host(palisade_ask::HostSubject { host: name, port: 443 });
    host.processes.clear();
    let shown = line(&host, 0, page(Colour::No));
    assert_eq!(
        read(&shown),
        "? a program wants to connect to registry.example:443\r\n  y once  s session  a always  \
         n no  x never "
    );
    let pause = PAUSE;
    let once = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
    assert_eq!(pressed(b"y", &host, pause), Pressed::Answer(once));
    assert_eq!(pressed(b"d", &host, pause), Pressed::NotForUs);
    let told = notice(&host);
    assert!(told.contains("a program wants to connect to registry.example:443"), "{told}");
}
