//! SHA-256 digests, written everywhere as 64 lower-case hex digits.
//!
//! Must never accept another spelling: a byte of the audit log could then change unnoticed.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The predecessor of the first record of a log.
    pub(crate) const NONE: Digest = Digest([0; 32]);
    pub(crate) const HEX_LEN: usize = 64;

    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Of parts separated by NUL: a part cannot contain one, so different lists differ.
    pub(crate) fn of_nul_joined<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = Sha256::new();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                hasher.update([0]);
            }
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_hex(hex: &[u8]) -> Option<Digest> {
        let hex: &[u8; Self::HEX_LEN] = hex.try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Digest(bytes))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = String::with_capacity(Self::HEX_LEN);
        for byte in self.0 {
            hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
            hex.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        f.write_str(&hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        Digest::from_hex(hex.as_bytes())
            .ok_or_else(|| de::Error::custom("a digest is 64 lower-case hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn hex_round_trips_and_has_one_spelling() {
        let digest = Digest::of(b"abc");
        let hex = digest.to_string();
        assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::from_hex(hex.as_bytes()), Some(digest));
        assert_eq!(Digest::from_hex(hex.to_uppercase().as_bytes()), None);
        assert_eq!(Digest::from_hex(&hex.as_bytes()[1..]), None);
    }

    #[test]
    fn joined_parts_do_not_run_together() {
        let parts = |list: &[&'static str]| {
            Digest::of_nul_joined(list.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
        };
        assert_eq!(parts(&["a", "b"]), Digest::of(b"a\0b"));
        assert_ne!(parts(&["a", "b"]), parts(&["ab"]));
    }
}
