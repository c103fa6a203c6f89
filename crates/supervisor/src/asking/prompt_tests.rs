use super::super::chord::Chord;
use super::*;
use palisade_ask::{Act, FileSubject, Process, QuestionId};
use std::path::PathBuf;

pub(crate) fn question(path: &str) -> Question {
    Question {
        id: QuestionId(3),
        session: "s".to_owned(),
        subject: Subject::File(FileSubject {
            path: PathBuf::from(path),
            access: Access::Read,
            operation: "openat".to_owned(),
            is_directory: false,
            act: Act::Read,
            entry: None,
            new_path: None,
            may_be_copied: false,
            is_name_only: false,
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

pub(crate) fn secret() -> Question {
    let mut question = question("/home/u/.ssh/id_ed25519");
    question.is_secret = true;
    let file = question.subject.file_mut().unwrap();
    file.directory = None;
    question
}

fn page(colour: Colour) -> Page {
    Page { columns: 80, rows: 24, colour, behind: Behind::Stays }
}

fn panel(question: &Question) -> Panel {
    Panel::new(
        question.id,
        Chord::from(palisade_policy::model::AskKey::default()),
        super::super::Arming::default(),
    )
}

/// What a person reads: rows without the sequences around them.
fn rows(question: &Question, others: usize, page: Page) -> Vec<String> {
    rows_of(&mut panel(question), question, others, page)
}

fn rows_of(panel: &mut Panel, question: &Question, others: usize, page: Page) -> Vec<String> {
    let drawn = picture(&lay_out(panel, question, others, page), page);
    let size = |number: usize| std::num::NonZeroU16::new(u16::try_from(number).unwrap()).unwrap();
    let mut terminal = vt100::Parser::new(size(page.rows), size(page.columns), 0);
    terminal.process(drawn.as_bytes());
    let columns = u16::try_from(page.columns).unwrap();
    let all = terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned());
    all.skip_while(String::is_empty).collect()
}

/// Proves: GATE-11 panel
#[test]
fn a_question_says_who_wants_what_and_which_keys_there_are() {
    let shown = rows(&question("/opt/sdk/a.h"), 2, page(Colour::No));
    assert!(shown[0].starts_with(" sandbox: a question ---"), "{shown:?}");
    assert_eq!(
        shown[1..],
        [
            "? cat (42) wants to read /opt/sdk/a.h",
            "  directory: /opt/sdk/**",
            "  2 more waiting, also in `sandbox approve`",
            "  ? explain  Ctrl-G look at the program  Ctrl-C interrupt it",
            "  y once  s session  a always  d dir  D dir always  e dir + run  n no  x never",
        ]
    );
}

/// Proves: FS-2 asked-in-red, GATE-11 secret-typed
#[test]
fn a_secret_is_red_and_neither_for_good_nor_with_its_directory() {
    let secret = secret();
    let drawn =
        picture(&lay_out(&mut panel(&secret), &secret, 0, page(Colour::Yes)), page(Colour::Yes));
    assert!(drawn.contains(&format!("{RED}the secret /home/u/.ssh/id_ed25519")), "{drawn:?}");
    let shown = rows(&secret, 0, page(Colour::No));
    assert_eq!(shown.last().unwrap(), "  Type yes, session, no or never, then Enter:");
    assert!(!shown.concat().contains("always"), "{shown:?}");
}

/// Proves: GATE-11 cannot-hide
#[test]
fn every_letter_has_colours_of_its_own() {
    for question in [question("/opt/sdk/a.h"), secret()] {
        let drawn = picture(
            &lay_out(&mut panel(&question), &question, 3, page(Colour::Yes)),
            page(Colour::Yes),
        );
        for style in drawn.split("\x1b[").filter_map(|part| part.split_once('m')) {
            let (numbers, _) = style;
            if numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') {
                assert!(numbers.starts_with("0;"), "{numbers}");
                assert!(numbers.contains("38;2;") && numbers.contains(";48;2;"), "{numbers}");
            }
        }
    }
}

/// Proves: GATE-11 panel
#[test]
fn an_explanation_says_what_each_key_does() {
    let question = question("/opt/sdk/a.h");
    let mut panel = panel(&question);
    let now = std::time::Instant::now();
    panel.is_there(now);
    panel.press(b"?", &question, now + super::super::panel::PAUSE);
    let shown = rows_of(&mut panel, &question, 0, page(Colour::No)).join("\n");
    for words in
        ["  y       allow this time", "  e       allow the directory with programs and libraries"]
    {
        assert!(shown.contains(words), "{shown}");
    }
}

/// Attack H03. Proves: GATE-2 true-path
#[test]
fn what_comes_from_inside_cannot_draw_on_the_screen() {
    let mut hostile = question("/opt/\x1b[2J\u{202e}evil\r\nyes");
    hostile.processes[0].executable = "/tmp/\x1b]52;c;aGk=\x07".to_owned();
    let drawn =
        picture(&lay_out(&mut panel(&hostile), &hostile, 0, page(Colour::No)), page(Colour::No));
    assert!(!drawn.contains("\x1b[2J") && !drawn.contains(['\u{202e}', '\x07', '\r', '\n']));
    let shown = rows(&hostile, 0, page(Colour::No)).concat();
    assert!(shown.contains("\\x1b[2J\\u{202e}evil\\r\\nyes"), "{shown:?}");
    assert!(!notice(&hostile).contains(['\x1b', '\n']));
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

/// Proves: GATE-8 question-visible, GATE-11 panel
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
        for (columns, height) in [(80, 14), (80, 24), (79, 25), (133, 40), (40, 24), (200, 60)] {
            let page = Page { columns, rows: height, colour: Colour::No, behind: Behind::Stays };
            let shown = rows(&question, 12, page);
            assert!(shown[0].starts_with(" sandbox: a question"), "{columns}x{height}: {shown:#?}");
            let text = shown.concat();
            let length = format!("({} characters)", path.chars().count());
            assert!(text.contains(&length), "{columns}x{height}: {shown:#?}");
            assert!(text.contains("wants to read") && text.ends_with("x never"), "{shown:#?}");
        }
    }
}

/// Proves: GATE-11 panel
#[test]
fn a_tiny_terminal_has_one_row_and_grants_no_more_than_it_shows() {
    let tiny = |columns| Page { columns, rows: 5, colour: Colour::No, behind: Behind::Stays };
    let question = question("/opt/sdk/a.h");
    assert_eq!(rows(&question, 3, tiny(24)), ["yn? read /opt/sdk/a.h"]);
    assert_eq!(rows(&question, 3, tiny(16)), ["n? read …dk/a.h"]);
    assert_eq!(rows(&secret(), 0, tiny(24)), ["no? SECRET read …d25519"]);
    let mut renamed = question.clone();
    renamed.subject.file_mut().unwrap().new_path = Some("/opt/sdk/b.h".into());
    assert_eq!(rows(&renamed, 0, tiny(24)), ["n? read /opt/sdk/a.h"]);
}

/// Proves: NET-8 asked
#[test]
fn a_question_about_a_host_has_the_same_keys_but_no_directory() {
    let mut host = question("/");
    let name = "registry.example".to_owned();
    host.subject = Subject::Host(palisade_ask::HostSubject { host: name, port: 443 });
    host.processes.clear();
    let shown = rows(&host, 0, page(Colour::No));
    assert_eq!(shown[1], "? a program wants to connect to registry.example:443");
    assert_eq!(shown.last().unwrap(), "  y once  s session  a always  n no  x never");
    let told = notice(&host);
    assert!(told.contains("a program wants to connect to registry.example:443"), "{told}");
}

/// Proves: GATE-11 panel
#[test]
fn what_the_command_wrote_last_stands_above_the_panel() {
    let question = question("/opt/sdk/a.h");
    let mut terminal = vt100::Parser::new(size(24), size(80), 0);
    (1..=24).for_each(|line| terminal.process(format!("\x1b[{line};1Hline {line}").as_bytes()));
    let lifting = Page { behind: Behind::MovesUp { free_rows: 0 }, ..page(Colour::No) };
    terminal.process(
        picture(&lay_out(&mut panel(&question), &question, 0, lifting), lifting).as_bytes(),
    );
    let shown: Vec<String> = terminal.screen().rows(0, 80).collect();
    let title = shown.iter().position(|row| row.contains("sandbox: a question")).unwrap();
    assert_eq!(shown[title - 1].trim_end(), "line 24", "{shown:#?}");
}

fn size(number: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(number).unwrap()
}

/// Proves: GATE-10 rename
#[test]
fn a_rename_is_shown_with_both_names() {
    let mut question = question("/opt/work");
    if let Some(file) = question.subject.file_mut() {
        file.act = Act::Rename;
        file.access = Access::Write;
        file.is_directory = true;
        file.entry = Some("/opt/work/here".into());
        file.new_path = Some("/opt/work/there".into());
    }
    let told = notice(&question);
    assert!(told.contains("wants to rename /opt/work/here to /opt/work/there;"), "{told}");
}

/// After `clear` there is room below: nothing has to move.
///
/// Proves: GATE-11 panel
#[test]
fn what_stands_above_free_rows_stays_in_its_place() {
    let question = question("/opt/sdk/a.h");
    for lines in [3, 22] {
        let mut terminal = vt100::Parser::new(size(24), size(80), 0);
        let mut screen = crate::screen::Screen::new((24, 80));
        screen.watch(b"before\r\n\x1b[H\x1b[2J");
        (1..=lines).for_each(|line| screen.watch(format!("line {line}\r\n").as_bytes()));
        let around = screen.surroundings();
        terminal.process(&around.before);
        let page = Page { behind: around.behind, ..page(Colour::No) };
        let rows = full(&panel(&question), &question, 0, page, Styles::of(Colour::No)).rows.len();
        terminal
            .process(picture(&lay_out(&mut panel(&question), &question, 0, page), page).as_bytes());
        let shown: Vec<String> = terminal.screen().rows(0, 80).collect();
        // The cursor's own row is used, too.
        let moved = (lines + 1 + rows).saturating_sub(24);
        assert_eq!(shown[0].trim_end(), format!("line {}", moved + 1), "{shown:#?}");
    }
}
