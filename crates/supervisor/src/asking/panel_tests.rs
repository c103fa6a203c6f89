use super::super::prompt::tests::{question, secret};
use super::*;
use palisade_ask::{Lifetime, Scope};

const ONCE: Answer = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
const NO: Answer = Answer::Deny { lifetime: Lifetime::Session };

/// A question that the terminal has taken at this time.
fn shown_at(question: &Question, now: Instant) -> Panel {
    let mut panel = Panel::new(
        question.id,
        Chord::from(palisade_policy::model::AskKey::default()),
        Arming::default(),
    );
    panel.is_drawn();
    panel.is_there(now);
    panel
}

fn pressed(keys: &[u8], question: &Question, after: Duration) -> (Pressed, Note) {
    let now = Instant::now();
    let mut panel = shown_at(question, now);
    (panel.press(keys, question, now + after), panel.note())
}

/// Keys that are typed one after the other, a second apart.
fn typed(keys: &[&[u8]], question: &Question) -> Pressed {
    let now = Instant::now();
    let mut panel = shown_at(question, now);
    let mut last = Pressed::Nothing;
    for (second, keys) in (1..).zip(keys) {
        assert_eq!(last, Pressed::Nothing);
        last = panel.press(keys, question, now + Duration::from_secs(second));
    }
    last
}

/// Proves: GATE-8 type-ahead, GATE-11 armed
#[test]
fn keys_typed_before_the_question_could_be_read_are_no_answer() {
    let question = question("/opt/sdk/a.h");
    let soon = Duration::from_millis(100);
    assert_eq!(pressed(b"y", &question, soon), (Pressed::Nothing, Note::TooFast));
    let late = Duration::from_secs(9);
    assert_eq!(pressed(b"yes", &question, late), (Pressed::Nothing, Note::TooFast), "pasted");
    assert_eq!(pressed(b"y", &question, PAUSE).0, Pressed::Answer(ONCE));
    assert_eq!(pressed(b"q", &question, late), (Pressed::Nothing, Note::Unknown));
    assert_eq!(pressed(&[0x03], &question, Duration::ZERO).0, Pressed::Interrupt);
}

/// Proves: GATE-8 type-ahead, GATE-11 armed
#[test]
fn somebody_in_the_middle_of_a_word_answers_nothing() {
    let question = question("/opt/sdk/a.h");
    let start = Instant::now();
    let mut panel = shown_at(&question, start);
    let at = |millis| start + Duration::from_millis(millis);
    for (millis, key) in [(500, b"c"), (650, b"a"), (800, b"n")] {
        assert_eq!(panel.press(key, &question, at(millis)), Pressed::Nothing);
    }
    assert_eq!(panel.press(b"n", &question, at(1400)), Pressed::Answer(NO));
}

/// Proves: GATE-11 armed
#[test]
fn a_key_is_no_answer_to_what_the_terminal_has_not_taken() {
    let question = question("/opt/sdk/a.h");
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut panel = Panel::new(
        question.id,
        Chord::from(palisade_policy::model::AskKey::default()),
        Arming::default(),
    );
    assert_eq!(panel.press(b"y", &question, at(5)), Pressed::Nothing, "not there");
    assert_eq!(panel.note(), Note::TooFast);
    assert_eq!(panel.press(&[0x03], &question, at(5)), Pressed::Interrupt);
    panel.is_there(at(9));
    assert_eq!(panel.press(b"y", &question, at(9) + Duration::from_millis(300)), Pressed::Nothing);
    panel.moved();
    assert_eq!(
        panel.press(b"y", &question, at(15)),
        Pressed::Nothing,
        "the window has another size"
    );
    panel.is_there(at(16));
    assert!(matches!(panel.press(b"y", &question, at(17)), Pressed::Answer(_)));
}

/// Proves: GATE-11 permanent-enter
#[test]
fn what_holds_for_good_needs_enter() {
    let question = question("/opt/sdk/a.h");
    for key in [b"a", b"D", b"x"] {
        assert_eq!(typed(&[key], &question), Pressed::Nothing);
        assert!(matches!(typed(&[key, b"\r"], &question), Pressed::Answer(_)));
        assert_eq!(typed(&[key, b"q", b"\r"], &question), Pressed::Nothing, "gone back");
        assert_eq!(typed(&[key, b"y\r"], &question), Pressed::Nothing);
    }
    assert_eq!(typed(&[b"a", b"q", b"y"], &question), Pressed::Answer(ONCE));
}

/// Proves: GATE-11 secret-typed
#[test]
fn a_secret_needs_a_word_and_enter() {
    let secret = secret();
    for key in b'!'..=b'~' {
        assert_eq!(typed(&[&[key]], &secret), Pressed::Nothing, "{key}");
        assert_eq!(typed(&[&[key], b"\r"], &secret), Pressed::Nothing, "{key}");
    }
    assert_eq!(typed(&[b"\r"], &secret), Pressed::Nothing);
    assert_eq!(typed(&[b"y", b"e", b"s", b"\r"], &secret), Pressed::Answer(ONCE));
    assert_eq!(typed(&[b"y", b"e", b"z", b"\x7f", b"s", b"\r"], &secret), Pressed::Answer(ONCE));
    assert_eq!(typed(&[b"no", b"\r"], &secret), Pressed::Answer(NO));
    assert_eq!(typed(&[b"yes\r"], &secret), Pressed::Nothing, "a pasted line");
    assert_eq!(typed(&[b"\x1b[200~yes\r\x1b[201~", b"\r"], &secret), Pressed::Nothing);
    assert_eq!(typed(&[b"\x1b[200~ye", b"s", b"\x1b[201~", b"\r"], &secret), Pressed::Nothing);
    assert_eq!(typed(&[b"always", b"\r"], &secret), Pressed::Nothing);
    let soon = Duration::from_millis(100);
    assert_eq!(pressed(b"y", &secret, soon), (Pressed::Nothing, Note::TooFast));
}

/// Proves: GATE-11 look-below
#[test]
fn the_chord_puts_it_aside_at_any_time() {
    let question = question("/opt/sdk/a.h");
    assert_eq!(pressed(&[0x07], &question, Duration::ZERO).0, Pressed::PutAside);
    assert_eq!(pressed(b"\x1b[A", &question, Duration::from_secs(2)).0, Pressed::Nothing);
    assert_eq!(typed(&[b"?", b"?", b"y"], &question), Pressed::Answer(ONCE));
}

/// Proves: GATE-11 look-below
#[test]
fn what_was_put_aside_comes_back_when_nobody_types() {
    let now = Instant::now();
    let mut panel = shown_at(&question("/opt/sdk/a.h"), now);
    assert_eq!(panel.comes_back(), None);
    panel.put(PanelPosition::PutAside);
    panel.stay_aside(now);
    assert_eq!(panel.comes_back(), Some(now + ASIDE));
    let later = now + Duration::from_secs(3);
    panel.stay_aside(later);
    assert_eq!(panel.comes_back(), Some(later + ASIDE), "a key was typed");
    panel.put(PanelPosition::Shown);
    panel.stay_aside(later);
    assert_eq!(panel.comes_back(), None);
}
