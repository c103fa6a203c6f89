use super::{Action, Board, Mode, Pending, REMEMBERED};
use crate::commands::approve::pace::{Arrival, PAUSE};
use crate::commands::approve::test_support::{SESSION, question, row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use palisade_ask::{Answer, Lifetime, QuestionId, Scope, Store};
use std::time::{Duration, Instant};

/// A board with questions 1 to `count`, as it is once everybody has looked at it.
fn board(count: u64) -> (Board, Instant) {
    let start = Instant::now();
    let mut board = Board::new();
    board.update(rows(1..=count), &[SESSION]);
    board.drawn(start);
    (board, start + PAUSE)
}

/// Presses a key as somebody does who reads first; the clock goes on meanwhile.
fn press(board: &mut Board, key: KeyEvent, now: &mut Instant) -> Action {
    board.drawn(*now);
    *now += PAUSE;
    board.press(key, Arrival::Alone, *now)
}

/// The same, letter by letter.
fn type_word(board: &mut Board, word: &str, now: &mut Instant) {
    for letter in word.chars() {
        assert_eq!(press(board, key(letter), now), Action::Nothing, "{letter} of {word}");
    }
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
        ('d', allow(Scope::Directory, Lifetime::Session)),
        ('n', Answer::Deny { lifetime: Lifetime::Session }),
    ];
    for (letter, answer) in table {
        let (mut board, mut now) = board(2);
        assert_eq!(press(&mut board, key(letter), &mut now), answered(1, answer), "{letter}");
        assert_eq!(selected(&board), Some(2), "the answered one is gone");
    }
    let permanent = [
        ('a', ALWAYS),
        ('D', allow(Scope::Directory, always)),
        ('x', Answer::Deny { lifetime: always }),
    ];
    for (letter, answer) in permanent {
        let (mut board, mut now) = board(2);
        assert_eq!(press(&mut board, key(letter), &mut now), Action::Nothing, "{letter}");
        // Enter may come at once: the key before it was meant.
        let done = board.press(code(KeyCode::Enter), Arrival::Alone, now);
        assert_eq!(done, answered(1, answer), "{letter}");
    }
    let (mut board, mut now) = board(2);
    for letter in ['Y', 'N', 'A', 'z', '1', '\n', 'h', 'p'] {
        assert_eq!(press(&mut board, key(letter), &mut now), Action::Nothing, "{letter:?}");
    }
    assert_eq!(press(&mut board, key('q'), &mut now), Action::Quit);
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(board.press(control, Arrival::WithOthers, now), Action::Quit);
    let control = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL);
    assert_eq!(press(&mut board, control, &mut now), Action::Nothing);
    assert_eq!(selected(&board), Some(1));
}

/// Proves: GATE-4 always, GATE-11 permanent-enter
#[test]
fn a_permanent_answer_needs_enter_and_any_other_key_goes_back() {
    for letter in ['a', 'D', 'x'] {
        for other in [key('y'), key(letter), code(KeyCode::Esc), code(KeyCode::Down)] {
            let (mut board, mut now) = board(2);
            press(&mut board, key(letter), &mut now);
            assert!(matches!(board.mode(), Mode::Confirm(Pending::Answer { .. })), "{letter}");
            assert_eq!(press(&mut board, other, &mut now), Action::Nothing, "{letter} {other:?}");
            assert_eq!((board.mode(), board.count()), (&Mode::List, 2));
            assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), Action::Nothing);
        }
        // Answered elsewhere meanwhile: the Enter is for nothing that is still there.
        let (mut board, mut now) = board(2);
        press(&mut board, key(letter), &mut now);
        board.update(rows([2]), &[SESSION]);
        assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), Action::Nothing);
        assert_eq!(board.count(), 1);
    }
}

/// What somebody types for a shell, over which the list appears, answers nothing.
///
/// Proves: GATE-11 armed
#[test]
fn a_key_counts_only_after_a_pause() {
    let too_fast = |board: &Board, now| board.said(now).unwrap().contains("key ignored: too fast");
    for letter in ['y', 's', 'a', 'd', 'D', 'n', 'x', 'w', 'q'] {
        // At the start, every 0.15 s, for as long as it takes.
        let start = Instant::now();
        let mut board = Board::new();
        board.update(rows([1, 2]), &[SESSION]);
        board.drawn(start);
        let mut now = start;
        for _ in 0..20 {
            now += Duration::from_millis(150);
            assert_eq!(board.press(key(letter), Arrival::Alone, now), Action::Nothing, "{letter}");
            assert!(too_fast(&board, now), "{letter}");
            assert_eq!(board.mode(), &Mode::List);
        }
        // Whatever the key before it was.
        let (mut board, now) = self::board(2);
        board.press(code(KeyCode::Down), Arrival::Alone, now);
        let soon = now + PAUSE - Duration::from_millis(1);
        assert_eq!(board.press(key(letter), Arrival::Alone, soon), Action::Nothing, "{letter}");
        assert!(too_fast(&board, soon), "{letter}");
        // Several at once, after however long a time.
        let (mut board, now) = self::board(2);
        assert_eq!(board.press(key(letter), Arrival::WithOthers, now), Action::Nothing);
        assert!(too_fast(&board, now), "{letter}");
        // After the list has changed, or the window has the focus again.
        let changes: [fn(&mut Board); 2] =
            [|board| board.update(rows([1, 2, 3]), &[SESSION]), Board::shown_anew];
        for change in changes {
            let (mut board, now) = self::board(2);
            change(&mut board);
            assert_eq!(board.press(key(letter), Arrival::Alone, now), Action::Nothing, "not drawn");
            board.drawn(now);
            let soon = now + PAUSE / 2;
            assert_eq!(board.press(key(letter), Arrival::Alone, soon), Action::Nothing);
            assert!(too_fast(&board, soon), "{letter}");
        }
    }
    // A list that stays as it is may be told again and again.
    let (mut board, now) = board(2);
    board.update(rows([1, 2]), &[SESSION]);
    assert_eq!(board.press(key('y'), Arrival::Alone, now), answered(1, ONCE));
}

/// Proves: GATE-11 armed
#[test]
fn enter_does_not_confirm_what_could_not_be_read() {
    let (mut board, mut now) = board(2);
    press(&mut board, key('a'), &mut now);
    board.update(rows([1, 2, 3]), &[SESSION]);
    board.drawn(now);
    assert_eq!(board.press(code(KeyCode::Enter), Arrival::Alone, now), Action::Nothing);
    let enter = press(&mut board, code(KeyCode::Enter), &mut now);
    assert_eq!(enter, answered(1, ALWAYS), "it still waits for Enter");
}

/// Proves: GATE-4 stores
#[test]
fn a_key_and_enter_save_the_sessions_answers() {
    let save = |store| Action::Save { session: Some(SESSION.to_owned()), store };
    for (letter, store) in [('w', Store::User), ('W', Store::Project)] {
        let (mut board, mut now) = board(2);
        assert_eq!(press(&mut board, key(letter), &mut now), Action::Nothing);
        assert!(matches!(board.mode(), Mode::Confirm(Pending::Save { .. })));
        assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), save(store));
        press(&mut board, key(letter), &mut now);
        press(&mut board, key('j'), &mut now);
        let enter = press(&mut board, code(KeyCode::Enter), &mut now);
        assert_eq!(enter, Action::Nothing, "another key was between");
    }
    let mut now = Instant::now();
    let mut empty = Board::new();
    press(&mut empty, key('w'), &mut now);
    assert!(empty.said(now).unwrap().contains("sandbox policy save"), "there is no session");
    assert_eq!(press(&mut empty, code(KeyCode::Enter), &mut now), Action::Nothing);
    empty.update(Vec::new(), &[SESSION]);
    press(&mut empty, key('w'), &mut now);
    let enter = press(&mut empty, code(KeyCode::Enter), &mut now);
    assert_eq!(enter, Action::Save { session: None, store: Store::User });
}

#[test]
fn keys_move_the_selection() {
    let (mut board, mut now) = board(3);
    let expected = [(KeyCode::Down, 2), (KeyCode::Char('j'), 3), (KeyCode::Down, 3)];
    for (key, id) in expected {
        board.press(code(key), Arrival::Alone, now);
        assert_eq!(selected(&board), Some(id));
    }
    let expected = [(KeyCode::Up, 2), (KeyCode::Char('k'), 1), (KeyCode::Up, 1)];
    for (key, id) in expected {
        board.press(code(key), Arrival::Alone, now);
        assert_eq!(selected(&board), Some(id));
    }
    press(&mut board, key('j'), &mut now);
    assert_eq!(press(&mut board, key('y'), &mut now), answered(2, ONCE));
}

#[test]
fn the_selection_stays_with_its_question() {
    let (mut board, mut now) = board(3);
    press(&mut board, key('j'), &mut now);
    board.update(rows([2, 3, 4]), &[SESSION]);
    assert_eq!(selected(&board), Some(2));
    assert_eq!(press(&mut board, key('y'), &mut now), answered(2, ONCE));
}

/// A question that vanishes under the finger must not pass its answer on to the next one.
#[test]
fn an_answer_is_not_taken_for_what_nobody_looked_at() {
    let (mut board, mut now) = board(3);
    board.update(rows([2, 3]), &[SESSION]);
    assert_eq!(selected(&board), Some(2));
    assert_eq!(board.press(key('y'), Arrival::Alone, now), Action::Nothing);
    assert_eq!(press(&mut board, key('y'), &mut now), answered(2, ONCE));
    let held = board.press(key('y'), Arrival::Alone, now);
    assert_eq!(held, Action::Nothing, "a key held down answers once");
    assert_eq!(press(&mut board, key('y'), &mut now), answered(3, ONCE));
    assert_eq!(press(&mut board, key('y'), &mut now), Action::Nothing);
}

fn secret(id: u64) -> super::Row {
    let mut secret = question(id, &format!("/home/eve/.ssh/{id}"));
    secret.is_secret = true;
    row(secret)
}

/// Proves: GATE-4 tree, GATE-4 always, GATE-11 secret-typed
#[test]
fn a_secret_is_answered_with_a_word_and_enter() {
    let session = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Session };
    let never = Answer::Deny { lifetime: Lifetime::Always(Store::User) };
    for (word, answer) in [
        ("yes", Some(ONCE)),
        ("session", Some(session)),
        ("no", Some(Answer::Deny { lifetime: Lifetime::Session })),
        ("never", Some(never)),
        ("y", None),
        ("n", None),
        ("s", None),
        ("yess", None),
        ("sure", None),
    ] {
        let (mut board, mut now) = board(0);
        board.update(vec![secret(1), row(question(2, "/opt/sdk/a"))], &[SESSION]);
        type_word(&mut board, word, &mut now);
        assert_eq!(board.word(), word);
        let done = press(&mut board, code(KeyCode::Enter), &mut now);
        assert_eq!(done, answer.map_or(Action::Nothing, |answer| answered(1, answer)), "{word}");
        assert_eq!(board.word(), "");
    }
}

/// Proves: GATE-4 tree, GATE-11 secret-typed, GATE-11 armed
#[test]
fn no_single_key_answers_about_a_secret() {
    let (mut board, mut now) = board(0);
    board.update(vec![secret(1), secret(2)], &[SESSION]);
    for letter in ['a', 'd', 'D', 'e', 'c', 'x'] {
        assert_eq!(press(&mut board, key(letter), &mut now), Action::Nothing);
        assert!(board.said(now).unwrap().contains("type yes, session, no or never"), "{letter}");
        assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), Action::Nothing);
    }
    // A word that was begun too soon is none, and so is an Enter among other keys.
    for letter in "yes".chars() {
        board.press(key(letter), Arrival::Alone, now);
    }
    assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), Action::Nothing);
    type_word(&mut board, "yes", &mut now);
    let pasted = board.press(code(KeyCode::Enter), Arrival::WithOthers, now);
    assert_eq!(pasted, Action::Nothing);
    // Another question under the same word.
    board.update(vec![secret(2)], &[SESSION]);
    assert_eq!(board.word(), "");
    assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), Action::Nothing);
    // What was mistyped can be taken back.
    type_word(&mut board, "yesq", &mut now);
    press(&mut board, code(KeyCode::Backspace), &mut now);
    assert_eq!(press(&mut board, code(KeyCode::Enter), &mut now), answered(2, ONCE));
}

#[test]
fn an_answer_on_its_way_is_not_asked_again() {
    let (mut board, mut now) = board(2);
    press(&mut board, key('y'), &mut now);
    board.update(rows([1, 2]), &[SESSION]);
    assert_eq!(board.rows().len(), 1, "the session has not heard it yet");
    board.take_back(SESSION);
    board.update(rows([1, 2]), &[SESSION]);
    assert_eq!(board.rows().len(), 2, "it was refused");
}

#[test]
fn what_was_said_goes_away() {
    let (mut board, now) = board(1);
    board.say("allowed".to_owned(), now);
    assert_eq!(board.said(now), Some("allowed"));
    assert_eq!(board.said(now + REMEMBERED), None);
}

#[test]
fn what_was_said_of_a_session_does_not_stand_over_the_questions_of_others() {
    let (mut board, now) = board(1);
    board.say_of(SESSION, "allowed once: /opt/sdk/1".to_owned(), now);
    board.update(Vec::new(), &[]);
    assert!(board.said(now).is_some(), "nothing else is there to be read");
    let mut asked = question(1, "/srv/other");
    asked.session = "another".to_owned();
    board.update(vec![row(asked)], &["another"]);
    assert_eq!(board.said(now), None);
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
    board.update(rows, &[SESSION]);
    board.drawn(now);
    (board, now + PAUSE)
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
        let (mut board, mut now) = mixed();
        assert_eq!(press(&mut board, key('='), &mut now), Action::Nothing);
        let groups = board.groups();
        let (_, group) = groups.iter().find(|(key, _)| *key == key_of_kind).unwrap();
        assert_eq!(group.told(), told);
        assert_eq!(
            press(&mut board, key(key_of_kind), &mut now),
            Action::Nothing,
            "first it is shown"
        );
        let answered = press(&mut board, key('s'), &mut now);
        assert_eq!(members(&answered), ids);
        assert_eq!(board.count(), 5 - ids.len());
    }
    let (mut board, mut now) = mixed();
    press(&mut board, key('G'), &mut now);
    press(&mut board, key('='), &mut now);
    press(&mut board, key('h'), &mut now);
    let answered = press(&mut board, key('n'), &mut now);
    let deny = Answer::Deny { lifetime: Lifetime::Session };
    let host = vec![(SESSION.to_owned(), QuestionId(5))];
    assert_eq!(answered, Action::AnswerAll { questions: host, answer: deny });
}

/// Proves: GATE-4 alike
#[test]
fn nothing_that_was_not_counted_is_answered() {
    let (mut board, mut now) = mixed();
    press(&mut board, key('='), &mut now);
    press(&mut board, key('d'), &mut now);
    let mut rows = vec![asked_by(2, "/opt/sdk/deep/b", "/usr/bin/ld")];
    rows.push(asked_by(9, "/opt/sdk/later", "/usr/bin/cc"));
    board.update(rows, &[SESSION]);
    assert_eq!(members(&press(&mut board, key('y'), &mut now)), [2], "1 is gone, and 9 came later");
    // A directory is not offered for many, and Esc leaves everything as it was.
    let (mut board, mut now) = mixed();
    for pressed in ['=', 'd', 'd', 'D'] {
        assert_eq!(press(&mut board, key(pressed), &mut now), Action::Nothing, "{pressed}");
    }
    press(&mut board, code(KeyCode::Esc), &mut now);
    assert_eq!(press(&mut board, key('y'), &mut now), answered(1, ONCE));
}

/// Proves: TOOL-2 the-one-meant
#[test]
fn a_secret_is_never_answered_with_others() {
    let (mut board, mut now) = board(0);
    board.update(vec![secret(1), secret(2)], &[SESSION]);
    press(&mut board, key('='), &mut now);
    assert_eq!(press(&mut board, key('d'), &mut now), Action::Nothing);
    assert_eq!(board.said(now), Some("secrets are answered one by one"));
    assert_eq!(board.mode(), &Mode::List);
}

/// Proves: GATE-4 alike, GATE-11 permanent-enter
#[test]
fn a_permanent_answer_to_many_needs_enter() {
    for letter in ['a', 'x'] {
        let (mut board, mut now) = mixed();
        for pressed in ['=', 'd', letter] {
            assert_eq!(press(&mut board, key(pressed), &mut now), Action::Nothing);
        }
        assert!(matches!(board.mode(), Mode::Confirm(Pending::AnswerAll { .. })));
        assert_eq!(members(&press(&mut board, code(KeyCode::Enter), &mut now)), [1, 2]);
        let (mut board, mut now) = mixed();
        for pressed in ['=', 'd', letter, letter] {
            assert_eq!(press(&mut board, key(pressed), &mut now), Action::Nothing);
        }
        assert_eq!(board.count(), 5);
    }
    let (mut board, now) = mixed();
    for pressed in ['=', 'd', 'y'] {
        assert_eq!(board.press(key(pressed), Arrival::Alone, now), Action::Nothing, "too fast");
    }
}

#[test]
fn a_search_shows_what_contains_the_text_and_answers_nothing() {
    let (mut board, mut now) = mixed();
    press(&mut board, key('/'), &mut now);
    for typed in "DEEP".chars() {
        assert_eq!(
            press(&mut board, key(typed), &mut now),
            Action::Nothing,
            "{typed} is a letter here"
        );
    }
    assert_eq!((board.rows().len(), selected(&board), board.count()), (1, Some(2), 5));
    press(&mut board, code(KeyCode::Enter), &mut now);
    assert_eq!(press(&mut board, key('y'), &mut now), answered(2, ONCE));
    assert!(board.rows().is_empty());
    press(&mut board, code(KeyCode::Esc), &mut now);
    assert_eq!(board.rows().len(), 4, "everything is back");
    press(&mut board, key('/'), &mut now);
    press(&mut board, key('q'), &mut now);
    press(&mut board, code(KeyCode::Backspace), &mut now);
    assert_eq!(board.rows().len(), 4, "q was a letter and is gone");
    press(&mut board, code(KeyCode::Esc), &mut now);
    assert_eq!(press(&mut board, key('q'), &mut now), Action::Quit);
}

#[test]
fn g_goes_to_the_first_and_the_capital_to_the_last() {
    let (mut board, mut now) = board(40);
    press(&mut board, key('G'), &mut now);
    assert_eq!(selected(&board), Some(40));
    press(&mut board, key('g'), &mut now);
    assert_eq!(selected(&board), Some(1));
}

#[test]
fn help_is_shown_until_a_key_is_pressed_which_answers_nothing() {
    let (mut board, mut now) = board(2);
    press(&mut board, key('?'), &mut now);
    assert_eq!(*board.mode(), Mode::Help);
    assert_eq!(press(&mut board, key('y'), &mut now), Action::Nothing);
    assert_eq!(*board.mode(), Mode::List);
    assert_eq!(press(&mut board, key('y'), &mut now), answered(1, ONCE));
}
