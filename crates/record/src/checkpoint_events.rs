//! What is recorded about states of a transaction that were kept, brought back or taken over (LIFE-5).

use serde::{Deserialize, Serialize};

/// A state of a transaction was kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointMade {
    pub checkpoint: u32,
    /// `asked`, `beforeCommand`, `beforeRollback` or `forReview`.
    pub reason: String,
    /// Files, directories and deletions.
    pub entries: u64,
    pub bytes: u64,
}

/// A state of a transaction was brought back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBack {
    /// The one that was brought back; 0 is the project without changes.
    pub checkpoint: u32,
    /// Where the state before it was kept.
    pub kept_as: u32,
}

/// A session began with the changes of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionForked {
    /// The session that they come from.
    pub origin: String,
    /// None: as they were at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u32>,
}
