//! Where names are protected against writing (FS-9).

use palisade_guard::GuardedPath;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Where names are judged before they are written (FS-9). Paths are those in the sandbox. A path belongs to the
/// longest entry of `trees`, `islands` and `surroundings` that is a prefix of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Guard {
    /// Writable directories and files of the host.
    #[serde(serialize_with = "crate::text::paths")]
    pub trees: Vec<PathBuf>,
    /// Mounts in a tree that do not belong to it. Nothing is judged there.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub islands: Vec<PathBuf>,
    /// Writable mounts of the run's own that contain a tree. Nothing is judged there either, but Landlock rules
    /// apply to everything below a directory: a right granted here would also apply in the tree.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub surroundings: Vec<PathBuf>,
    /// Home directories that contain a tree or are in one.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<PathBuf>,
    /// Trees that are package caches.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<PathBuf>,
    /// Not guarded, each with everything below.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<PathBuf>,
    /// Directories of build output: not guarded either, and the command has all rights there itself.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub build_dirs: Vec<PathBuf>,
    /// Guarded in this run in addition to the shipped names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<GuardedPath>,
    /// Directories of which only parts are writable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<PartlyWritable>,
    /// Relative values of `core.hooksPath`. They name a different directory in every directory that shares the
    /// repository's settings.
    #[serde(serialize_with = "crate::text::paths", skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<PathBuf>,
}

/// A directory of which only parts are writable: the repository of a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartlyWritable {
    #[serde(serialize_with = "crate::text::path")]
    pub directory: PathBuf,
    /// Relative to it, each with everything below.
    #[serde(serialize_with = "crate::text::paths")]
    pub parts: Vec<PathBuf>,
}

impl PartlyWritable {
    /// Whether this restriction permits writing `path`.
    pub fn covers(&self, path: &Path) -> bool {
        path.strip_prefix(&self.directory)
            .map_or(true, |below| self.parts.iter().any(|part| below.starts_with(part)))
    }
}
