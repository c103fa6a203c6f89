//! Bytes as JSON has them: text where they are text, and base64 (RFC 4648) where they are not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    /// The bytes are UTF-8 and stand there as they are.
    Text,
    Base64,
}

/// Bytes that a command wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Written {
    pub(crate) data: String,
    pub(crate) encoding: Encoding,
}

impl Written {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { data: text.to_owned(), encoding: Encoding::Text },
            Err(_) => Self { data: STANDARD.encode(bytes), encoding: Encoding::Base64 },
        }
    }
}

/// How many bytes of these are whole characters, if the rest is only the beginning of one that is yet to come.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // No error length: the text ends within a character.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Written, whole_characters};

    #[test]
    fn text_stays_text_and_a_character_is_not_cut() {
        assert_eq!(Written::of("é".as_bytes()).encoding, Encoding::Text);
        assert_eq!(
            Written::of(b"\xff"),
            Written { data: "/w==".into(), encoding: Encoding::Base64 }
        );
        let euro = "a€".as_bytes();
        assert_eq!(whole_characters(euro), 4);
        assert_eq!(whole_characters(&euro[..3]), 1);
        assert_eq!(whole_characters(&euro[1..2]), 0);
        assert_eq!(whole_characters(b"a\xffb"), 3);
    }
}
