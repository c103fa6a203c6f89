//! The project policies that the user has read and accepted, by content (POL-4).
//!
//! Must never trust a path alone: the digest covers the very text that is merged, so a file that changes afterwards is
//! untrusted again.

use crate::app_dirs::{self, AppDirs};
use crate::error::{Result, SessionError};
use palisade_record::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The store as saved on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    /// Canonical path of the document, and the SHA-256 of its text in hex.
    trusted: BTreeMap<PathBuf, String>,
}

impl TrustStore {
    /// A missing store trusts nothing; an unreadable one is an error.
    pub fn load(places: &AppDirs) -> Result<Self> {
        let path = places.trust_store();
        match app_dirs::read_document(&path)? {
            None => Ok(Self::default()),
            Some(text) => serde_json::from_str(&text)
                .map_err(|source| SessionError::TrustStore { path, source }),
        }
    }

    pub fn save(&self, places: &AppDirs) -> Result<()> {
        let path = places.trust_store();
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|source| SessionError::TrustStore { path: path.clone(), source })?;
        text.push('\n');
        app_dirs::replace_file(&path, text.as_bytes())
    }

    pub fn trust(&mut self, document: &Path, text: &str) {
        self.trusted.insert(document.to_owned(), digest(text));
    }

    /// Returns whether it was trusted.
    pub fn revoke(&mut self, document: &Path) -> bool {
        self.trusted.remove(document).is_some()
    }

    pub fn is_trusted(&self, document: &Path, text: &str) -> bool {
        self.trusted.get(document).is_some_and(|known| *known == digest(text))
    }

    /// Paths with the accepted digests.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.trusted.iter().map(|(path, digest)| (path.as_path(), digest.as_str()))
    }
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
