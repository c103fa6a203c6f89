//! The keys that leave a command running, in a row: ctrl-p ctrl-q unless others are chosen. A beginning of them is held back
//! until it is clear what it is; the command then gets it after all.

use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachKeys {
    keys: Vec<u8>,
    /// How many of them were pressed.
    pressed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no key: write letters or ctrl-LETTER, with commas between, such as ctrl-p,ctrl-q"
)]
pub struct NotAKey(String);

impl Default for DetachKeys {
    fn default() -> Self {
        Self { keys: vec![control(b'p'), control(b'q')], pressed: 0 }
    }
}

/// What a terminal sends for a key with Ctrl.
const fn control(letter: u8) -> u8 {
    letter & 0x1f
}

impl FromStr for DetachKeys {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let key = |word: &str| {
            let wrong = || NotAKey(word.to_owned());
            let name = word.strip_prefix("ctrl-");
            let &[byte] = name.unwrap_or(word).as_bytes() else { return Err(wrong()) };
            match name {
                Some(_) if byte.is_ascii_lowercase() || b"@[\\]^_".contains(&byte) => {
                    Ok(control(byte))
                }
                None if byte.is_ascii_graphic() => Ok(byte),
                _ => Err(wrong()),
            }
        };
        let keys = text.split(',').map(key).collect::<Result<_, _>>()?;
        Ok(Self { keys, pressed: 0 })
    }
}

impl DetachKeys {
    /// What of these bytes is the command's. None: the keys were pressed.
    pub(super) fn filter(&mut self, typed: &[u8]) -> Option<Vec<u8>> {
        let mut passed = Vec::with_capacity(typed.len() + self.pressed);
        for byte in typed {
            if *byte == self.keys[self.pressed] {
                self.pressed += 1;
                if self.pressed == self.keys.len() {
                    self.pressed = 0;
                    return None;
                }
                continue;
            }
            passed.extend(&self.keys[..self.pressed]);
            self.pressed = 0;
            // It may be the beginning of another attempt.
            match *byte == self.keys[0] && self.keys.len() > 1 {
                true => self.pressed = 1,
                false => passed.push(*byte),
            }
        }
        Some(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::DetachKeys;

    #[test]
    fn the_keys_detach_and_everything_else_is_the_commands() {
        let mut keys = DetachKeys::default();
        assert_eq!(keys.filter(b"ls\x10"), Some(b"ls".to_vec()));
        assert_eq!(keys.filter(b"x"), Some(b"\x10x".to_vec()), "held back until it is clear");
        assert_eq!(keys.filter(b"\x10\x10"), Some(b"\x10".to_vec()));
        assert_eq!(keys.filter(b"\x11"), None);
        let mut keys: DetachKeys = "ctrl-a,d".parse().unwrap();
        assert_eq!(keys.filter(b"d\x01d"), None);
        let mut one: DetachKeys = "ctrl-]".parse().unwrap();
        assert_eq!((one.filter(b"a"), one.filter(b"\x1d")), (Some(b"a".to_vec()), None));
        for wrong in ["", "ctrl-", "ctrl-P", "alt-x", "a,,b", "ä"] {
            assert!(wrong.parse::<DetachKeys>().is_err(), "{wrong}");
        }
    }
}
