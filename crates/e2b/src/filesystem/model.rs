//! What is said about files.

use crate::paths;
use crate::store::KeptSandbox;
use jiff::Timestamp;
use palisade_session::files::{Change, ChangeKind, FileInfo, FileType};
use serde::Serialize;
use std::path::Path;

/// A file, a directory or something else that has a name. In protobuf's JSON, numbers of 64 bits are texts.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    name: String,
    #[serde(rename = "type")]
    type_: &'static str,
    path: String,
    size: String,
    mode: u32,
    permissions: String,
    owner: &'static str,
    group: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
}

impl Entry {
    pub(crate) fn new(sandbox: &KeptSandbox, path: &Path, info: &FileInfo) -> Self {
        let (type_, letter) = match info.file_type {
            FileType::File => ("FILE_TYPE_FILE", '-'),
            FileType::Directory => ("FILE_TYPE_DIRECTORY", 'd'),
            FileType::Link => ("FILE_TYPE_SYMLINK", 'L'),
            FileType::Other => ("FILE_TYPE_UNSPECIFIED", '?'),
        };
        Self {
            name: paths::name(path),
            type_,
            path: paths::shown(sandbox, path),
            size: info.size.to_string(),
            mode: info.mode & 0o7777,
            permissions: permissions(letter, info.mode),
            owner: account(info.uid),
            group: account(info.gid),
            modified_time: Timestamp::from_nanosecond(info.version.modified).ok(),
            symlink_target: info.target.as_deref().map(paths::text),
        }
    }
}

/// The accounts of a sandbox, under the names that E2B has for them.
fn account(id: u32) -> &'static str {
    match id {
        0 => "root",
        65534 => "nobody",
        _ => "user",
    }
}

/// As `ls` writes them.
fn permissions(letter: char, mode: u32) -> String {
    let letters = (0..9).rev().map(|bit| match (mode >> bit & 1, bit % 3) {
        (0, _) => '-',
        (_, 2) => 'r',
        (_, 1) => 'w',
        _ => 'x',
    });
    std::iter::once(letter).chain(letters).collect()
}

/// Something that happened in a watched directory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileEvent {
    /// From the watched directory.
    name: String,
    #[serde(rename = "type")]
    type_: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entry: Option<Entry>,
}

impl FileEvent {
    /// None for what E2B has no word for.
    pub(crate) fn of(change: &Change) -> Option<Self> {
        let type_ = match change.kind {
            // The new name of something is created, the old one is renamed.
            ChangeKind::Created | ChangeKind::RenamedTo => "EVENT_TYPE_CREATE",
            ChangeKind::Written => "EVENT_TYPE_WRITE",
            ChangeKind::Removed => "EVENT_TYPE_REMOVE",
            ChangeKind::RenamedFrom => "EVENT_TYPE_RENAME",
            ChangeKind::Attributes => "EVENT_TYPE_CHMOD",
            ChangeKind::Overflow => return None,
        };
        Some(Self { name: paths::text(&change.path), type_, entry: None })
    }
}

#[cfg(test)]
mod tests {
    use super::permissions;

    #[test]
    fn permissions_are_written_as_ls_does() {
        assert_eq!(permissions('-', 0o644), "-rw-r--r--");
        assert_eq!(permissions('d', 0o755), "drwxr-xr-x");
        assert_eq!(permissions('L', 0o777), "Lrwxrwxrwx");
    }
}
