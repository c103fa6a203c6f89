//! The key that puts a question aside and brings it back (`askKey`): Ctrl and a letter.
//!
//! It belongs to the question only while one is open; otherwise every key goes to the command.

use palisade_policy::model::AskKey;
use std::ops::Range;

/// Ctrl and this lower-case letter or symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chord(u8);

impl From<AskKey> for Chord {
    fn from(key: AskKey) -> Self {
        Self(key.letter())
    }
}

impl Chord {
    /// The name for display.
    pub(super) fn name(self) -> String {
        format!("Ctrl-{}", char::from(self.0.to_ascii_uppercase()))
    }

    /// Its position in the input, in any encoding that the command may have enabled in the terminal: a control
    /// character, kitty's keyboard protocol, xterm's `modifyOtherKeys`.
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
    use super::{AskKey, Chord};

    #[test]
    fn it_is_found_in_every_form() {
        let chord = Chord::from(AskKey::default());
        assert_eq!(chord.name(), "Ctrl-G");
        assert_eq!(chord.find(b"ab\x07c"), Some(2..3));
        assert_eq!(chord.find(b"\x1b[103;5u"), Some(0..8));
        assert_eq!(chord.find(b"\x1b[27;5;103~"), Some(0..11));
        assert_eq!(chord.find(b"g"), None);
        let bracket = Chord::from(AskKey::try_from("ctrl-]".to_owned()).unwrap());
        assert_eq!((bracket.name().as_str(), bracket.find(b"\x1d")), ("Ctrl-]", Some(0..1)));
    }
}
