//! A question that is open in the terminal: which keys answer it, and when (GATE-8, GATE-11).
//!
//! A key is an answer only if it comes alone, after a time in which nothing was typed and the question could be read:
//! what somebody was typing for the command must never grant anything. An answer that applies to later runs needs
//! Enter; to allow reading a secret takes a whole word and Enter.

use super::choice::{Choice, choices};
use super::chord::Chord;
use palisade_ask::{Answer, Question, QuestionId};
use palisade_plan::model::Hardening;
use std::time::{Duration, Instant};

/// How long a question stays aside without a key: long enough to read a screen.
pub(super) const ASIDE: Duration = Duration::from_secs(10);
/// A key is an answer only if nothing was typed for this long before it, while the question was shown. Normal typing is
/// faster.
pub(super) const PAUSE: Duration = Duration::from_millis(600);

/// Ctrl-C.
pub(crate) const INTERRUPT: u8 = 0x03;
const ERASE_LINE: u8 = 0x15;
const ESCAPE: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// No word that is an answer is longer.
const MAX_WORD_LEN: usize = 12;

/// How keys are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Choosing,
    /// Enter confirms this choice.
    Confirming(Choice),
}

/// What happened to the last key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Nothing,
    TooFast,
    Pasted,
    Unknown,
    AloneOnly,
    /// There is no room for an explanation.
    NoRoom,
}

/// Whether the question covers the screen, or was put aside to see what is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PanelPosition {
    Shown,
    PutAside,
}

/// How much of a question fits on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Legible {
    All,
    /// One row, with or without the whole path.
    OneRow {
        shows_whole_path: bool,
    },
}

/// The meaning of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// Nothing yet; the panel may have changed.
    Nothing,
    Answer(Answer),
    /// The answer no; the command also gets the interrupt.
    Interrupt,
    /// The person wants to see what is below.
    PutAside,
}

/// Which keys can be answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Arming {
    /// Those that are pressed [`PAUSE`] after the question could be read.
    #[default]
    AfterPause,
    /// Only without the layer `armed-keys`: all.
    AtOnce,
}

impl Arming {
    pub(crate) fn of(hardening: &Hardening) -> Self {
        if hardening.armed_keys { Self::AfterPause } else { Self::AtOnce }
    }
}

#[derive(Debug)]
pub(super) struct Panel {
    pub(super) question: QuestionId,
    place: PanelPosition,
    state: State,
    note: Note,
    legible: Legible,
    word: String,
    shows_help: bool,
    is_pasting: bool,
    chord: Chord,
    arming: Arming,
    /// When the question was displayed or a key was pressed, whichever was later. `None` until the terminal has
    /// received all of it: nobody can have read it before.
    quiet_since: Option<Instant>,
    /// While it is put aside: since when, or the time of the last key.
    aside_since: Option<Instant>,
    /// How many other questions it says are waiting.
    others: usize,
    /// Whether it has to be redrawn.
    is_stale: bool,
}

impl Panel {
    pub(super) fn new(question: QuestionId, chord: Chord, arming: Arming) -> Self {
        Self {
            question,
            place: PanelPosition::Shown,
            state: State::Choosing,
            note: Note::Nothing,
            legible: Legible::All,
            word: String::new(),
            shows_help: false,
            is_pasting: false,
            chord,
            arming,
            quiet_since: None,
            aside_since: None,
            others: 0,
            is_stale: true,
        }
    }

    /// Stays aside while the person uses the program.
    pub(super) fn stay_aside(&mut self, now: Instant) {
        self.aside_since = (self.place == PanelPosition::PutAside).then_some(now);
    }

    /// When it comes back by itself: nothing else shows that the command waits for an answer.
    pub(super) fn comes_back(&self) -> Option<Instant> {
        self.aside_since.map(|since| since + ASIDE)
    }

    pub(super) fn place(&self) -> PanelPosition {
        self.place
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn note(&self) -> Note {
        self.note
    }

    pub(super) fn word(&self) -> &str {
        &self.word
    }

    pub(super) fn shows_help(&self) -> bool {
        self.shows_help
    }

    pub(super) fn chord(&self) -> Chord {
        self.chord
    }

    /// Adapts to how much a person can read, which `lay_out` determines, and returns what it laid out. If there is too
    /// little room, the explanation is left out first.
    pub(super) fn fit<T>(&mut self, lay_out: impl Fn(&Self) -> (Legible, T)) -> T {
        let (legible, mut laid_out) = lay_out(self);
        self.legible = legible;
        if self.legible != Legible::All && std::mem::take(&mut self.shows_help) {
            self.note = Note::NoRoom;
            (self.legible, laid_out) = lay_out(self);
        }
        if self.legible != Legible::All {
            // One row does not show what would be confirmed.
            self.state = State::Choosing;
        }
        laid_out
    }

    /// The answers that can be given here.
    pub(super) fn choices(&self, question: &Question) -> impl Iterator<Item = Choice> {
        let legible = self.legible;
        let is_secret = question.is_secret;
        choices(question).filter(move |choice| match legible {
            Legible::All => true,
            Legible::OneRow { shows_whole_path } => {
                choice.fits_one_row(shows_whole_path && !is_secret)
            }
        })
    }

    /// Whether the terminal shows outdated content.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// So many other questions wait now. What the panel asks stays where it is.
    pub(super) fn count_others(&mut self, others: usize) {
        self.is_stale |= self.others != others;
        self.others = others;
    }

    pub(super) fn is_drawn(&mut self) {
        self.is_stale = false;
    }

    /// It has moved or comes back: nobody has read it there yet.
    pub(super) fn moved(&mut self) {
        self.quiet_since = None;
        self.word.clear();
        self.state = State::Choosing;
        self.is_stale = true;
    }

    /// The terminal has received all of it.
    pub(super) fn is_there(&mut self, now: Instant) {
        self.quiet_since.get_or_insert(now);
    }

    pub(super) fn put(&mut self, place: PanelPosition) {
        self.place = place;
        self.note = Note::Nothing;
        self.moved();
    }

    /// Handles keys that arrived together.
    pub(super) fn press(&mut self, keys: &[u8], question: &Question, now: Instant) -> Pressed {
        if keys.contains(&INTERRUPT) {
            return Pressed::Interrupt;
        }
        if self.chord.find(keys).is_some() {
            return Pressed::PutAside;
        }
        self.is_stale = true;
        let takes_all = self.arming == Arming::AtOnce;
        let shown = self.quiet_since.or(takes_all.then_some(now));
        let Some(since) = shown else {
            self.note = Note::TooFast;
            return Pressed::Nothing;
        };
        self.quiet_since = Some(now);
        let quiet = if takes_all { PAUSE } else { now.saturating_duration_since(since) };
        if self.is_pasting || contains(keys, PASTE_BEGINS) {
            self.is_pasting = !contains(keys, PASTE_ENDS);
            self.note = Note::Pasted;
            return Pressed::Nothing;
        }
        self.note = Note::Nothing;
        match (self.state, keys) {
            (State::Confirming(choice), b"\r" | b"\n") => return Pressed::Answer(choice.answer),
            (State::Confirming(_), _) | (State::Choosing, [ESCAPE]) => {
                self.state = State::Choosing;
                self.word.clear();
                self.shows_help = false;
            }
            // An arrow key or a click has no meaning here.
            (State::Choosing, [ESCAPE, ..]) => {}
            (State::Choosing, keys) if question.is_secret => {
                return self.spell(keys, question, quiet);
            }
            (State::Choosing, [b'?']) if quiet >= PAUSE => self.shows_help = !self.shows_help,
            (State::Choosing, [key]) if quiet >= PAUSE => {
                let chosen = self.choices(question).find(|choice| choice.key == char::from(*key));
                match chosen {
                    Some(choice) if choice.is_permanent() => self.state = State::Confirming(choice),
                    Some(choice) => return Pressed::Answer(choice.answer),
                    None => self.note = Note::Unknown,
                }
            }
            (State::Choosing, _) => self.note = Note::TooFast,
        }
        Pressed::Nothing
    }

    /// Reads a word, letter by letter, and a separate Enter: a pasted line is not an answer.
    fn spell(&mut self, keys: &[u8], question: &Question, quiet: Duration) -> Pressed {
        if self.word.is_empty() && quiet < PAUSE {
            self.note = Note::TooFast;
            return Pressed::Nothing;
        }
        match keys {
            b"?" if self.word.is_empty() => self.shows_help = !self.shows_help,
            b"\r" | b"\n" => {
                let word = std::mem::take(&mut self.word);
                let chosen = self
                    .choices(question)
                    .find(|choice| !choice.typed.is_empty() && choice.typed == word);
                match chosen {
                    Some(choice) => return Pressed::Answer(choice.answer),
                    None => self.note = Note::Unknown,
                }
            }
            keys => {
                for key in keys {
                    match key {
                        0x7f | 0x08 => drop(self.word.pop()),
                        &ERASE_LINE => self.word.clear(),
                        b'\r' | b'\n' => self.note = Note::AloneOnly,
                        key if key.is_ascii_alphabetic() && self.word.len() < MAX_WORD_LEN => {
                            self.word.push(char::from(*key));
                        }
                        _ => self.note = Note::Unknown,
                    }
                }
            }
        }
        Pressed::Nothing
    }
}

fn contains(keys: &[u8], sequence: &[u8]) -> bool {
    keys.windows(sequence.len()).any(|window| window == sequence)
}

#[cfg(test)]
#[path = "panel_tests.rs"]
mod tests;
