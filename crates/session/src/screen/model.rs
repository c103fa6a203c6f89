//! What the terminal shows, cell by cell, as far as the inside has written it.
//!
//! Kept by the `vt100` crate, and fed only when that is needed. On the main screen the last output is remembered as it is and read
//! when a question comes: for something to show behind it; the terminal itself keeps what was there. A full-screen program's output is
//! fed as it comes, a batch at a time, since the terminal has no second place to keep that screen in.

use super::modes::Letters;
use super::scan::{Scanner, Token, numbers};
use std::num::NonZeroU16;

/// Output that is remembered before it is fed or forgotten.
const BATCH: usize = 64 * 1024;
/// A larger screen is not modelled: memory is bounded.
const MOST_ROWS: u16 = 300;
const MOST_COLUMNS: u16 = 1000;

/// Rows and columns.
pub(crate) type Size = (u16, u16);

#[derive(Debug, Default)]
pub(super) struct Model {
    waiting: Vec<u8>,
    /// None as long as nothing had to be fed.
    fed: Option<Fed>,
}

struct Fed {
    parser: vt100::Parser,
    scanner: Scanner,
    letters: Letters,
}

impl std::fmt::Debug for Fed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fed").field("size", &self.parser.screen().size()).finish()
    }
}

impl Model {
    /// Takes what was written; `is_alternate` says on which screen that ended.
    pub(super) fn take(&mut self, written: &[u8], is_alternate: bool, size: Size) {
        self.waiting.extend_from_slice(written);
        if self.waiting.len() < BATCH {
            return;
        }
        if is_alternate {
            self.feed(size);
        } else {
            self.fed = None;
            let surplus = self.waiting.len() - BATCH / 2;
            // From a line's beginning, so that no sequence is cut.
            let cut = memchr::memchr(b'\n', &self.waiting[surplus..]);
            self.waiting.drain(..cut.map_or(self.waiting.len(), |at| surplus + at + 1));
        }
    }

    /// The screen as it is now.
    pub(super) fn screen(&mut self, size: Size) -> Option<&vt100::Screen> {
        self.feed(size);
        self.fed.as_ref().map(|fed| fed.parser.screen())
    }

    /// Everything so far was written for this size; what follows is for another.
    pub(super) fn resize(&mut self, from: Size, to: Size) {
        if self.fed.is_some() || !self.waiting.is_empty() {
            self.feed(from);
        }
        let Some(fed) = &mut self.fed else { return };
        match dimensions(to) {
            Some((rows, columns)) => fed.parser.screen_mut().set_size(rows, columns),
            None => self.fed = None,
        }
    }

    fn feed(&mut self, size: Size) {
        if self.fed.is_none() {
            let Some((rows, columns)) = dimensions(size) else {
                self.waiting.clear();
                return;
            };
            let mut parser = vt100::Parser::new(rows, columns, 0);
            // Where the cursor was is not known; most often it is on the last row.
            parser.process(format!("\x1b[{rows};1H").as_bytes());
            self.fed =
                Some(Fed { parser, scanner: Scanner::default(), letters: Letters::default() });
        }
        if let Some(fed) = &mut self.fed {
            fed.feed(&self.waiting);
        }
        self.waiting.clear();
    }
}

impl Fed {
    /// Rewrites what the crate does not know: letters that stand for lines, one number of the alternate screen.
    /// Strings are of no use to it.
    fn feed(&mut self, written: &[u8]) {
        let Self { parser, scanner, letters } = self;
        scanner.scan(written, |token| {
            letters.apply(&token);
            match token {
                Token::Text(text) if letters.are_lines() => {
                    let text = text.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
                    let lines: String = text.map(line_of).collect();
                    parser.process(lines.as_bytes());
                }
                Token::Text(text) => parser.process(text),
                Token::Control(byte) => parser.process(&[byte]),
                Token::Escape { intermediate: None, end } => parser.process(&[0x1b, end]),
                Token::Escape { .. } | Token::Command(_) => {}
                Token::Sequence { body: [b'?', body @ ..], end: end @ (b'h' | b'l') }
                    if numbers(body).any(|number| number == 1047) =>
                {
                    let clear: &[u8] = if end == b'l' { b"\x1b[2J" } else { b"" };
                    parser.process(&[clear, b"\x1b[?47", &[end]].concat());
                }
                Token::Sequence { body, end } => {
                    parser.process(&[&b"\x1b["[..], body, &[end]].concat());
                }
            }
        });
    }
}

fn dimensions((rows, columns): Size) -> Option<(NonZeroU16, NonZeroU16)> {
    let within = |number: u16, most: u16| NonZeroU16::new(number).filter(|it| it.get() <= most);
    within(rows, MOST_ROWS).zip(within(columns, MOST_COLUMNS))
}

/// DEC's special graphics.
fn line_of(letter: char) -> char {
    const LINES: [char; 31] = [
        '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─',
        '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
    ];
    let index =
        u32::from(letter).checked_sub(u32::from('`')).and_then(|at| usize::try_from(at).ok());
    index.and_then(|at| LINES.get(at).copied()).unwrap_or(letter)
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
