use super::{Action, Board, REMEMBERED, SETTLING};
use crate::commands::approve::test_support::{SESSION, question, row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Answer, Lifetime, QuestionId, Scope, Store};
use std::time::{Duration, Instant};

/// A board with questions 1 to `count`, as it is once everybody has looked at it.
fn board(count: u64) -> (Board, Instant) {
    let start = Instant::now();
    let mut board = Board::new(start);
    board.update(rows(1..=count), 1, start);
    (board, start + SETTLING)
}

fn rows(ids: impl IntoIterator<Item = u64>) -> Vec<super::Row> {
    ids.into_iter().map(|id| row(question(id, &format!("/opt/sdk/{id}")))).collect()
}

fn key(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
}

fn answered(id: u64, answer: Answer) -> Action {
    Action::Answer { session: SESSION.to_owned(), id: QuestionId(id), answer }
}

fn selected(board: &Board) -> Option<u64> {
    board.selected().map(|row| row.question.id.0)
}

const ONCE: Answer = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
const ALWAYS: Answer =
    Answer::Allow { scope: Scope::File, lifetime: Lifetime::Always(Store::User) };

/// Proves: GATE-4 once, GATE-4 session, GATE-4 always, GATE-4 tree
#[test]
fn each_key_has_its_answer() {
    let allow = |scope, lifetime| Answer::Allow { scope, lifetime };
    let always = Lifetime::Always(Store::User);
    let table = [
        ('y', ONCE),
        ('s', allow(Scope::File, Lifetime::Session)),
        ('a', ALWAYS),
        ('d', allow(Scope::Directory, Lifetime::Session)),
        ('D', allow(Scope::Directory, always)),
        ('n', Answer::Deny { lifetime: Lifetime::Session }),
        ('x', Answer::Deny { lifetime: always }),
    ];
    for (letter, answer) in table {
        let (mut board, now) = board(2);
        assert_eq!(board.press(key(letter), now), answered(1, answer), "{letter}");
        assert_eq!(selected(&board), Some(2), "the answered one is gone");
    }
    let (mut board, now) = board(2);
    for letter in ['Y', 'N', 'A', 'z', '1', '\n', 'h', 'p'] {
        assert_eq!(board.press(key(letter), now), Action::Nothing, "{letter:?}");
    }
    assert_eq!(board.press(key('q'), now), Action::Quit);
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(board.press(control, now), Action::Quit);
    let control = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL);
    assert_eq!(board.press(control, now), Action::Nothing);
    assert_eq!(selected(&board), Some(1));
}

/// Proves: GATE-4 stores
#[test]
fn a_key_pressed_twice_saves_the_sessions_answers() {
    let save = |store| Action::Save { session: Some(SESSION.to_owned()), store };
    for (letter, store) in [('w', Store::User), ('W', Store::Project)] {
        let (mut board, now) = board(2);
        assert_eq!(board.press(key(letter), now), Action::Nothing);
        let said = format!("press {letter} again to save this session's answers for the {store}");
        assert_eq!(board.said(now), Some(said.as_str()));
        assert_eq!(board.press(key(letter), now), save(store));
        board.press(key(letter), now);
        board.press(key('j'), now);
        assert_eq!(board.press(key(letter), now), Action::Nothing, "another key was between");
    }
    let (mut board, now) = board(2);
    board.press(key('w'), now);
    assert_eq!(board.press(key('W'), now), Action::Nothing, "the other store");
    let mut empty = Board::new(now);
    empty.press(key('w'), now);
    assert_eq!(empty.press(key('w'), now), Action::Nothing, "there is no session");
    empty.update(Vec::new(), 1, now);
    empty.press(key('w'), now);
    assert_eq!(empty.press(key('w'), now), Action::Save { session: None, store: Store::User });
}

#[test]
fn keys_move_the_selection() {
    let (mut board, now) = board(3);
    let expected = [(KeyCode::Down, 2), (KeyCode::Char('j'), 3), (KeyCode::Down, 3)];
    for (code, id) in expected {
        board.press(KeyEvent::new(code, KeyModifiers::NONE), now);
        assert_eq!(selected(&board), Some(id));
    }
    let expected = [(KeyCode::Up, 2), (KeyCode::Char('k'), 1), (KeyCode::Up, 1)];
    for (code, id) in expected {
        board.press(KeyEvent::new(code, KeyModifiers::NONE), now);
        assert_eq!(selected(&board), Some(id));
    }
    board.press(key('j'), now);
    assert_eq!(board.press(key('y'), now), answered(2, ONCE), "who moves has looked");
}

#[test]
fn the_selection_stays_with_its_question() {
    let (mut board, now) = board(3);
    board.press(key('j'), now);
    board.update(rows([2, 3, 4]), 1, now);
    assert_eq!(selected(&board), Some(2));
    assert_eq!(board.press(key('y'), now), answered(2, ONCE));
}

/// A question that vanishes under the finger must not pass its answer on to the next one.
#[test]
fn an_answer_is_not_taken_for_what_nobody_looked_at() {
    let (mut board, now) = board(3);
    board.update(rows([2, 3]), 1, now);
    assert_eq!(selected(&board), Some(2));
    assert_eq!(board.press(key('y'), now), Action::Nothing);
    assert!(board.said(now).unwrap().contains("press again"));
    let later = now + SETTLING;
    assert_eq!(board.press(key('y'), later), answered(2, ONCE));
    assert_eq!(board.press(key('y'), later), Action::Nothing, "a key held down answers once");
    assert_eq!(board.press(key('y'), later + SETTLING), answered(3, ONCE));
    assert_eq!(board.press(key('y'), later + SETTLING * 2), Action::Nothing);
}

#[test]
fn the_first_question_waits_until_it_was_seen() {
    let start = Instant::now();
    let mut board = Board::new(start);
    board.update(Vec::new(), 1, start);
    let arrival = start + Duration::from_secs(60);
    board.update(rows([1]), 1, arrival);
    assert_eq!(board.press(key('y'), arrival), Action::Nothing);
    assert_eq!(board.press(key('y'), arrival + SETTLING), answered(1, ONCE));
}

/// Proves: GATE-4 tree, GATE-4 always
#[test]
fn a_secret_is_never_given_by_directory_and_not_lightly_for_good() {
    let (mut board, now) = board(0);
    let mut secret = question(1, "/home/eve/.ssh/id_ed25519");
    secret.is_secret = true;
    let rows = vec![row(secret), row(question(2, "/opt/sdk/a"))];
    board.update(rows, 1, now);
    let now = now + SETTLING;
    for letter in ['d', 'D'] {
        assert_eq!(board.press(key(letter), now), Action::Nothing);
        assert!(board.said(now).unwrap().contains("for a secret"));
    }
    assert_eq!(board.press(key('a'), now), Action::Nothing);
    assert!(board.said(now).unwrap().contains("press a again"));
    board.press(key('j'), now);
    board.press(key('k'), now);
    assert_eq!(board.press(key('a'), now), Action::Nothing, "something else came between");
    assert_eq!(board.press(key('a'), now), answered(1, ALWAYS));
}

#[test]
fn an_answer_on_its_way_is_not_asked_again() {
    let (mut board, now) = board(2);
    board.press(key('y'), now);
    board.update(rows([1, 2]), 1, now);
    assert_eq!(board.rows().len(), 1, "the session has not heard it yet");
    board.take_back(SESSION);
    board.update(rows([1, 2]), 1, now);
    assert_eq!(board.rows().len(), 2, "it was refused");
}

#[test]
fn what_was_said_goes_away() {
    let (mut board, now) = board(1);
    board.say("allowed".to_owned(), now);
    assert_eq!(board.said(now), Some("allowed"));
    assert_eq!(board.said(now + REMEMBERED), None);
}

fn code(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn asked_by(id: u64, path: &str, program: &str) -> super::Row {
    let mut asked = question(id, path);
    asked.processes[0].executable = program.to_owned();
    row(asked)
}

/// Five questions, of which one is a secret, and the clock when they were looked at.
fn mixed() -> (Board, Instant) {
    let (mut board, now) = board(0);
    let mut secret = question(3, "/opt/sdk/key.pem");
    secret.is_secret = true;
    let mut host = question(5, "/");
    let name = "api.example".to_owned();
    host.subject = palisade_ask::Subject::Host(palisade_ask::HostSubject { host: name, port: 443 });
    let rows = vec![
        asked_by(1, "/opt/sdk/a", "/usr/bin/cc"),
        asked_by(2, "/opt/sdk/deep/b", "/usr/bin/ld"),
        row(secret),
        asked_by(4, "/srv/data/c", "/usr/bin/cc"),
        row(host),
    ];
    board.update(rows, 1, now);
    (board, now + SETTLING)
}

fn members(action: &Action) -> Vec<u64> {
    match action {
        Action::AnswerAll { questions, .. } => questions.iter().map(|(_, id)| id.0).collect(),
        other => panic!("{other:?}"),
    }
}

/// Proves: GATE-4 alike
#[test]
fn questions_alike_are_counted_and_answered_together() {
    for (key_of_kind, told, ids) in [
        ('d', "2 questions in directory /opt/sdk; 1 secret is left out", vec![1, 2]),
        ('p', "3 questions of program /usr/bin/cc; 1 secret is left out", vec![1, 4, 5]),
    ] {
        let (mut board, now) = mixed();
        assert_eq!(board.press(key('='), now), Action::Nothing);
        let groups = board.groups();
        let (_, group) = groups.iter().find(|(key, _)| *key == key_of_kind).unwrap();
        assert_eq!(group.told(), told);
        assert_eq!(board.press(key(key_of_kind), now), Action::Nothing, "first it is shown");
        let answered = board.press(key('s'), now);
        assert_eq!(members(&answered), ids);
        assert_eq!(board.count(), 5 - ids.len());
    }
    let (mut board, now) = mixed();
    board.press(key('G'), now);
    board.press(key('='), now);
    board.press(key('h'), now);
    let answered = board.press(key('n'), now);
    let deny = Answer::Deny { lifetime: Lifetime::Session };
    let host = vec![(SESSION.to_owned(), QuestionId(5))];
    assert_eq!(answered, Action::AnswerAll { questions: host, answer: deny });
}

/// Proves: GATE-4 alike
#[test]
fn nothing_that_was_not_counted_is_answered() {
    let (mut board, now) = mixed();
    board.press(key('='), now);
    board.press(key('d'), now);
    let mut rows = vec![asked_by(2, "/opt/sdk/deep/b", "/usr/bin/ld")];
    rows.push(asked_by(9, "/opt/sdk/later", "/usr/bin/cc"));
    board.update(rows, 1, now);
    assert_eq!(members(&board.press(key('y'), now)), [2], "1 is gone, and 9 came later");
    // A directory is not offered for many, and Esc leaves everything as it was.
    let (mut board, now) = mixed();
    for pressed in ['=', 'd', 'd', 'D'] {
        assert_eq!(board.press(key(pressed), now), Action::Nothing, "{pressed}");
    }
    board.press(code(KeyCode::Esc), now);
    assert_eq!(board.press(key('y'), now), answered(1, ONCE));
}

/// Proves: TOOL-2 the-one-meant
#[test]
fn a_secret_is_never_answered_with_others() {
    let (mut board, now) = board(0);
    let secrets = [1, 2].map(|id| {
        let mut secret = question(id, &format!("/home/eve/.ssh/{id}"));
        secret.is_secret = true;
        row(secret)
    });
    board.update(secrets.to_vec(), 1, now);
    let now = now + SETTLING;
    board.press(key('='), now);
    assert_eq!(board.press(key('d'), now), Action::Nothing);
    assert_eq!(board.said(now), Some("secrets are answered one by one"));
    assert_eq!(board.press(key('y'), now), answered(1, ONCE), "this one alone");
}

#[test]
fn a_search_shows_what_contains_the_text_and_answers_nothing() {
    let (mut board, now) = mixed();
    board.press(key('/'), now);
    for typed in "DEEP".chars() {
        assert_eq!(board.press(key(typed), now), Action::Nothing, "{typed} is a letter here");
    }
    assert_eq!((board.rows().len(), selected(&board), board.count()), (1, Some(2), 5));
    board.press(code(KeyCode::Enter), now);
    let later = now + SETTLING;
    assert_eq!(board.press(key('y'), later), answered(2, ONCE));
    assert!(board.rows().is_empty());
    board.press(code(KeyCode::Esc), later);
    assert_eq!(board.rows().len(), 4, "everything is back");
    board.press(key('/'), later);
    board.press(key('q'), later);
    board.press(code(KeyCode::Backspace), later);
    assert_eq!(board.rows().len(), 4, "q was a letter and is gone");
    board.press(code(KeyCode::Esc), later);
    assert_eq!(board.press(key('q'), later), Action::Quit);
}

#[test]
fn g_goes_to_the_first_and_the_capital_to_the_last() {
    let (mut board, now) = board(40);
    board.press(key('G'), now);
    assert_eq!(selected(&board), Some(40));
    board.press(key('g'), now);
    assert_eq!(selected(&board), Some(1));
}

#[test]
fn help_is_shown_until_a_key_is_pressed_which_answers_nothing() {
    let (mut board, now) = board(2);
    board.press(key('?'), now);
    assert_eq!(*board.mode(), super::Mode::Help);
    assert_eq!(board.press(key('y'), now), Action::Nothing);
    assert_eq!(*board.mode(), super::Mode::List);
    assert_eq!(board.press(key('y'), now), answered(1, ONCE));
}
