//! Taking a grant back: the command, and what a session says of it.

use crate::message::Reply;
use crate::message::request::{bytes, path, text};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// Take back what was granted at a path, and below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revoke {
    /// Bytes that are not UTF-8 are replaced; `path_bytes` has them.
    path: String,
    /// Hexadecimal, if the path is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
}

impl Revoke {
    pub fn of(path: &Path) -> Self {
        Self { path: text(path), path_bytes: bytes(path) }
    }

    pub fn into_path(self) -> Result<PathBuf, NotAbsolute> {
        let path = path(self.path, self.path_bytes);
        let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        match path.is_absolute() && path.components().all(is_plain) {
            true => Ok(path),
            false => Err(NotAbsolute),
        }
    }
}

/// Of a path that could mean another, or everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`path` has to be absolute, without `..`")]
pub struct NotAbsolute;

/// What is no longer granted, and what could not be taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revoked {
    #[serde(flatten)]
    pub to: Reply,
    /// What was granted: the path itself, or paths below it.
    pub paths: Vec<String>,
    /// A directory above it that is still granted, and shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Processes that opened it before.
    #[serde(default)]
    pub still_open: Vec<StillOpen>,
    /// Whether there are more of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more: bool,
}

/// A process that keeps what it opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StillOpen {
    pub pid: u32,
    /// The process's own word for itself.
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptors: Vec<u32>,
    /// Whether it is in a directory that was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cwd: bool,
    /// Whether it has a mount namespace of its own, where everything is as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_mounts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_path_can_be_meant() {
        for good in ["/", "/x", "/x/y/"] {
            assert!(Revoke::of(Path::new(good)).into_path().is_ok(), "{good}");
        }
        for bad in ["", "x", "../x", "/x/../y"] {
            assert_eq!(Revoke::of(Path::new(bad)).into_path(), Err(NotAbsolute), "{bad}");
        }
    }
}
