//! The key that puts a question aside and brings it back: Ctrl and a letter.
//!
//! It is the question's only while one is open; otherwise every key is the command's.

use std::ops::Range;

/// Ctrl and this small letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord(u8);

/// Keys that are something else: backspace, tab, Enter in two forms, the signals of a terminal, flow control.
const TAKEN: &[u8] = b"chijmqsz";

impl Default for Chord {
    fn default() -> Self {
        Self(b'g')
    }
}

impl std::str::FromStr for Chord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let letter = text.to_ascii_lowercase();
        match letter.strip_prefix("ctrl-").map(str::as_bytes) {
            Some([letter @ b'a'..=b'z']) if !TAKEN.contains(letter) => Ok(Self(*letter)),
            _ => Err("write ctrl- and a letter other than c, h, i, j, m, q, s and z".to_owned()),
        }
    }
}

impl Chord {
    /// As people write it.
    pub(super) fn name(&self) -> &'static str {
        const NAMES: [&str; 26] = [
            "Ctrl-A", "Ctrl-B", "Ctrl-C", "Ctrl-D", "Ctrl-E", "Ctrl-F", "Ctrl-G", "Ctrl-H",
            "Ctrl-I", "Ctrl-J", "Ctrl-K", "Ctrl-L", "Ctrl-M", "Ctrl-N", "Ctrl-O", "Ctrl-P",
            "Ctrl-Q", "Ctrl-R", "Ctrl-S", "Ctrl-T", "Ctrl-U", "Ctrl-V", "Ctrl-W", "Ctrl-X",
            "Ctrl-Y", "Ctrl-Z",
        ];
        NAMES[usize::from(self.0.saturating_sub(b'a')) % NAMES.len()]
    }

    /// Where it is in what was typed, in any form that the command may have made the terminal use: a control character,
    /// kitty's keyboard protocol, xterm's `modifyOtherKeys`.
    pub(super) fn find(self, keys: &[u8]) -> Option<Range<usize>> {
        let forms = [
            vec![self.0 & 0x1f],
            format!("\x1b[{};5u", self.0).into(),
            format!("\x1b[27;5;{}~", self.0).into(),
        ];
        forms.iter().find_map(|form| {
            let at = keys.windows(form.len()).position(|window| window == form.as_slice())?;
            Some(at..at + form.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Chord;

    #[test]
    fn a_chord_is_ctrl_and_a_letter_that_nothing_else_needs() {
        assert_eq!("ctrl-o".parse::<Chord>().unwrap().name(), "Ctrl-O");
        assert_eq!("Ctrl-G".parse(), Ok(Chord::default()));
        for wrong in ["g", "ctrl-", "ctrl-c", "ctrl-m", "alt-x", "ctrl-gg", "ctrl-1"] {
            assert!(wrong.parse::<Chord>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_found_in_every_form() {
        let chord = Chord::default();
        assert_eq!(chord.find(b"ab\x07c"), Some(2..3));
        assert_eq!(chord.find(b"\x1b[103;5u"), Some(0..8));
        assert_eq!(chord.find(b"\x1b[27;5;103~"), Some(0..11));
        assert_eq!(chord.find(b"g"), None);
    }
}
