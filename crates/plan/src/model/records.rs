//! What is kept of a run besides what is always kept: recordings of terminals, and operations on files.

use super::{Plan, Supervision};
use palisade_policy::model::FileOperations;
use serde::Serialize;

impl Plan {
    /// Whether outputs that are no terminal go through the supervisor: something counts or keeps them, or they must be no
    /// files.
    pub fn relays_output(&self) -> bool {
        let supervision = &self.supervision;
        supervision.max_output.is_some()
            || supervision.recording.is_some()
            || self.sandbox.hardening.no_file_streams
    }
}

impl Supervision {
    /// Whether operations on files are in the audit log.
    pub fn records_operations(&self) -> bool {
        self.file_operations != FileOperations::Off
    }
}

/// How terminals are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// Whether what is typed is recorded, while it is echoed.
    pub input: bool,
    /// Of one file.
    pub max_bytes: u64,
}

impl Recording {
    /// Where the policy states no size.
    pub const MAX_BYTES: u64 = 64 << 20;
}

pub(super) fn is_off(operations: &FileOperations) -> bool {
    *operations == FileOperations::Off
}
