//! The attributes with which text is written: its look, its character set, its link. Separate from the position, since
//! `DECSC` saves them and a question has to restore them.

use super::attributes::Attributes;
use super::scan::{Token, numbers};

/// The prefix of `OSC 8`.
const LINK: &[u8] = b"8;";
/// No link: `OSC 8` without parameters and address.
pub(super) const NO_LINK: &[u8] = b"\x1b]8;;\x1b\\";

/// The active character sets: `SCS`, and the shifts between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Letters {
    sets: [u8; 4],
    shift: usize,
}

impl Default for Letters {
    fn default() -> Self {
        Self { sets: [b'B'; 4], shift: 0 }
    }
}

impl Letters {
    fn restore(self, to: &mut Vec<u8>) {
        for (which, set) in (b'('..=b'+').zip(self.sets) {
            to.extend_from_slice(&[0x1b, which, set]);
        }
        let shift: &[u8] = [&b"\x0f"[..], b"\x0e", b"\x1bn", b"\x1bo"][self.shift];
        to.extend_from_slice(shift);
    }
}

/// How a cell looks, apart from its character.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look {
    pub(super) attributes: Attributes,
    /// Parameters and address of `OSC 8`; empty for none.
    link: Vec<u8>,
    /// DEC's special graphics: lines and corners instead of letters.
    draws_lines: bool,
}

impl Look {
    pub(super) fn restore(&self, to: &mut Vec<u8>) {
        self.restore_link(to);
        self.restore_apart_from_link(to);
    }

    /// The same where `last` is set now. A link may be long, and one that stays is not repeated: a few bytes that change
    /// something else would otherwise become thousands.
    pub(super) fn restore_after(&self, last: Option<&Self>, to: &mut Vec<u8>) {
        if last.is_none_or(|last| last.link != self.link) {
            self.restore_link(to);
        }
        self.restore_apart_from_link(to);
    }

    fn restore_link(&self, to: &mut Vec<u8>) {
        match self.link.is_empty() {
            true => to.extend_from_slice(NO_LINK),
            false => to.extend_from_slice(&[b"\x1b]8;", &self.link[..], b"\x1b\\"].concat()),
        }
    }

    fn restore_apart_from_link(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(if self.draws_lines { b"\x1b(0" } else { b"\x1b(B" });
        self.attributes.restore(to);
    }
}

/// The effect of a token on the pen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PenChange {
    Nothing,
    Look,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pen {
    look: Look,
    letters: Letters,
    /// What `DECSC` saves besides the cursor position.
    saved: (Attributes, Letters),
    /// `DECLRMM`: `CSI s` sets margins.
    has_side_margins: bool,
}

impl Pen {
    pub(super) fn look(&self) -> &Look {
        &self.look
    }

    pub(super) fn apply(&mut self, token: &Token<'_>) -> PenChange {
        let change = self.change(token);
        let draws_lines = self.letters.sets[self.letters.shift] == b'0';
        let differs = std::mem::replace(&mut self.look.draws_lines, draws_lines) != draws_lines;
        if differs { PenChange::Look } else { change }
    }

    fn change(&mut self, token: &Token<'_>) -> PenChange {
        match *token {
            Token::Control(0x0f) => self.letters.shift = 0,
            Token::Control(0x0e) => self.letters.shift = 1,
            Token::Escape { intermediate: None, end: b'n' } => self.letters.shift = 2,
            Token::Escape { intermediate: None, end: b'o' } => self.letters.shift = 3,
            Token::Escape { intermediate: Some(which @ b'('..=b'+'), end } => {
                self.letters.sets[usize::from(which - b'(')] = end;
            }
            Token::Escape { intermediate: None, end: b'7' } => self.save(),
            Token::Escape { intermediate: None, end: b'8' } => return self.restore_saved(),
            Token::Escape { intermediate: None, end: b'c' }
            | Token::Sequence { body: b"!", end: b'p' } => {
                *self = Self::default();
                return PenChange::Look;
            }
            Token::Sequence { body, end: b'm' } if is_plain(body) => {
                self.look.attributes.apply(body);
                return PenChange::Look;
            }
            Token::Sequence { body: b"", end: b's' } if !self.has_side_margins => self.save(),
            Token::Sequence { body: b"", end: b'u' } => return self.restore_saved(),
            Token::Sequence { body: [b'?', body @ ..], end: end @ (b'h' | b'l') } => {
                return self.set_modes(body, end == b'h');
            }
            Token::Command(command) => {
                let Some(link) = command.strip_prefix(LINK) else { return PenChange::Nothing };
                let has_address = link.iter().position(|byte| *byte == b';');
                let is_link = has_address.is_some_and(|at| at + 1 < link.len());
                self.look.link = if is_link { link.to_vec() } else { Vec::new() };
                return PenChange::Look;
            }
            _ => {}
        }
        PenChange::Nothing
    }

    fn set_modes(&mut self, body: &[u8], to: bool) -> PenChange {
        let mut change = PenChange::Nothing;
        for number in numbers(body) {
            match (number, to) {
                (69, to) => self.has_side_margins = to,
                (1048 | 1049, true) => self.save(),
                (1048 | 1049, false) => change = self.restore_saved(),
                _ => {}
            }
        }
        change
    }

    fn save(&mut self) {
        self.saved = (self.look.attributes.clone(), self.letters);
    }

    fn restore_saved(&mut self) -> PenChange {
        (self.look.attributes, self.letters) = self.saved.clone();
        PenChange::Look
    }

    /// Restores all attributes, whatever is set now.
    pub(super) fn restore(&self, to: &mut Vec<u8>) {
        self.look.restore(to);
        self.letters.restore(to);
    }
}

/// Whether a sequence has neither a private prefix nor an intermediate.
pub(super) fn is_plain(body: &[u8]) -> bool {
    body.iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'))
}
