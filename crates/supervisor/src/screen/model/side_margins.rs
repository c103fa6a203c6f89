//! Text between left and right margins (`DECLRMM`, `DECSLRM`), which the `vt100` crate does not support.
//!
//! tmux and neovim scroll one of two windows that are side by side with it, on terminals that say they can: tmux believes
//! the level in the reply to `DA`, neovim asks by `DECRQM`. It cannot be kept from them by dropping `DECSET 69`, because
//! tmux would not notice and its scrolling would move the other window, too. So the model follows it: while margins are
//! set, what depends on them is done here, cell by cell. It is slow, and paid for from the budget of the batch.
//!
//! One thing is not followed: that the next character would wrap at the right margin is forgotten by a question.

use super::work::is_fill;
use super::{Fed, Followed, Size, number_of, sequence_of};
use crate::screen::pen::is_plain;
use crate::screen::scan::{Token, numbers};
use std::ops::RangeInclusive;
use unicode_width::UnicodeWidthChar as _;

/// What it costs to move a cell, in cells that are erased.
const MOVED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Margins {
    /// `DECLRMM`.
    is_enabled: bool,
    /// `DECSLRM`: the first and the last column, from 0; `None` for the whole width.
    sides: Option<(u16, u16)>,
    /// `DECSTBM`: the first and the last row, from 0; `None` for the whole height.
    rows: Option<(u16, u16)>,
    /// `DECOM`.
    is_origin: bool,
    /// Whether the next character wraps.
    is_past_right: bool,
}

/// A part of the screen: rows and columns, from 0.
#[derive(Clone, Debug)]
struct Area {
    rows: RangeInclusive<u16>,
    columns: RangeInclusive<u16>,
}

impl Area {
    fn cells(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// By how many cells an area moves.
#[derive(Clone, Copy, Debug)]
enum Shift {
    Up(u16),
    Down(u16),
    Left(u16),
    Right(u16),
}

impl Margins {
    /// Both numbers of a sequence, from 1, as a range from 0 that is within `most`; `None` for all of it.
    fn range(body: &[u8], most: u16) -> Option<(u16, u16)> {
        let mut given = numbers(body);
        let first = given.next().unwrap_or(0).max(1) - 1;
        let last = given.next().filter(|last| (1..=most).contains(last)).unwrap_or(most) - 1;
        (first < last && (first, last) != (0, most - 1)).then_some((first, last))
    }

    /// Observes what changes margins. Whether they are changed by `DECSLRM`.
    fn watch(&mut self, token: &Token<'_>, (rows, columns): Size) -> bool {
        match *token {
            Token::Sequence { body: [b'?', body @ ..], end: end @ (b'h' | b'l') } => {
                for number in numbers(body) {
                    match number {
                        6 => self.is_origin = end == b'h',
                        69 => (self.is_enabled, self.sides) = (end == b'h', None),
                        _ => {}
                    }
                }
            }
            Token::Sequence { body, end: b's' } if self.is_enabled && is_plain(body) => {
                self.sides = Self::range(body, columns);
                return true;
            }
            Token::Sequence { body, end: b'r' } if is_plain(body) => {
                self.rows = Self::range(body, rows);
            }
            Token::Escape { intermediate: None, end: b'c' }
            | Token::Sequence { body: b"!", end: b'p' } => *self = Self::default(),
            _ if is_fill(token) => (self.sides, self.rows) = (None, None),
            _ => {}
        }
        false
    }
}

impl Fed {
    /// Does what depends on side margins; `None` if this does not, or there are none.
    pub(super) fn take_within_margins(&mut self, token: &Token<'_>) -> Option<Followed> {
        let size = self.size();
        let is_set = self.margins.watch(token, size);
        if is_set {
            self.parser.process(b"\x1b[H");
        }
        let sides = self.margins.sides.map(|(left, right)| (left, right.min(size.1 - 1)));
        let Some(sides) = sides.filter(|(left, right)| left < right) else {
            self.margins.is_past_right = false;
            return is_set.then_some(Followed::All);
        };
        let followed = match *token {
            Token::Text(text) => return Some(self.write_within(text, sides)),
            Token::Escape { intermediate: None, end: b'D' } => self.feed_line(sides),
            Token::Escape { intermediate: None, end: b'E' } => {
                self.return_to_margin(sides);
                self.feed_line(sides)
            }
            Token::Escape { intermediate: None, end: b'M' } => self.feed_line_back(sides)?,
            Token::Sequence { body, end } if is_plain(body) => {
                self.sequence_within(body, end, sides)?
            }
            _ => None?,
        };
        self.margins.is_past_right = false;
        Some(followed)
    }

    fn sequence_within(&mut self, body: &[u8], end: u8, sides: (u16, u16)) -> Option<Followed> {
        let (left, right) = sides;
        let (row, column) = self.position();
        let count = numbers(body).next().unwrap_or(0).max(1);
        let area = |rows, columns| Area { rows, columns };
        let (top, bottom) = self.region();
        let is_within = (left..=right).contains(&column);
        let is_in_area = is_within && (top..=bottom).contains(&row);
        match end {
            b's' => {
                if self.margins.is_origin {
                    self.go_to_column(left);
                }
            }
            b'S' => return Some(self.shift(&area(top..=bottom, left..=right), Shift::Up(count))),
            b'T' => return Some(self.shift(&area(top..=bottom, left..=right), Shift::Down(count))),
            b'L' | b'M' if is_in_area => {
                let by = if end == b'L' { Shift::Down(count) } else { Shift::Up(count) };
                let followed = self.shift(&area(row..=bottom, left..=right), by);
                self.go_to_column(left);
                return Some(followed);
            }
            b'@' | b'P' if is_within => {
                let by = if end == b'@' { Shift::Right(count) } else { Shift::Left(count) };
                return Some(self.shift(&area(row..=row, column..=right), by));
            }
            b'L' | b'M' | b'@' | b'P' => {}
            b'C' | b'a' if column <= right => {
                self.go_to_column(column.saturating_add(count).min(right));
            }
            b'D' if column >= left => {
                self.go_to_column(column.saturating_sub(count).max(left));
            }
            b'E' | b'F' => {
                self.again(body, if end == b'E' { b'B' } else { b'A' });
                self.return_to_margin(sides);
            }
            b'H' | b'f' if self.margins.is_origin => {
                let wanted = numbers(body).nth(1).unwrap_or(0).max(1) - 1;
                self.again(body, end);
                self.go_to_column(wanted.saturating_add(left).min(right));
            }
            b'G' | b'`' if self.margins.is_origin => {
                self.go_to_column((count - 1).saturating_add(left).min(right));
            }
            _ => return None,
        }
        Some(Followed::All)
    }

    fn write_within(&mut self, text: &[u8], sides: (u16, u16)) -> Followed {
        let (left, right) = sides;
        for letter in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            let column = self.column();
            let was_past_right = self.margins.is_past_right;
            self.margins.is_past_right = false;
            let followed = match letter {
                '\r' => {
                    self.return_to_margin(sides);
                    Followed::All
                }
                '\n' | '\x0b' | '\x0c' => self.feed_line(sides),
                '\x08' if column == left => Followed::All,
                '\t' => {
                    let stop = self.tab_stops.after(column, 1, self.columns());
                    self.go_to_column(if column <= right { stop.min(right) } else { stop });
                    Followed::All
                }
                letter => match letter.width().and_then(|width| u16::try_from(width).ok()) {
                    None | Some(0) => {
                        self.margins.is_past_right = was_past_right;
                        self.parser.process(letter.encode_utf8(&mut [0; 4]).as_bytes());
                        Followed::All
                    }
                    Some(width) => self.write_letter(letter, width, was_past_right, sides),
                },
            };
            if followed == Followed::NotAll {
                return followed;
            }
        }
        Followed::All
    }

    fn write_letter(
        &mut self,
        letter: char,
        width: u16,
        was_past_right: bool,
        sides: (u16, u16),
    ) -> Followed {
        let (left, right) = sides;
        let is_left_of_right = self.column() <= right;
        let has_room = !was_past_right && self.column() + width - 1 <= right;
        if is_left_of_right && !has_room && !self.never_wraps {
            self.go_to_column(left);
            if self.feed_line(sides) == Followed::NotAll {
                return Followed::NotAll;
            }
        }
        let column = self.column();
        if self.inserts && (left..=right).contains(&column) {
            let row = self.position().0;
            let area = Area { rows: row..=row, columns: column..=right };
            if self.shift(&area, Shift::Right(width)) == Followed::NotAll {
                return Followed::NotAll;
            }
        }
        self.parser.process(letter.encode_utf8(&mut [0; 4]).as_bytes());
        let is_at_end = self.parser.screen().cursor_position().1 > right;
        if is_left_of_right && is_at_end {
            self.go_to_column(right);
            self.margins.is_past_right = !self.never_wraps;
        } else if self.never_wraps && self.parser.screen().cursor_position().1 >= self.columns() {
            self.go_to_column(self.columns() - 1);
        }
        Followed::All
    }

    /// `CR`.
    fn return_to_margin(&mut self, (left, _): (u16, u16)) {
        let is_left_of_it = self.column() < left && !self.margins.is_origin;
        self.go_to_column(if is_left_of_it { 0 } else { left });
    }

    /// `LF`, `IND`: at the bottom margin the area scrolls, if the cursor is in it.
    fn feed_line(&mut self, (left, right): (u16, u16)) -> Followed {
        let ((row, column), (top, bottom)) = (self.position(), self.region());
        if row != bottom {
            self.parser.process(b"\n");
            return Followed::All;
        }
        match (left..=right).contains(&column) {
            true => self.shift(&Area { rows: top..=bottom, columns: left..=right }, Shift::Up(1)),
            false => Followed::All,
        }
    }

    /// `RI`; `None` if the cursor only moves.
    fn feed_line_back(&mut self, (left, right): (u16, u16)) -> Option<Followed> {
        let ((row, column), (top, bottom)) = (self.position(), self.region());
        if row != top {
            return None;
        }
        Some(match (left..=right).contains(&column) {
            true => self.shift(&Area { rows: top..=bottom, columns: left..=right }, Shift::Down(1)),
            false => Followed::All,
        })
    }

    fn position(&self) -> (u16, u16) {
        (self.parser.screen().cursor_position().0, self.column())
    }

    /// The first and the last row that scroll.
    fn region(&self) -> (u16, u16) {
        let last = self.size().0 - 1;
        let rows = self.margins.rows.map(|(top, bottom)| (top, bottom.min(last)));
        rows.filter(|(top, bottom)| top < bottom).unwrap_or((0, last))
    }

    /// Moves what is in an area within it; what becomes free is empty. The cursor stays.
    fn shift(&mut self, area: &Area, by: Shift) -> Followed {
        if !self.work.pay_for(area.cells() * MOVED) {
            return Followed::NotAll;
        }
        let from = |(row, column): (u16, u16)| match by {
            Shift::Up(count) => (row.saturating_add(count), column),
            Shift::Down(count) => (row.checked_sub(count).unwrap_or(u16::MAX), column),
            Shift::Left(count) => (row, column.saturating_add(count)),
            Shift::Right(count) => (row, column.checked_sub(count).unwrap_or(u16::MAX)),
        };
        let mut drawn = Vec::new();
        for row in area.rows.clone() {
            for column in area.columns.clone() {
                drawn.extend_from_slice(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
                self.draw_cell(from((row, column)), area, column, &mut drawn);
            }
        }
        let (row, column) = self.position();
        // Positions count from the first row of the screen, and nothing wraps or scrolls.
        self.parser.process(b"\x1b[?6l");
        self.parser.process(&drawn);
        if self.margins.is_origin {
            self.parser.process(b"\x1b[?6h");
        }
        let first = if self.margins.is_origin { self.region().0 } else { 0 };
        self.again(format!("{};{}", row.saturating_sub(first) + 1, column + 1).as_bytes(), b'H');
        self.take_look(&self.pen.look().clone())
    }

    /// Draws a cell of the area again, in this column; an empty one if it is none. Of a wide character the first half
    /// draws both.
    fn draw_cell(&self, from: (u16, u16), area: &Area, column: u16, to: &mut Vec<u8>) {
        let is_inside = area.rows.contains(&from.0) && area.columns.contains(&from.1);
        let cell = self.parser.screen().cell(from.0, from.1).filter(|_| is_inside);
        let last = *area.columns.end();
        match cell {
            Some(cell) if cell.is_wide_continuation() && column > *area.columns.start() => {}
            Some(cell) if cell.has_contents() && !(cell.is_wide() && column == last) => {
                to.extend_from_slice(&sequence_of(number_of(cell)));
                to.extend_from_slice(cell.contents().as_bytes());
            }
            cell => {
                to.extend_from_slice(&sequence_of(cell.map_or(0, number_of)));
                to.extend_from_slice(b"\x1b[X");
            }
        }
    }
}
