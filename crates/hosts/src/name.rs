//! Host names in one normal form (N11): lower case, A-labels, no trailing dot.
//!
//! A [`Name`] is never an address. It never contains a user, port, space or NUL, which a later parser could
//! interpret differently.

use crate::HostError;
use crate::number::ends_in_number;
use crate::text::is_text_in_documents;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use std::fmt;

/// RFC 1035: 255 bytes on the wire are 253 characters of text.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let ascii = to_ascii(text)?;
        if ends_in_number(&ascii) {
            return Err(HostError::Number(text.to_owned()));
        }
        Self::from_ascii(ascii)
    }

    /// The text must be output of [`to_ascii`] and must not end in a number.
    pub(crate) fn from_ascii(ascii: String) -> Result<Self, HostError> {
        if ascii.len() > MAX_NAME_BYTES {
            return Err(HostError::NameTooLong(ascii));
        }
        if ascii.split('.').any(|label| label.is_empty() || label.len() > MAX_LABEL_BYTES) {
            return Err(HostError::Label(ascii));
        }
        Ok(Self(ascii))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }
}

/// Lower case, A-labels, without the trailing dot; only letters, digits, hyphens, underscores and dots.
///
/// Mapping comes first because it turns full-width digits and ideographic full stops into ASCII. The checks
/// must see the result of the mapping, not the original spelling.
pub(crate) fn to_ascii(text: &str) -> Result<String, HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.contains("://") {
        return Err(HostError::Url(text.to_owned()));
    }
    if text.contains('@') {
        return Err(HostError::User(text.to_owned()));
    }
    let mapped = Uts46::new()
        .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map_err(|_| HostError::International(text.to_owned()))?;
    let name = mapped.strip_suffix('.').unwrap_or(&mapped);
    // Service names contain underscores, and so do some existing host names.
    let stray = name.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.'));
    if let Some(character) = stray {
        return Err(HostError::Character { name: text.to_owned(), character });
    }
    if name.is_empty() { Err(HostError::Empty) } else { Ok(name.to_owned()) }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.0)
    }
}

is_text_in_documents!(Name);

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
