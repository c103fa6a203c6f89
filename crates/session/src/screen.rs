//! Whether a full-screen program has the terminal, told from what it writes: the alternate screen of
//! xterm, which editors, pagers and monitors switch to (GATE-8).
//!
//! It only listens; what it is shown goes to the terminal unchanged.

const ESCAPE: u8 = 0x1b;
/// `DECSET` numbers of the alternate screen, see xterm's "Private Modes".
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading {
    #[default]
    Text,
    Escape,
    /// After `ESC [`.
    Sequence,
    /// After `ESC [ ?`: the number so far, and whether one before it was an alternate screen's.
    Private {
        number: u16,
        is_alternate: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Screen {
    reading: Reading,
    is_alternate: bool,
}

impl Screen {
    pub(crate) fn is_full(self) -> bool {
        self.is_alternate
    }

    /// Takes note of what is written to the terminal, wherever it is cut into pieces.
    pub(crate) fn watch(&mut self, written: &[u8]) {
        if self.reading == Reading::Text && !written.contains(&ESCAPE) {
            return;
        }
        for byte in written {
            self.reading = self.next(*byte);
        }
    }

    fn next(&mut self, byte: u8) -> Reading {
        match (self.reading, byte) {
            (_, ESCAPE) => Reading::Escape,
            (Reading::Escape, b'[') => Reading::Sequence,
            // A full reset.
            (Reading::Escape, b'c') => {
                self.is_alternate = false;
                Reading::Text
            }
            (Reading::Sequence, b'?') => Reading::Private { number: 0, is_alternate: false },
            (Reading::Private { number, is_alternate }, b'0'..=b'9') => Reading::Private {
                number: number.saturating_mul(10).saturating_add(u16::from(byte - b'0')),
                is_alternate,
            },
            (Reading::Private { number, is_alternate }, b';') => Reading::Private {
                number: 0,
                is_alternate: is_alternate || ALTERNATE.contains(&number),
            },
            (Reading::Private { number, is_alternate }, b'h' | b'l') => {
                if is_alternate || ALTERNATE.contains(&number) {
                    self.is_alternate = byte == b'h';
                }
                Reading::Text
            }
            _ => Reading::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Screen;

    fn after(pieces: &[&[u8]]) -> bool {
        let mut screen = Screen::default();
        pieces.iter().for_each(|piece| screen.watch(piece));
        screen.is_full()
    }

    /// Proves: GATE-8 no-prompt
    #[test]
    fn an_editor_has_the_screen_until_it_gives_it_back() {
        assert!(after(&[b"\x1b[?1049h\x1b[2J~\r\n~"]));
        assert!(!after(&[b"\x1b[?1049h", b"text", b"\x1b[?1049l"]));
        assert!(after(&[b"\x1b[?25;1049h"]), "several modes at once");
        assert!(after(&[b"\x1b[?47h"]), "as old terminals call it");
        assert!(!after(&[b"\x1b[?1049h", b"\x1bc"]), "a reset");
    }

    #[test]
    fn a_sequence_may_come_in_pieces() {
        assert!(after(&[b"\x1b", b"[", b"?", b"10", b"49", b"h"]));
        assert!(!after(&[b"\x1b[?104", b"x", b"9h"]));
    }

    #[test]
    fn other_modes_are_not_the_screen() {
        assert!(!after(&[b"\x1b[?1h\x1b[?2004h\x1b[?25l\x1b[1049h plain 1049h"]));
        assert!(after(&[b"\x1b[?1049h\x1b[?2004l"]));
    }
}
