//! What the inside has made of the terminal beside writing on it: modes, margins, colours, and what it writes with.
//!
//! A question needs a terminal in a known state, and the inside must find its own again afterwards. What a question sets
//! does not depend on what was understood here; only what is put back does.

use super::palette::Palette;
use super::pen::{NO_LINK, Pen, is_plain};
use super::scan::{Token, numbers};

/// A private mode of a terminal (`DECSET`), with its state at first and while a question is shown.
struct PrivateMode {
    number: u16,
    at_first: bool,
    in_question: bool,
}

const fn mode(number: u16, at_first: bool, in_question: bool) -> PrivateMode {
    PrivateMode { number, at_first, in_question }
}

/// `DECNKM`.
const KEYPAD: u16 = 66;
/// The names are those of xterm's "Private Modes".
const PRIVATE: [PrivateMode; 17] = [
    // Keys of the cursor.
    mode(1, false, false),
    // Reverse video.
    mode(5, false, false),
    // Margins to the left and right; origin. Both move the cursor home.
    mode(69, false, false),
    mode(6, false, false),
    // Wrapping: a question places its rows.
    mode(7, true, false),
    mode(25, true, true),
    // Keys of the number pad.
    mode(KEYPAD, false, false),
    // The mouse: what is tracked, and how it is told.
    mode(9, false, false),
    mode(1000, false, false),
    mode(1002, false, false),
    mode(1003, false, false),
    mode(1004, false, false),
    mode(1005, false, false),
    mode(1006, false, false),
    mode(1015, false, false),
    mode(1016, false, false),
    // What is pasted is marked, and so no answer.
    mode(2004, false, true),
];
/// Output that is shown at once later. Never put back: the inside may be waiting and not end it.
const SYNCHRONIZED: u16 = 2026;
/// `DECSET` numbers of the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

#[derive(Clone, Debug)]
pub(super) struct Modes {
    private: [bool; PRIVATE.len()],
    is_alternate: bool,
    inserts: bool,
    /// `DECSTBM` and `DECSLRM`: the numbers as they came.
    margins: Option<(u16, u16)>,
    side_margins: Option<(u16, u16)>,
    pen: Pen,
    palette: Palette,
    /// xterm's `modifyOtherKeys`.
    other_keys: u16,
    /// Whether the last text ended with the first half of a character.
    ends_with_c2: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            private: PRIVATE.map(|mode| mode.at_first),
            is_alternate: false,
            inserts: false,
            margins: None,
            side_margins: None,
            pen: Pen::default(),
            palette: Palette::default(),
            other_keys: 0,
            ends_with_c2: false,
        }
    }
}

impl Modes {
    pub(super) fn is_alternate(&self) -> bool {
        self.is_alternate
    }

    /// The first row of where the cursor's rows are counted from.
    pub(super) fn origin(&self) -> Option<u16> {
        self.get(6).then(|| self.margins.map_or(1, |(top, _)| top.max(1)))
    }

    fn get(&self, number: u16) -> bool {
        PRIVATE.iter().zip(self.private).any(|(mode, is_set)| mode.number == number && is_set)
    }

    pub(super) fn apply(&mut self, token: &Token<'_>) {
        self.pen.apply(token);
        match *token {
            // `OSC` as one character, which some terminals know.
            Token::Text(text) => {
                let is_cut = self.ends_with_c2 && text.first() == Some(&0x9d);
                if is_cut || memchr::memmem::find(text, b"\xc2\x9d").is_some() {
                    self.palette.touch();
                }
                self.ends_with_c2 = text.last() == Some(&0xc2);
            }
            Token::Control(_) => {}
            Token::Command(command) => self.palette.apply(command),
            Token::Escape { intermediate: None, end } => self.escape(end),
            Token::Escape { .. } => {}
            Token::Sequence { body, end } => self.sequence(body, end),
        }
    }

    fn escape(&mut self, end: u8) {
        match end {
            b'=' => self.set(KEYPAD, true),
            b'>' => self.set(KEYPAD, false),
            // The colours stay: not every terminal resets them.
            b'c' => {
                *self = Self { palette: std::mem::take(&mut self.palette), ..Self::default() };
            }
            _ => {}
        }
    }

    fn sequence(&mut self, body: &[u8], end: u8) {
        let two = |body: &[u8]| {
            let mut given = numbers(body);
            (given.next().unwrap_or(0), given.next().unwrap_or(0))
        };
        match (body, end) {
            ([b'?', body @ ..], b'h') => numbers(body).for_each(|number| self.set(number, true)),
            ([b'?', body @ ..], b'l') => numbers(body).for_each(|number| self.set(number, false)),
            ([b'>', body @ ..], b'm') => {
                if let (4, value) = two(body) {
                    self.other_keys = value;
                }
            }
            // A soft reset.
            (b"!", b'p') => {
                let (is_alternate, palette) =
                    (self.is_alternate, std::mem::take(&mut self.palette));
                *self = Self { is_alternate, palette, ..Self::default() };
            }
            (body, _) if !is_plain(body) => {}
            (body, b'h') if numbers(body).any(|number| number == 4) => self.inserts = true,
            (body, b'l') if numbers(body).any(|number| number == 4) => self.inserts = false,
            (body, b'r') => self.margins = Some(two(body)).filter(|margins| *margins != (0, 0)),
            (body, b's') if self.get(69) => self.side_margins = Some(two(body)),
            _ => {}
        }
    }

    fn set(&mut self, number: u16, to: bool) {
        if ALTERNATE.contains(&number) {
            self.is_alternate = to;
        }
        if (number, to) == (69, false) {
            self.side_margins = None;
        }
        for (mode, is_set) in PRIVATE.iter().zip(&mut self.private) {
            if mode.number == number {
                *is_set = to;
            }
        }
    }

    /// Ends what was begun and must not swallow what comes next: an unfinished sequence or string (`CAN`; `ST` where
    /// that is not heard), VT52 and printer modes, output that is held back.
    pub(super) fn interrupt(to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x18\x1b\\\x1b<\x1b[4i");
        to.extend_from_slice(format!("\x1b[?{SYNCHRONIZED}l").as_bytes());
    }

    /// A state in which a question is read as it is written, whatever was understood of what came before. Moves the
    /// cursor.
    pub(super) fn reset_for_question(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x1b[r\x1b[4l");
        for mode in &PRIVATE {
            set_private(mode.number, mode.in_question, to);
        }
        to.extend_from_slice(b"\x1b(B\x1b)B\x0f\x1b[0m");
        // No row of a question leads to where the inside wants.
        to.extend_from_slice(NO_LINK);
        self.palette.reset(to);
        // Keys come as plain bytes: kitty's protocol is put aside, xterm's switched off.
        to.extend_from_slice(b"\x1b[>0u");
        if self.other_keys > 0 {
            to.extend_from_slice(b"\x1b[>4;0m");
        }
    }

    /// What the inside had set, but for what `DECSC` keeps. Moves the cursor.
    pub(super) fn restore_modes(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x1b[<u");
        if self.other_keys > 0 {
            to.extend_from_slice(format!("\x1b[>4;{}m", self.other_keys).as_bytes());
        }
        self.palette.restore(to);
        let numbers = |numbers: (u16, u16), end: char| match numbers {
            (first, 0) => format!("\x1b[{}{end}", first.max(1)),
            (first, last) => format!("\x1b[{};{last}{end}", first.max(1)),
        };
        // First what is off: of the mouse's modes, any that is switched off may switch off the others.
        let differs = || PRIVATE.iter().zip(self.private).filter(|(it, is)| it.in_question != *is);
        for (mode, _) in differs().filter(|(_, is_set)| !is_set) {
            set_private(mode.number, false, to);
        }
        if let Some(margins) = self.side_margins.filter(|_| self.get(69)) {
            set_private(69, true, to);
            to.extend_from_slice(numbers(margins, 's').as_bytes());
        }
        if let Some(margins) = self.margins {
            to.extend_from_slice(numbers(margins, 'r').as_bytes());
        }
        for (mode, _) in differs().filter(|(_, is_set)| *is_set) {
            set_private(mode.number, true, to);
        }
        if self.inserts {
            to.extend_from_slice(b"\x1b[4h");
        }
    }

    /// What the inside writes with. Leaves the cursor.
    pub(super) fn restore_pen(&self, to: &mut Vec<u8>) {
        self.pen.restore(to);
    }
}

fn set_private(number: u16, to: bool, bytes: &mut Vec<u8>) {
    // By its older name, which more terminals know.
    if number == KEYPAD {
        bytes.extend_from_slice(if to { b"\x1b=" } else { b"\x1b>" });
        return;
    }
    bytes.extend_from_slice(format!("\x1b[?{number}{}", if to { 'h' } else { 'l' }).as_bytes());
}
