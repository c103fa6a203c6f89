//! One part of a guarded name: plain text, or text with one `*` in it.

use crate::fold::comparable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    Exact(Vec<u8>),
    /// What the name starts and ends with.
    Around(Vec<u8>, Vec<u8>),
}

impl NamePattern {
    /// One part of a shipped name.
    pub(crate) fn listed(text: &str) -> Self {
        match text.split_once('*') {
            Some((before, after)) => Self::Around(before.into(), after.into()),
            None => Self::Exact(text.into()),
        }
    }

    /// Whether a name of the file system is meant, in any of its variants.
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
