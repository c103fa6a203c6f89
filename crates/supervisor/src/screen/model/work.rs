//! How much work a piece of output makes, in cells of the screen.
//!
//! A few bytes can change a whole screen: erase it, scroll it away, repeat a character 65,535 times. The supervisor has
//! other things to do, and the terminal may be large. So each batch of output has a budget, and erasing the screen counts
//! once for as many times as it is done in a row.

use super::Size;
use crate::screen::scan::{Token, numbers};
use std::collections::VecDeque;

/// For one batch of output: a screen of 50 by 200 can be erased 800 times with it.
const MAX_CELLS: usize = 8 * 1024 * 1024;
/// What it costs to write a character, in cells that are erased.
const CHARACTER: usize = 8;

/// What is left to do in a batch.
#[derive(Debug, Default)]
pub(super) struct Work {
    cells_left: usize,
    /// How often all of the screen is erased or filled before the command goes to the other screen, and so on. Each but
    /// the last of them has no effect that can be seen.
    covers_left: VecDeque<usize>,
}

impl Work {
    pub(super) fn begin(&mut self) {
        self.cells_left = MAX_CELLS;
        self.covers_left = VecDeque::from([0]);
    }

    /// Looks ahead.
    pub(super) fn expect(&mut self, token: &Token<'_>) {
        if changes_screen(token) {
            self.covers_left.push_back(0);
        } else if covers_screen(token)
            && let Some(count) = self.covers_left.back_mut()
        {
            *count += 1;
        }
    }

    /// Whether this has an effect that can be seen; to be asked about every token that was looked at ahead, in order.
    pub(super) fn is_seen(&mut self, token: &Token<'_>) -> bool {
        if changes_screen(token) {
            self.covers_left.pop_front();
        }
        let count = self.covers_left.front_mut().filter(|_| covers_screen(token));
        count.is_none_or(|count| {
            *count = count.saturating_sub(1);
            *count == 0
        })
    }

    /// Whether there was enough left for this token.
    pub(super) fn pay(&mut self, token: &Token<'_>, size: Size) -> bool {
        self.pay_for(cells_of(token, size))
    }

    pub(super) fn pay_for(&mut self, cells: usize) -> bool {
        let left = self.cells_left.checked_sub(cells);
        self.cells_left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Whether nothing of what was on the screen is left: `DECALN`, or `ED` of all of it.
fn covers_screen(token: &Token<'_>) -> bool {
    is_fill(token) || matches!(token, Token::Sequence { body: b"2", end: b'J' })
}

/// Whether it is `DECALN`.
pub(super) fn is_fill(token: &Token<'_>) -> bool {
    matches!(token, Token::Escape { intermediate: Some(b'#'), end: b'8' })
}

/// Whether the main or the alternate screen may be shown after it in place of the other.
fn changes_screen(token: &Token<'_>) -> bool {
    match token {
        Token::Sequence { body: [b'?', body @ ..], end: b'h' | b'l' } => {
            numbers(body).any(|number| matches!(number, 47 | 1047 | 1049))
        }
        Token::Escape { intermediate: None, end: b'c' } => true,
        _ => false,
    }
}

fn cells_of(token: &Token<'_>, (rows, columns): Size) -> usize {
    let (rows, columns) = (usize::from(rows), usize::from(columns));
    match *token {
        Token::Text(text) => {
            let lines = text.iter().filter(|byte| matches!(byte, b'\n'..=0x0c)).count();
            text.len() * CHARACTER + lines * columns
        }
        Token::Escape { intermediate: None, end: b'D' | b'E' | b'M' } => columns,
        Token::Sequence { body: [b'?', ..], end: b'h' | b'l' } if changes_screen(token) => {
            rows * columns
        }
        Token::Escape { intermediate: None, end: b'c' } => 2 * rows * columns,
        _ if is_fill(token) => rows * columns * CHARACTER,
        Token::Sequence { body, end } => {
            let count = usize::from(numbers(body).next().unwrap_or(0).max(1));
            match end {
                b'J' => rows * columns,
                b'L' | b'M' | b'S' | b'T' => count.min(rows) * columns + rows,
                b'@' | b'P' | b'X' | b'K' => columns,
                // Each may scroll.
                b'b' => count * CHARACTER + (count / columns.max(1)) * columns,
                _ => 1,
            }
        }
        _ => 1,
    }
}
