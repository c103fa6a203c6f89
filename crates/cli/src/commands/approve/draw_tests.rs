use super::{Moment, Theme, draw};
use crate::commands::approve::board::{Board, Row};
use crate::commands::approve::test_support::{question, row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Access, HostSubject, Subject};
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
    let now = Instant::now();
    let mut board = Board::new(now);
    board.update(rows, 1, now);
    board
}

fn three() -> Vec<Row> {
    let mut secret = question(2, "/home/eve/.ssh/id_ed25519");
    secret.is_secret = true;
    let mut program = question(3, "/opt/tools/bin/generate");
    let file = program.subject.file_mut().unwrap();
    file.access = Access::Execute;
    file.operation = "execve".to_owned();
    file.also = vec![PathBuf::from("/opt/tools/lib/ld.so")];
    program.requests = vec![78, 79, 80];
    vec![row(question(1, "/opt/sdk/include/vendor/header.h")), row(secret), row(program)]
}

fn press(board: &mut Board, code: KeyCode) {
    board.press(KeyEvent::new(code, KeyModifiers::NONE), Instant::now());
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
    " 1c9e0a55:3  execute /opt/tools/bin/generate           4:50 "
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
    " silence     is a no in 4:50                                "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " y once   s session   a always   d directory, session       "
    " D directory, always   n no   x never   j/k move   w save   "
    " q quit                                                     "
    "#);
    press(&mut board, KeyCode::Down);
    insta::assert_snapshot!(drawn(&mut terminal, &mut board, COLOURED), @r#"
    " sandbox approve: 3 questions in 1 session                  "
    " 1c9e0a55:1  read    /opt/sdk/include/vendor/header.h  4:50 "
    " 1c9e0a55:2  SECRET read    /home/eve/.ssh/id_ed25519  4:50 "
    " 1c9e0a55:3  execute /opt/tools/bin/generate           4:50 "
    "────────────────────────────────────────────────────────────"
    "             THIS IS A SECRET: whoever reads it can act in  "
    "             your name                                      "
    " read        /home/eve/.ssh/id_ed25519                      "
    " why asked   nothing allows or denies it                    "
    " wanted by   /usr/bin/cc (process 4242), by openat          "
    " command     cc -c 'my file.c' -O2                          "
    " working in  /home/eve/project                              "
    " started by  bash (4100)                                    "
    "              └ make (4200)                                 "
    " session     make -j8 all                                   "
    "             in /home/eve/project                           "
    " silence     is a no in 4:50                                "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " y once   s session   a always   n no   x never   j/k move  "
    " w save   q quit                                            "
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
    " 1c9e0a55:3  execute /opt/tools/bin/generate                                                   4:50 "
    "────────────────────────────────────────────────────────────────────────────────────────────────────"
    " execute     /opt/tools/bin/generate                                                                "
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
    " silence     is a no in 4:50                                                                        "
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
    " y once   s session   a always   d directory, session   D directory, always   n no   x never        "
    " j/k move   w save   q quit                                                                         "
    "#);
}

#[test]
fn nothing_to_show_is_said() {
    let mut board = Board::new(Instant::now());
    insta::assert_snapshot!(drawn(&mut terminal(60, 9), &mut board, COLOURED), @r#"
    " sandbox approve: nobody asks                               "
    " What a `sandbox run` asks for will show up here.           "
    "────────────────────────────────────────────────────────────"
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " q quit                                                     "
    "#);
    board.update(Vec::new(), 2, Instant::now());
    insta::assert_snapshot!(drawn(&mut terminal(60, 9), &mut board, COLOURED), @r#"
    " sandbox approve: 2 sessions, no question                   "
    " What a `sandbox run` asks for will show up here.           "
    "────────────────────────────────────────────────────────────"
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    "                                                            "
    " w save   q quit                                            "
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
