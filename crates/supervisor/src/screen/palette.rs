//! Colours that the command has changed: `OSC 4`, `5`, `10` to `19` (xterm's "Operating System Commands").
//!
//! A changed palette could make a question unreadable, such as black on black. So a question is shown in the terminal's
//! own colours, and the command's changes are restored afterwards.

use std::collections::BTreeMap;

/// The size of the palette, including the special colours that some terminals number after it.
const MAX_COLOURS: u16 = 512;
/// `rgb:ffff/ffff/ffff` and the names of colours are shorter.
const MAX_COLOUR_BYTES: usize = 64;

/// Identifies a colour: the command, and for a palette the index in it.
type Name = (u16, u16);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Palette {
    changed: BTreeMap<Name, Vec<u8>>,
    /// Whether any output may have changed a colour.
    is_touched: bool,
}

impl Palette {
    pub(super) fn apply(&mut self, command: &[u8]) {
        let mut parts = command.split(|byte| *byte == b';');
        let Some(number) = parts.next().and_then(parsed) else { return };
        match number {
            4 | 5 => {
                self.is_touched = true;
                while let (Some(index), Some(colour)) = (parts.next(), parts.next()) {
                    if let Some(index) = number_below(index, MAX_COLOURS) {
                        self.put((number, index), colour);
                    }
                }
            }
            10..=19 => {
                self.is_touched = true;
                for (which, colour) in (number..=19).zip(parts) {
                    self.put((which, 0), colour);
                }
            }
            104 | 105 => {
                let which: Vec<u16> = parts.filter_map(parsed).collect();
                self.changed.retain(|(command, index), _| {
                    *command != number - 100 || !(which.is_empty() || which.contains(index))
                });
            }
            110..=119 => drop(self.changed.remove(&(number - 100, 0))),
            // Kitty's own command for all of them.
            21 => self.is_touched = true,
            _ => {}
        }
    }

    /// Records output that some terminals take for such a command.
    pub(super) fn touch(&mut self) {
        self.is_touched = true;
    }

    fn put(&mut self, name: Name, colour: &[u8]) {
        let is_colour = colour.len() <= MAX_COLOUR_BYTES
            && colour.iter().all(|byte| (b' '..=b'~').contains(byte))
            && !colour.starts_with(b"?");
        if is_colour {
            self.changed.insert(name, colour.to_vec());
        }
    }

    /// Resets to the terminal's own colours. Only if the command may have changed them: colours that a person set
    /// outside by such commands cannot be read back.
    pub(super) fn reset(&self, to: &mut Vec<u8>) {
        if self.is_touched {
            to.extend_from_slice(b"\x1b]104\x1b\\\x1b]105\x1b\\");
            for number in 110..=119 {
                to.extend_from_slice(format!("\x1b]{number}\x1b\\").as_bytes());
            }
        }
    }

    pub(super) fn restore(&self, to: &mut Vec<u8>) {
        for ((command, index), colour) in &self.changed {
            let before = match command {
                4 | 5 => format!("\x1b]{command};{index};"),
                _ => format!("\x1b]{command};"),
            };
            to.extend_from_slice(before.as_bytes());
            to.extend_from_slice(colour);
            to.extend_from_slice(b"\x1b\\");
        }
    }
}

fn parsed(part: &[u8]) -> Option<u16> {
    std::str::from_utf8(part).ok()?.parse().ok()
}

fn number_below(part: &[u8], limit: u16) -> Option<u16> {
    parsed(part).filter(|number| *number < limit)
}
