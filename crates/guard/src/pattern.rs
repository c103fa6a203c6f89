//! One part of a guarded name: plain text, or text with one `*` in it.

use crate::fold::comparable;
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    Exact(Cow<'static, [u8]>),
    /// What the name starts with, and what it ends with.
    Around(&'static [u8], &'static [u8]),
}

impl NamePattern {
    /// Parses one part of a shipped name.
    pub(crate) fn listed(text: &'static str) -> Self {
        match text.split_once('*') {
            Some((before, after)) => Self::Around(before.as_bytes(), after.as_bytes()),
            None => Self::Exact(Cow::Borrowed(text.as_bytes())),
        }
    }

    /// Whether a file name matches, in any of its variants ([`comparable`]).
    pub fn matches(&self, name: &[u8]) -> bool {
        self.matches_comparable(&comparable(name))
    }

    pub(crate) fn matches_comparable(&self, name: &[u8]) -> bool {
        match self {
            Self::Exact(text) => name.eq_ignore_ascii_case(text),
            Self::Around(before, after) => {
                name.len() >= before.len() + after.len()
                    && name[..before.len()].eq_ignore_ascii_case(before)
                    && name[name.len() - after.len()..].eq_ignore_ascii_case(after)
            }
        }
    }
}
