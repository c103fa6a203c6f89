//! What came of an apply.

use super::baseline::Baseline;
use crate::changeset::{ChangeKind, as_text};
use crate::objection::Objection;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub enum Outcome {
    Applied(Applied),
    /// Nothing was applied.
    Held(Held),
}

/// What stands in the way.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub refused: Vec<Refused>,
    pub conflicts: Vec<Conflict>,
}

#[derive(Clone, Debug)]
pub struct Applied {
    /// In the order of the change set.
    pub paths: Vec<(PathBuf, ChangeKind)>,
    /// Not applied, see [`super::OnRefused::ApplyRest`]. A directory stands for everything in it.
    pub refused: Vec<Refused>,
    /// Not applied, see [`super::OnConflict::KeepHost`].
    pub kept: Vec<Conflict>,
    /// Applied as a merge of both versions.
    pub merged: Vec<PathBuf>,
    /// For the next apply of the same transaction.
    pub baseline: Baseline,
}

/// A change that must not come to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    pub reason: RefusedReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum RefusedReason {
    /// FS-9
    #[error("the host would run it later ({}): {}", .0.rule, .0.why)]
    RunLater(Objection),
    #[error("the session could not see what the host has there")]
    Hidden,
    #[error("it is a device, a FIFO or a socket")]
    SpecialFile,
    #[error("the link leads out of the project")]
    LinkLeavesProject,
    #[error("the name is reserved for the sandbox")]
    ReservedName,
    #[error("its path exceeds the kernel's limit")]
    PathTooLong,
    #[error("something in the directory that it replaces was not applied")]
    PartOfItStays,
}

/// A change of the session's that meets one of the host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    pub reason: ConflictReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum ConflictReason {
    #[error("it changed on the host")]
    ChangedOnHost,
    #[error("it was deleted on the host")]
    DeletedOnHost,
    #[error("both changed it, and there is no common version to merge by")]
    NoBase,
    #[error("both changed the same lines")]
    CannotMerge,
}
