//! Secrets that a client has to know: made at random, and kept as hashes.

use crate::random;
use sha2::{Digest as _, Sha256};
use std::io;

/// Bytes of a new secret; it is written with twice as many characters.
const SECRET_BYTES: usize = 32;

/// Enough to recognise a secret, and nothing to find it by.
#[derive(Clone, Debug)]
pub(crate) struct SecretDigest([u8; 32]);

impl SecretDigest {
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Compares hashes, whose bytes nobody can choose, and does not stop at the first difference: neither says how much of a guess
    /// was right.
    pub(crate) fn is_of(&self, given: &str) -> bool {
        let given = Self::of(given);
        let differs = given.0.iter().zip(&self.0).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differs) == 0
    }

    /// Another secret that belongs to this one and a purpose: who knows it knows neither this one nor that of another purpose.
    pub(crate) fn secret_for(&self, purpose: &str) -> String {
        // Twice, so that nobody can go on from one hash to that of a longer purpose.
        let inner = Sha256::new().chain_update(self.0).chain_update(purpose).finalize();
        let outer = Sha256::new().chain_update(self.0).chain_update(inner).finalize();
        outer.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A new one, in hexadecimal digits.
pub(crate) fn new_secret() -> io::Result<String> {
    random::hex(SECRET_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{SecretDigest, new_secret};

    #[test]
    fn a_secret_is_recognised_and_no_two_are_the_same() {
        let (one, other) = (new_secret().unwrap(), new_secret().unwrap());
        assert_eq!(one.len(), 64);
        assert!(SecretDigest::of(&one).is_of(&one));
        assert!(!SecretDigest::of(&one).is_of(&other));
        assert!(!SecretDigest::of(&one).is_of(""));
    }
}
