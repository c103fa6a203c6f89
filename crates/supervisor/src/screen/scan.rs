//! Splits terminal output into text, controls and sequences, in pieces of any size.
//!
//! The states are those of ECMA-48 and of xterm's "Control Sequences". Memory must stay bounded: a sequence or string
//! that is longer than any that matters here is skipped.

const BELL: u8 = 0x07;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
/// Sequences and strings that matter here are shorter.
const MAX_SEQUENCE_BYTES: usize = 4096;
/// An unfinished sequence or string is kept up to this length, so that it can be repeated.
const MAX_UNFINISHED_BYTES: usize = 16 * 1024;

/// One piece of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text including newlines, tabs and backspaces.
    Text(&'a [u8]),
    Control(u8),
    /// `ESC` and what follows.
    Escape {
        intermediate: Option<u8>,
        end: u8,
    },
    /// `ESC [`: the parameters and the final character.
    Sequence {
        body: &'a [u8],
        end: u8,
    },
    /// `ESC ]`: an operating system command.
    Command(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    EscapeWith(u8),
    Sequence,
    Command,
    CommandEscape,
    /// A device control, application, privacy or start string: its content is ignored.
    Other,
    OtherEscape,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    state: State,
    kept: Vec<u8>,
    is_too_long: bool,
    /// A sequence, string or character that has begun and not ended, as written.
    unfinished: Vec<u8>,
}

impl Scanner {
    pub(super) fn scan(&mut self, written: &[u8], mut found: impl FnMut(Token<'_>)) {
        let mut rest = written;
        // Where the unfinished part began; before this piece if unknown.
        let mut begun = None;
        while !rest.is_empty() {
            let used = self.step(rest, &mut found);
            rest = &rest[used..];
            if self.state == State::Escape {
                begun = Some(written.len() - rest.len() - 1);
            }
        }
        self.note_unfinished(written, begun);
    }

    /// The unfinished part, up to [`MAX_UNFINISHED_BYTES`]; empty between sequences and characters.
    pub(super) fn unfinished(&self) -> &[u8] {
        &self.unfinished
    }

    /// How much of `next` completes the unfinished part; all of it if nothing does.
    pub(super) fn length_to_finish(&self, next: &[u8]) -> usize {
        let mut ahead =
            Self { state: self.state, unfinished: self.unfinished.clone(), ..Self::default() };
        let mut bytes = next.chunks(1);
        let mut length = 0;
        while !ahead.unfinished.is_empty()
            && let Some(byte) = bytes.next()
        {
            ahead.scan(byte, |_| {});
            length += 1;
        }
        length
    }

    fn note_unfinished(&mut self, written: &[u8], begun: Option<usize>) {
        match (self.state, begun) {
            (State::Text, _) => {
                // A character may have begun in the previous piece.
                let [before, last] = [&self.unfinished, written].map(last_bytes);
                let end = [before, last].concat();
                self.unfinished = end[end.len() - unfinished_character(&end)..].to_vec();
            }
            (_, Some(begun)) => {
                self.unfinished.clear();
                self.keep_unfinished(&written[begun..]);
            }
            (_, None) => self.keep_unfinished(written),
        }
    }

    fn keep_unfinished(&mut self, bytes: &[u8]) {
        let room = MAX_UNFINISHED_BYTES.saturating_sub(self.unfinished.len());
        self.unfinished.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Processes the next piece of output, and returns its length. An `ESC` ends a piece.
    fn step(&mut self, written: &[u8], found: &mut impl FnMut(Token<'_>)) -> usize {
        match (self.state, written) {
            (_, []) => 0,
            (State::Text, _) => {
                let until = memchr::memchr3(ESCAPE, SHIFT_OUT, SHIFT_IN, written);
                let text = &written[..until.unwrap_or(written.len())];
                if !text.is_empty() {
                    found(Token::Text(text));
                }
                match until.map(|at| written[at]) {
                    Some(ESCAPE) => self.state = State::Escape,
                    Some(shift) => found(Token::Control(shift)),
                    None => {}
                }
                text.len() + usize::from(until.is_some())
            }
            (State::Command | State::Other, _) => self.string(written),
            (_, [first, ..]) => {
                self.state = self.next(*first, found);
                1
            }
        }
    }

    /// Processes a part of a string, up to what may end it.
    fn string(&mut self, written: &[u8]) -> usize {
        let is_command = self.state == State::Command;
        let ends = |byte: &u8| {
            matches!(*byte, ESCAPE | CANCEL | SUBSTITUTE) || (is_command && *byte == BELL)
        };
        // The byte that ends it is handled by `next`, in the corresponding state.
        let length = written.iter().position(ends).unwrap_or(written.len());
        if is_command {
            self.keep(&written[..length]);
        }
        if length < written.len() {
            self.state = if is_command { State::CommandEscape } else { State::OtherEscape };
            if written[length] == ESCAPE {
                return length + 1;
            }
        }
        length
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.kept.len() + bytes.len() > MAX_SEQUENCE_BYTES {
            self.is_too_long = true;
        } else {
            self.kept.extend_from_slice(bytes);
        }
    }

    fn begin(&mut self, state: State) -> State {
        self.kept.clear();
        self.is_too_long = false;
        state
    }

    fn next(&mut self, byte: u8, found: &mut impl FnMut(Token<'_>)) -> State {
        match (self.state, byte) {
            (State::CommandEscape, b'\\' | BELL) => {
                if !self.is_too_long {
                    found(Token::Command(&self.kept));
                }
                State::Text
            }
            (State::OtherEscape, b'\\') | (_, CANCEL | SUBSTITUTE) => State::Text,
            (_, ESCAPE) => State::Escape,
            (State::Escape | State::CommandEscape | State::OtherEscape, b'[') => {
                self.begin(State::Sequence)
            }
            (State::Escape | State::CommandEscape | State::OtherEscape, b']') => {
                self.begin(State::Command)
            }
            (
                State::Escape | State::CommandEscape | State::OtherEscape,
                b'P' | b'X' | b'^' | b'_',
            ) => State::Other,
            (State::Sequence, b' '..=b'?') => {
                self.keep(&[byte]);
                State::Sequence
            }
            (State::Sequence, b'@'..=b'~') => {
                if !self.is_too_long {
                    found(Token::Sequence { body: &self.kept, end: byte });
                }
                State::Text
            }
            (State::Escape | State::CommandEscape | State::OtherEscape, b' '..=b'/') => {
                State::EscapeWith(byte)
            }
            (State::EscapeWith(first), b' '..=b'/') => State::EscapeWith(first),
            (State::EscapeWith(first), b'0'..=b'~') => {
                found(Token::Escape { intermediate: Some(first), end: byte });
                State::Text
            }
            (_, b'0'..=b'~') => {
                found(Token::Escape { intermediate: None, end: byte });
                State::Text
            }
            (state, 0..=0x1f) => {
                found(Token::Control(byte));
                state
            }
            _ => State::Text,
        }
    }
}

/// The maximum length of an unfinished character.
fn last_bytes(written: &[u8]) -> &[u8] {
    &written[written.len().saturating_sub(3)..]
}

/// How many bytes at the end are an incomplete character (UTF-8).
fn unfinished_character(end: &[u8]) -> usize {
    let begins = |length: &usize| {
        let last = std::str::from_utf8(&end[end.len() - length..]);
        last.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=end.len().min(3)).rev().find(begins).unwrap_or(0)
}

/// The numbers of a sequence; a missing one is 0, parts after a colon are ignored.
pub(super) fn numbers(body: &[u8]) -> impl Iterator<Item = u16> + '_ {
    body.split(|byte| *byte == b';').map(|part| {
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0_u16, |so_far, digit| {
            so_far.saturating_mul(10).saturating_add(u16::from(digit - b'0'))
        })
    })
}

#[cfg(test)]
#[path = "scan_tests.rs"]
pub(crate) mod tests;
