//! The terminal state that the command has changed apart from the content: modes, margins, colours, and text
//! attributes.
//!
//! A question needs a terminal in a known state, and the command must find its own state afterwards. What a question
//! sets must never depend on what was understood here; only what is restored does.

use super::palette::Palette;
use super::pen::{NO_LINK, Pen, is_plain};
use super::scan::{Token, numbers};

/// A private mode of a terminal (`DECSET`), with its initial state and its state during a question.
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
/// The names are those in xterm's "Private Modes".
const PRIVATE: [PrivateMode; 17] = [
    // Cursor keys.
    mode(1, false, false),
    // Reverse video.
    mode(5, false, false),
    // Left and right margins; origin mode. Both move the cursor home.
    mode(69, false, false),
    mode(6, false, false),
    // Wrapping: off, because a question positions its rows.
    mode(7, true, false),
    mode(25, true, true),
    // Keypad keys.
    mode(KEYPAD, false, false),
    // Mouse tracking and its encodings.
    mode(9, false, false),
    mode(1000, false, false),
    mode(1002, false, false),
    mode(1003, false, false),
    mode(1004, false, false),
    mode(1005, false, false),
    mode(1006, false, false),
    mode(1015, false, false),
    mode(1016, false, false),
    // Bracketed paste: pasted text is marked, and so not an answer.
    mode(2004, false, true),
];
/// Synchronized output. Never restored: the command may be waiting and not end it.
const SYNCHRONIZED: u16 = 2026;
/// `DECSET` numbers of the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

#[derive(Clone, Debug)]
pub(super) struct Modes {
    private: [bool; PRIVATE.len()],
    is_alternate: bool,
    inserts: bool,
    /// `DECSTBM` and `DECSLRM`: the numbers as received.
    margins: Option<(u16, u16)>,
    side_margins: Option<(u16, u16)>,
    pen: Pen,
    palette: Palette,
    /// xterm's `modifyOtherKeys`.
    other_keys: u16,
    /// Whether the last text ended with the first byte of a two-byte character.
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

    /// The first row of origin mode, from which cursor rows are counted.
    pub(super) fn origin(&self) -> Option<u16> {
        self.get(6).then(|| self.margins.map_or(1, |(top, _)| top.max(1)))
    }

    fn get(&self, number: u16) -> bool {
        PRIVATE.iter().zip(self.private).any(|(mode, is_set)| mode.number == number && is_set)
    }

    pub(super) fn apply(&mut self, token: &Token<'_>) {
        self.pen.apply(token);
        match *token {
            // `OSC` as a single character, which some terminals support.
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
            // `DECALN` removes the margins.
            Token::Escape { intermediate: Some(b'#'), end: b'8' } => {
                (self.margins, self.side_margins) = (None, None);
            }
            Token::Escape { .. } => {}
            Token::Sequence { body, end } => self.sequence(body, end),
        }
    }

    fn escape(&mut self, end: u8) {
        match end {
            b'=' => self.set(KEYPAD, true),
            b'>' => self.set(KEYPAD, false),
            // The colours are kept: not every terminal resets them.
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

    /// Ends what would swallow the following output: an unfinished sequence or string (`CAN`; `ST` where `CAN` is
    /// ignored), VT52 and printer modes, synchronized output.
    pub(super) fn interrupt(to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x18\x1b\\\x1b<\x1b[4i");
        to.extend_from_slice(format!("\x1b[?{SYNCHRONIZED}l").as_bytes());
    }

    /// Sets a state in which a question is displayed as written, whatever was understood of the earlier output. Moves
    /// the cursor.
    pub(super) fn reset_for_question(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x1b[r\x1b[4l");
        for mode in &PRIVATE {
            set_private(mode.number, mode.in_question, to);
        }
        to.extend_from_slice(b"\x1b(B\x1b)B\x0f\x1b[0m");
        // No row of a question may link to an address of the command's.
        to.extend_from_slice(NO_LINK);
        self.palette.reset(to);
        // Keys arrive as plain bytes: kitty's protocol is pushed on its stack, xterm's is switched off.
        to.extend_from_slice(b"\x1b[>0u");
        if self.other_keys > 0 {
            to.extend_from_slice(b"\x1b[>4;0m");
        }
    }

    /// Restores what the command had set, except what `DECSC` saves. Moves the cursor.
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
        // First the modes that are off: switching off one of the mouse modes may switch off the others.
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

    /// Restores the text attributes. Does not move the cursor.
    pub(super) fn restore_pen(&self, to: &mut Vec<u8>) {
        self.pen.restore(to);
    }
}

fn set_private(number: u16, to: bool, bytes: &mut Vec<u8>) {
    // By the older sequence, which more terminals support.
    if number == KEYPAD {
        bytes.extend_from_slice(if to { b"\x1b=" } else { b"\x1b>" });
        return;
    }
    bytes.extend_from_slice(format!("\x1b[?{number}{}", if to { 'h' } else { 'l' }).as_bytes());
}
