//! The faults that an audit log can have.

use crate::error::RecordError;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LogFault {
    #[error("the audit log is missing")]
    LogMissing,
    #[error("{} is missing, but the head lists it as a rotated file", .0.display())]
    PartMissing(PathBuf),
    #[error("the head of the audit log is missing or empty")]
    HeadMissing,
    #[error("{0}")]
    Unreadable(RecordError),
    #[error("not a sealed record")]
    Malformed,
    #[error("the record was changed: its hash is not that of its content")]
    Edited,
    #[error("the record does not follow the one before it: records were removed, added or moved")]
    ChainBroken,
    #[error("the log ends too early: {missing} of the records its head counts are missing")]
    TailCut { missing: u64 },
    #[error("the log continues after the last record that its head lists")]
    TailAdded,
    #[error("this is not the last record that the head lists: the end of the log was rewritten")]
    HeadDisagrees,
    #[error("this is not a file that `sandbox audit export` wrote")]
    NotAnExport,
}
