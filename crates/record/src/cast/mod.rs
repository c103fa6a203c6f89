//! Recordings of terminals in the format asciicast, version 2 (LIFE-6): a header and then an event a line, each with its time, a
//! letter and a text. `o` is output, `i` input, `r` a new size, `m` a marker.
//!
//! <https://docs.asciinema.org/manual/asciicast/v2/>

mod reader;
mod safe;
mod writer;

pub use reader::{CastError, CastEvent, CastKind, CastReader};
pub use safe::SafeOutput;
pub use writer::CastWriter;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(crate) const VERSION: u32 = 2;

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CastHeader {
    version: u32,
    pub width: u16,
    pub height: u16,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The command, with secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl CastHeader {
    /// Of a recording that begins now. A command without a terminal has one of the usual size in it.
    pub fn new(size: Option<(u16, u16)>, title: &str) -> Self {
        let (width, height) = size.filter(|size| size.0 > 0 && size.1 > 0).unwrap_or((80, 24));
        Self {
            version: VERSION,
            width,
            height,
            timestamp: Some(jiff::Timestamp::now().as_second()),
            title: Some(title.to_owned()).filter(|title| !title.is_empty()),
            env: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
#[path = "cast_tests.rs"]
mod tests;
