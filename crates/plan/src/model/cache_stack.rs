//! The overlay behind the caches of a run.

use super::Owner;
use serde::Serialize;
use std::path::PathBuf;

/// One overlay whose parts are the caches that the command sees. What is written there is kept for later sandboxes of
/// the same project, and never read by the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheStack {
    /// The directory of the host that it stands on.
    #[serde(serialize_with = "crate::text::path")]
    pub lower: PathBuf,
    /// The directory of ours on the host for what this run writes.
    #[serde(serialize_with = "crate::text::path")]
    pub layer: PathBuf,
    /// What earlier runs wrote, the newest first.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<PathBuf>,
    /// Names that must not be seen, relative to `lower`.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<PathBuf>,
    /// The stacks whose place it takes, relative to `lower`. What was written in each is a layer of that stack once the run
    /// has ended.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idmap: Option<Owner>,
}
