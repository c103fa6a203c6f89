//! The terminal's content, cell by cell, as far as the command has written it.
//!
//! The `vt100` crate maintains it, and is fed only when necessary. On the main screen the last output is stored and
//! parsed only for a question, to show something behind it; the terminal itself keeps that screen. A full-screen
//! program's output is fed in batches as it arrives, since the terminal cannot keep that screen elsewhere.

mod side_margins;
mod work;

use super::drawing;
use super::looks::{Looks, number_of, sequence_of};
use super::pen::{Look, Pen, PenChange, is_plain};
use super::scan::{Scanner, Token, numbers};
use super::tab_stops::TabStops;
use side_margins::Margins;
use std::collections::BTreeSet;
use std::num::NonZeroU16;
use work::{Work, is_fill};

/// How much output is stored before it is fed or dropped.
const BATCH: usize = 64 * 1024;
/// Larger screens are not modelled, to bound memory.
const MAX_ROWS: u16 = 300;
const MAX_COLUMNS: u16 = 1000;

/// Rows and columns.
pub(crate) type Size = (u16, u16);

#[derive(Debug, Default)]
pub(super) struct Model {
    waiting: Vec<u8>,
    /// `None` until something had to be fed.
    fed: Option<Fed>,
}

struct Fed {
    parser: vt100::Parser,
    scanner: Scanner,
    pen: Pen,
    looks: Looks,
    tab_stops: TabStops,
    /// `DECAWM` off and `IRM` on: the crate supports neither.
    never_wraps: bool,
    inserts: bool,
    margins: Margins,
    work: Work,
}

/// Whether the model has taken all of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    All,
    /// It would have taken too long.
    NotAll,
}

/// The present screen.
#[derive(Debug)]
pub(super) struct Drawn<'m>(&'m Fed);

impl Drawn<'_> {
    /// All cells, for an empty screen.
    pub(super) fn contents(&self) -> Vec<u8> {
        let mut drawn = Vec::new();
        drawing::contents(self.0.parser.screen(), &self.0.looks, &mut drawn);
        drawn
    }

    /// The number of empty rows at the bottom, below the cursor.
    pub(super) fn free_rows(&self) -> usize {
        let screen = self.0.parser.screen();
        let (rows, columns) = screen.size();
        let (cursor, _) = screen.cursor_position();
        let free = screen.rows(0, columns.get()).collect::<Vec<_>>().into_iter().rev();
        let blank = free.take_while(|row| row.trim_end().is_empty()).count();
        blank.min(usize::from(rows.get().saturating_sub(cursor + 1)))
    }

    /// The cursor, with rows counted from `first`.
    pub(super) fn cursor(&self, first: u16) -> Vec<u8> {
        let mut drawn = Vec::new();
        drawing::cursor(self.0.parser.screen(), &self.0.looks, first, &mut drawn);
        drawn
    }
}

impl std::fmt::Debug for Fed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fed").field("size", &self.parser.screen().size()).finish()
    }
}

impl Model {
    /// Takes output; `is_alternate` is the screen at its end.
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
            // From the beginning of a line, so that no sequence is cut.
            let cut = memchr::memchr(b'\n', &self.waiting[surplus..]);
            self.waiting.drain(..cut.map_or(self.waiting.len(), |at| surplus + at + 1));
        }
    }

    /// The present screen.
    pub(super) fn drawn(&mut self, size: Size) -> Option<Drawn<'_>> {
        self.feed(size);
        self.fed.as_ref().map(Drawn)
    }

    /// Everything so far was written for size `from`; what follows is for `to`.
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
            // The cursor position is unknown; usually it is in the last row.
            parser.process(format!("\x1b[{rows};1H").as_bytes());
            self.fed = Some(Fed::new(parser));
        }
        // A program that changes more than anybody could see has no picture that is worth the time: after a question its
        // screen is empty until it draws again.
        if self.fed.as_mut().is_some_and(|fed| fed.feed(&self.waiting) == Followed::NotAll) {
            self.fed = None;
        }
        self.waiting.clear();
    }
}

impl Fed {
    fn new(parser: vt100::Parser) -> Self {
        Self {
            parser,
            scanner: Scanner::default(),
            pen: Pen::default(),
            looks: Looks::default(),
            tab_stops: TabStops::default(),
            never_wraps: false,
            inserts: false,
            margins: Margins::default(),
            work: Work::default(),
        }
    }

    fn feed(&mut self, written: &[u8]) -> Followed {
        let size = self.size();
        self.work.begin();
        self.scanner.clone().scan(written, |token| self.work.expect(&token));
        let mut scanner = std::mem::take(&mut self.scanner);
        let mut followed = Followed::All;
        scanner.scan(written, |token| {
            let is_seen = self.work.is_seen(&token);
            if is_seen && !self.work.pay(&token, size) {
                followed = Followed::NotAll;
            }
            if followed == Followed::All {
                followed = self.take(&token, is_seen);
            }
        });
        self.scanner = scanner;
        followed
    }

    /// Rewrites what the crate does not support, and drops strings, which it does not need.
    fn take(&mut self, token: &Token<'_>, is_seen: bool) -> Followed {
        let change = self.pen.apply(token);
        match self.take_within_margins(token) {
            Some(Followed::NotAll) => return Followed::NotAll,
            Some(Followed::All) => {}
            None => self.take_plainly(token, is_seen),
        }
        match change {
            // It was drawn in another one.
            PenChange::Nothing if is_fill(token) => self.take_look(&self.pen.look().clone()),
            PenChange::Look => self.take_look(&self.pen.look().clone()),
            PenChange::Nothing => Followed::All,
        }
    }

    fn take_plainly(&mut self, token: &Token<'_>, is_seen: bool) {
        match *token {
            Token::Text(text) => self.write(text),
            Token::Control(byte) => self.parser.process(&[byte]),
            _ if is_fill(token) => self.fill_for_alignment(is_seen),
            Token::Escape { intermediate: None, end } => match end {
                b'D' => self.parser.process(b"\n"),
                b'E' => self.parser.process(b"\r\n"),
                b'H' => self.tab_stops.set(self.column(), self.columns()),
                end => {
                    if end == b'c' {
                        (self.never_wraps, self.inserts) = (false, false);
                        self.tab_stops.reset();
                    }
                    self.parser.process(&[0x1b, end]);
                }
            },
            Token::Escape { .. } | Token::Command(_) => {}
            Token::Sequence { body: [b'?', body @ ..], end: end @ (b'h' | b'l') } => {
                numbers(body).for_each(|number| self.set_private(number, end));
            }
            // `ED` that another covers.
            Token::Sequence { .. } if !is_seen => {}
            Token::Sequence { body, end } => self.sequence(body, end),
        }
    }

    /// What is written from now on looks like this.
    fn take_look(&mut self, look: &Look) -> Followed {
        let (parser, work) = (&self.parser, &mut self.work);
        let (rows, columns) = parser.screen().size();
        let mut followed = Followed::All;
        let number = self.looks.number(look, || {
            if !work.pay_for(usize::from(rows.get()) * usize::from(columns.get())) {
                followed = Followed::NotAll;
            }
            in_use(parser.screen())
        });
        self.parser.process(&sequence_of(number));
        followed
    }

    /// `DECALN`: fills the screen with plain letters, without margins.
    fn fill_for_alignment(&mut self, is_seen: bool) {
        self.parser.process(b"\x1b[r");
        if is_seen {
            self.parser.process(&sequence_of(0));
            let row = "E".repeat(usize::from(self.columns()));
            for number in 1..=self.size().0 {
                self.parser.process(format!("\x1b[{number}H{row}").as_bytes());
            }
        }
        self.parser.process(b"\x1b[H");
    }

    fn size(&self) -> Size {
        let (rows, columns) = self.parser.screen().size();
        (rows.get(), columns.get())
    }

    fn columns(&self) -> u16 {
        self.size().1
    }

    /// The cursor's, also where the next character wraps.
    fn column(&self) -> u16 {
        self.parser.screen().cursor_position().1.min(self.columns() - 1)
    }

    fn go_to_column(&mut self, column: u16) {
        self.again(format!("{}", column + 1).as_bytes(), b'G');
    }

    fn tab(&mut self) {
        match self.tab_stops.are_changed() {
            true => self.go_to_column(self.tab_stops.after(self.column(), 1, self.columns())),
            false => self.parser.process(b"\t"),
        }
    }

    fn set_private(&mut self, number: u16, end: u8) {
        match (number, end) {
            (7, end) => self.never_wraps = end == b'l',
            (1047, b'l') => self.parser.process(b"\x1b[2J\x1b[?47l"),
            (1047, _) => self.parser.process(b"\x1b[?47h"),
            (1048, b'h') => self.parser.process(b"\x1b7"),
            (1048, _) => self.parser.process(b"\x1b8"),
            (number, end) => {
                self.parser.process(format!("\x1b[?{number}{}", char::from(end)).as_bytes());
            }
        }
    }

    fn sequence(&mut self, body: &[u8], end: u8) {
        let count = || numbers(body).next().unwrap_or(0).max(1);
        match (body, end) {
            // Handled by the pen.
            (body, b'm') if is_plain(body) => {}
            (b"", b's') => self.parser.process(b"\x1b7"),
            (b"", b'u') => self.parser.process(b"\x1b8"),
            (body, b'h' | b'l') if is_plain(body) => {
                if numbers(body).any(|number| number == 4) {
                    self.inserts = end == b'h';
                }
            }
            (b"!", b'p') => {
                (self.never_wraps, self.inserts) = (false, false);
                self.parser.process(b"\x1b[?6l\x1b[?25h");
            }
            (body, b'a') if is_plain(body) => self.again(body, b'C'),
            (body, b'e') if is_plain(body) => self.again(body, b'B'),
            (body, b'I') if is_plain(body) => {
                self.go_to_column(self.tab_stops.after(self.column(), count(), self.columns()));
            }
            (body, b'Z') if is_plain(body) => {
                self.go_to_column(self.tab_stops.before(self.column(), count()));
            }
            (b"" | b"0", b'g') => self.tab_stops.clear(self.column(), self.columns()),
            (b"3", b'g') => self.tab_stops.clear_all(),
            // `DECST8C`.
            (b"?5", b'W') => self.tab_stops.reset(),
            (body, end) => self.again(body, end),
        }
    }

    fn again(&mut self, body: &[u8], end: u8) {
        self.parser.process(&[&b"\x1b["[..], body, &[end]].concat());
    }

    fn write(&mut self, text: &[u8]) {
        if !self.tab_stops.are_changed() {
            return self.write_between_tabs(text);
        }
        for (number, text) in text.split(|byte| *byte == b'\t').enumerate() {
            if number > 0 {
                self.tab();
            }
            self.write_between_tabs(text);
        }
    }

    fn write_between_tabs(&mut self, text: &[u8]) {
        if !self.never_wraps && !self.inserts {
            return self.parser.process(text);
        }
        let columns = self.columns();
        for letter in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            if self.inserts && !letter.is_control() {
                self.parser.process(b"\x1b[@");
            }
            self.parser.process(letter.encode_utf8(&mut [0; 4]).as_bytes());
            if self.never_wraps && self.parser.screen().cursor_position().1 >= columns {
                self.again(format!("{columns}").as_bytes(), b'G');
            }
        }
    }
}

/// The numbers of looks on the screen.
fn in_use(screen: &vt100::Screen) -> BTreeSet<u32> {
    let (rows, columns) = screen.size();
    let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
    cells.filter_map(|(row, column)| screen.cell(row, column)).map(number_of).collect()
}

fn dimensions((rows, columns): Size) -> Option<(NonZeroU16, NonZeroU16)> {
    let within = |number: u16, most: u16| NonZeroU16::new(number).filter(|it| it.get() <= most);
    within(rows, MAX_ROWS).zip(within(columns, MAX_COLUMNS))
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
