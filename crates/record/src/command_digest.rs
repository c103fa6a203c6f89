//! What the log has of a command line.

use crate::digest::Digest;
use crate::redact;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// A command line in the log: only a hash and a masked beginning, never the command itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandDigest {
    #[serde(rename = "commandHash")]
    hash: Digest,
    #[serde(rename = "commandPreview")]
    preview: String,
}

impl CommandDigest {
    pub fn of<A: AsRef<OsStr>>(argv: &[A]) -> CommandDigest {
        CommandDigest { hash: redact::hash(argv), preview: redact::preview(argv) }
    }

    pub fn hash(&self) -> Digest {
        self.hash
    }

    /// Its masked beginning.
    pub fn preview(&self) -> &str {
        &self.preview
    }
}
