use super::{Moment, Theme, draw};
use crate::commands::approve::board::Board;
use crate::commands::approve::pace::Arrival;
use crate::commands::approve::row::Row;
use crate::commands::approve::test_support::{SESSION, question, row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Access, Act, HostSubject, Subject};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::path::PathBuf;
use std::time::Instant;

const COLOURED: Theme = Theme { coloured: true };

fn terminal(columns: u16, lines: u16) -> Terminal<TestBackend> {
    Terminal::new(TestBackend::new(columns, lines)).unwrap()
}

fn drawn(terminal: &mut Terminal<TestBackend>, board: &mut Board, theme: Theme) -> String {
    let now = Moment { monotonic: Instant::now(), wall: "2026-11-15T12:00:10Z".parse().unwrap() };
    terminal.draw(|frame| draw(frame, board, theme, now)).unwrap();
    terminal.backend().to_string()
}

fn board(rows: Vec<Row>) -> Board {
    let mut board = Board::new();
    board.update(rows, &[SESSION]);
    board
}

fn three() -> Vec<Row> {
    let mut secret = question(2, "/home/eve/.ssh/id_ed25519");
    secret.is_secret = true;
    let mut program = question(3, "/opt/tools/bin/generate");
    let file = program.subject.file_mut().unwrap();
    file.access = Access::Execute;
    file.act = Act::Execute;
    file.operation = "execve".to_owned();
    file.also = vec![PathBuf::from("/opt/tools/lib/ld.so")];
    program.requests = vec![78, 79, 80];
    vec![row(question(1, "/opt/sdk/include/vendor/header.h")), row(secret), row(program)]
}

fn press(board: &mut Board, code: KeyCode) {
    board.press(KeyEvent::new(code, KeyModifiers::NONE), Arrival::Alone, Instant::now());
}

/// Proves: TOOL-2 terminal
#[test]
fn sixty_columns_are_enough() {
    let mut terminal = terminal(60, 26);
    let mut board = board(three());
    insta::assert_snapshot!(drawn(&mut terminal, &mut board, COLOURED), @r#"
    " sandbox approve: 3 questions in 1 session                  "
    " 1c9e0a55:1  read    /opt/sdk/include/vendor/header.h  4:50 "
    " 1c9e0a55:2  SECRET read    /home/eve/.ssh/id_ed25519  4:50 "
    " 1c9e0a55:3  run     /opt/tools/bin/generate           4:50 "
    "────────────────────────────────────────────────────────────"
    " read        /opt/sdk/include/vendor/header.h               "
    " directory   /opt/sdk/include/vendor/**                     "
    " why asked   nothing allows or denies it                    "
    " wanted by   /usr/bin/cc (process 4242), by openat          "
    " command     cc -c 'my file.c' -O2                          "
    " working in  /home/eve/project                              "
    " started by  bash (4100)                                    "
    "              └ make (4200)                                 "
    " session     make -j8 all                                   "
    "             in /home/eve/project                           "
    " no answer   denied automatically in 4:50                   "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " y once   s session   a always   d directory                "
    " D directory always   e and run   n no   x never            "
    " = all alike   j/k move   / search   w save   ? help        "
    " q quit                                                     "
    "#);
    press(&mut board, KeyCode::Down);
    insta::assert_snapshot!(drawn(&mut terminal, &mut board, COLOURED), @r#"
    " sandbox approve: 3 questions in 1 session                  "
    " 1c9e0a55:1  read    /opt/sdk/include/vendor/header.h  4:50 "
    " 1c9e0a55:2  SECRET read    /home/eve/.ssh/id_ed25519  4:50 "
    " 1c9e0a55:3  run     /opt/tools/bin/generate           4:50 "
    "────────────────────────────────────────────────────────────"
    "             THIS IS A SECRET: anyone who reads it can act  "
    "             in your name                                   "
    " read        /home/eve/.ssh/id_ed25519                      "
    " why asked   nothing allows or denies it                    "
    " wanted by   /usr/bin/cc (process 4242), by openat          "
    " command     cc -c 'my file.c' -O2                          "
    " working in  /home/eve/project                              "
    " started by  bash (4100)                                    "
    "              └ make (4200)                                 "
    " session     make -j8 all                                   "
    "             in /home/eve/project                           "
    " no answer   denied automatically in 4:50                   "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " type yes (once), session, no or never, then Enter          "
    " = all alike   j/k move   / search   w save   ? help        "
    " q quit                                                     "
    "#);
}

#[test]
fn a_wide_terminal_shows_more() {
    let mut terminal = terminal(100, 30);
    let mut board = board(three());
    press(&mut board, KeyCode::End);
    insta::assert_snapshot!(drawn(&mut terminal, &mut board, COLOURED), @r#"
    " sandbox approve: 3 questions in 1 session                                                          "
    " 1c9e0a55:1  read    /opt/sdk/include/vendor/header.h                                          4:50 "
    " 1c9e0a55:2  SECRET read    /home/eve/.ssh/id_ed25519                                          4:50 "
    " 1c9e0a55:3  run     /opt/tools/bin/generate                                                   4:50 "
    "────────────────────────────────────────────────────────────────────────────────────────────────────"
    " run         /opt/tools/bin/generate                                                                "
    " and with it /opt/tools/lib/ld.so                                                                   "
    " directory   /opt/tools/bin/**                                                                      "
    " why asked   nothing allows or denies it                                                            "
    " wanted by   /usr/bin/cc (process 4242), by execve                                                  "
    " command     cc -c 'my file.c' -O2                                                                  "
    " working in  /home/eve/project                                                                      "
    " started by  bash (4100)                                                                            "
    "              └ make (4200)                                                                         "
    " waiting     3 calls, of process 4242                                                               "
    " session     make -j8 all                                                                           "
    "             in /home/eve/project                                                                   "
    " no answer   denied automatically in 4:50                                                           "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    "                                                                                                    "
    " y once   s session   a always   d directory   D directory always   n no   x never   = all alike    "
    " j/k move   / search   w save   ? help   q quit                                                     "
    "#);
}

#[test]
fn nothing_to_show_is_said() {
    let mut board = Board::new();
    insta::assert_snapshot!(drawn(&mut terminal(60, 9), &mut board, COLOURED), @r#"
    " sandbox approve: no questions                              "
    " What a `sandbox run` asks for will show up here.           "
    "────────────────────────────────────────────────────────────"
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " ? help   q quit                                            "
    "#);
    board.update(Vec::new(), &[SESSION, "another"]);
    insta::assert_snapshot!(drawn(&mut terminal(60, 9), &mut board, COLOURED), @r#"
    " sandbox approve: 2 sessions, no question                   "
    " What a `sandbox run` asks for will show up here.           "
    "────────────────────────────────────────────────────────────"
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " w save   ? help   q quit                                   "
    "#);
}

fn colours(buffer: &Buffer, line: u16) -> Vec<Color> {
    let mut colours: Vec<Color> =
        (0..buffer.area.width).map(|column| buffer[(column, line)].fg).collect();
    colours.dedup();
    colours
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_secret_is_red_and_says_so_without_colours_too() {
    let mut terminal = terminal(60, 26);
    let mut board = board(three());
    drawn(&mut terminal, &mut board, COLOURED);
    assert_eq!(colours(terminal.backend().buffer(), 2), [Color::Red]);
    assert_eq!(colours(terminal.backend().buffer(), 1), [Color::Reset]);
    let plain = drawn(&mut terminal, &mut board, Theme { coloured: false });
    assert!(plain.contains("SECRET read"), "{plain}");
    let cells = &terminal.backend().buffer().content;
    assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(cells.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
}

/// Text from inside is spelt out wherever it stands.
///
/// Proves: AUD-2 escaped-text
#[test]
fn nothing_from_inside_reaches_the_terminal_as_it_is() {
    let evil = "\u{1b}[2J\u{1b}]52;c;AAAA\u{7}\r\n\u{9b}31m\u{202e}\u{200b}";
    let mut asked = question(1, &format!("/opt/{evil}/x"));
    asked.reason = evil.to_owned();
    asked.session = evil.to_owned();
    asked.processes[0].executable = evil.to_owned();
    asked.processes[0].cwd = evil.to_owned();
    asked.processes[0].arguments = vec![evil.to_owned()];
    asked.processes[0].ancestors[0].name = evil.to_owned();
    let file = asked.subject.file_mut().unwrap();
    file.operation = evil.to_owned();
    file.also = vec![PathBuf::from(evil)];
    let row = Row {
        address: format!("{evil}:1"),
        command: evil.to_owned(),
        project: evil.to_owned(),
        question: asked,
    };
    let mut board = board(vec![row]);
    board.say(evil.to_owned(), Instant::now());
    let mut terminal = terminal(100, 60);
    drawn(&mut terminal, &mut board, COLOURED);
    let cells = &terminal.backend().buffer().content;
    let raw: Vec<&str> = cells
        .iter()
        .map(ratatui::buffer::Cell::symbol)
        .filter(|symbol| symbol.chars().any(|c| c.is_control() || evil_of(c)))
        .collect();
    assert_eq!(raw, [""; 0]);
    let shown: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(shown.matches("\\x1b[2J").count() > 10, "each is still told");
}

fn evil_of(c: char) -> bool {
    matches!(c, '\u{202e}' | '\u{200b}')
}

/// A path that is made long does not push what is granted with it out of reach.
#[test]
fn what_does_not_fit_can_be_scrolled_to() {
    let mut asked = question(1, &format!("/opt/{}", "x".repeat(1500)));
    let file = asked.subject.file_mut().unwrap();
    file.also = vec![PathBuf::from("/opt/ld.so")];
    let mut board = board(vec![row(asked)]);
    let mut terminal = terminal(60, 20);
    let first = drawn(&mut terminal, &mut board, COLOURED);
    assert!(first.contains("more lines: space") && !first.contains("/opt/ld.so"), "{first}");
    for _ in 0..40 {
        press(&mut board, KeyCode::PageDown);
    }
    let last = drawn(&mut terminal, &mut board, COLOURED);
    assert!(last.contains("/opt/ld.so") && !last.contains("more lines"), "{last}");
    press(&mut board, KeyCode::PageUp);
    assert_ne!(drawn(&mut terminal, &mut board, COLOURED), last, "no page beyond the last");
}

#[test]
fn no_size_is_too_small_to_draw() {
    for (columns, lines) in [(1, 1), (29, 40), (30, 8), (60, 7), (40, 9), (200, 100)] {
        drawn(&mut terminal(columns, lines), &mut board(three()), COLOURED);
    }
}

#[test]
fn the_selected_row_is_always_in_sight() {
    let rows = (1..=100).map(|id| row(question(id, &format!("/opt/sdk/file-{id}")))).collect();
    let mut board = board(rows);
    let mut terminal = terminal(60, 24);
    for id in 1..=100 {
        let screen = drawn(&mut terminal, &mut board, COLOURED);
        let reversed: String = terminal
            .backend()
            .buffer()
            .content
            .iter()
            .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
            .map(ratatui::buffer::Cell::symbol)
            .collect();
        assert!(reversed.contains(&format!("/opt/sdk/file-{id} ")), "{screen}");
        press(&mut board, KeyCode::Down);
    }
}

/// Proves: NET-8 asked, TOOL-2 terminal
#[test]
fn a_host_is_shown_whole_and_escaped() {
    let mut asked = question(4, "/");
    let host = "reg\u{1b}istry.example".to_owned();
    asked.subject = Subject::Host(HostSubject { host, port: 8443 });
    asked.reason = "no rule names it".to_owned();
    let mut unknown = asked.clone();
    unknown.processes.clear();
    let mut terminal = terminal(60, 14);
    let mut shown = |asked| drawn(&mut terminal, &mut board(vec![row(asked)]), COLOURED);
    let known = shown(asked);
    // Blanks, for by no system call.
    assert!(known.contains("wanted by   /usr/bin/cc (process 4242)  "), "{known}");
    let drawn = shown(unknown);
    assert!(drawn.contains("1c9e0a55:4  connect reg\\x1bistry.example:8443"), "{drawn}");
    assert!(drawn.contains("why asked   no rule names it"), "{drawn}");
    assert!(!drawn.contains("directory") && !drawn.contains("wanted by"), "{drawn}");
}

fn forty() -> Vec<Row> {
    (1..=40).map(|id| row(question(id, &format!("/opt/sdk/include/file-{id:02}.h")))).collect()
}

/// Proves: TOOL-2 many
#[test]
fn of_forty_questions_more_than_six_show_at_once() {
    for (columns, lines, most) in [(80, 24, 9), (120, 40, 22)] {
        let screen = drawn(&mut terminal(columns, lines), &mut board(forty()), COLOURED);
        let rows = screen.lines().filter(|line| line.contains(" read    /opt/sdk")).count();
        assert!(rows >= most, "{rows} rows:\n{screen}");
        assert!(screen.contains("40 questions in 1 session; 1 of 40"), "{screen}");
        for detail in ["directory   /opt/sdk/include/**", "why asked", "wanted by   /usr/bin/cc"] {
            assert!(screen.contains(detail), "no {detail}:\n{screen}");
        }
        for key in ["y once", "= all alike", "/ search", "? help", "q quit"] {
            assert!(screen.contains(key), "no {key}:\n{screen}");
        }
    }
}

/// Proves: GATE-4 alike
#[test]
fn what_would_be_answered_together_is_marked_and_counted() {
    let mut rows = forty();
    rows[3].question.is_secret = true;
    let (mut terminal, mut board) = (terminal(80, 24), board(rows));
    press(&mut board, KeyCode::Char('='));
    let choice = drawn(&mut terminal, &mut board, COLOURED);
    assert!(
        choice.contains("d 39 questions in directory /opt/sdk/include; 1 secret is left out"),
        "{choice}"
    );
    assert!(choice.contains("p 39 questions of program /usr/bin/cc"), "{choice}");
    press(&mut board, KeyCode::Char('d'));
    let marked = drawn(&mut terminal, &mut board, COLOURED);
    assert!(marked.contains("\"*1c9e0a55:1 ") && marked.contains("\" 1c9e0a55:4 "), "{marked}");
    assert!(marked.contains("one answer to all of them"), "{marked}");
    assert!(
        marked.contains("y once   s session   a always   n no   x never   Esc back"),
        "{marked}"
    );
}

#[test]
fn a_search_says_what_it_looks_for_and_how_much_it_found() {
    let (mut terminal, mut board) = (terminal(80, 24), board(forty()));
    for typed in "/file-1".chars() {
        press(&mut board, KeyCode::Char(typed));
    }
    let screen = drawn(&mut terminal, &mut board, COLOURED);
    assert!(screen.contains("40 questions in 1 session; 10 with `file-1`"), "{screen}");
    assert!(screen.contains("/file-1_"), "{screen}");
    for typed in "zzz".chars() {
        press(&mut board, KeyCode::Char(typed));
    }
    assert!(drawn(&mut terminal, &mut board, COLOURED).contains("Nothing matches; Esc"));
}

#[test]
fn help_fits_on_the_smallest_usual_screen() {
    let (mut terminal, mut board) = (terminal(80, 24), board(forty()));
    press(&mut board, KeyCode::Char('?'));
    let screen = drawn(&mut terminal, &mut board, COLOURED);
    for part in
        ["allow once", "first, last question", "same directory, program or host", "any key: back"]
    {
        assert!(screen.contains(part), "no {part}:\n{screen}");
    }
    assert!(!screen.contains("file-01"), "{screen}");
}

/// Yellow, cyan and white are hard to read on a light background, blue and black on a dark one.
///
/// Proves: TOOL-2 terminal
#[test]
fn colours_are_those_of_light_and_dark_terminals() {
    let (mut terminal, mut board) = (terminal(80, 24), board(three()));
    board.say("allowed".to_owned(), Instant::now());
    for typed in ['j', '=', 'p'] {
        drawn(&mut terminal, &mut board, COLOURED);
        let cells = &terminal.backend().buffer().content;
        let is_usual = |colour| matches!(colour, Color::Reset | Color::Red | Color::Magenta);
        assert!(cells.iter().all(|cell| is_usual(cell.fg) && cell.bg == Color::Reset));
        press(&mut board, KeyCode::Char(typed));
    }
}
