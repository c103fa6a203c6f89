//! What requests about files and their answers look like.

use crate::encoding::Written;
use crate::problem::Problem;
use palisade_session::files::{
    Change, ChangeKind, ClientError, FileInfo, FileType, FileVersion, Listing,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use utoipa::{IntoParams, ToSchema};

/// A path of a sandbox.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PathQuery {
    /// From the sandbox's project, unless it begins with a slash.
    pub(super) path: String,
}

/// A file, a directory or something else that has a name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileDocument {
    path: Written,
    #[serde(rename = "type")]
    type_: FileKind,
    size: u64,
    /// Permissions, as `chmod` takes them.
    #[schema(example = "0644")]
    mode: String,
    uid: u32,
    gid: u32,
    /// Seconds since 1970.
    modified: f64,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Written>,
    /// Changes with every change of the file. `If-Match` takes it.
    etag: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileKind {
    File,
    Directory,
    Link,
    Other,
}

/// Something that happened in a watched directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeDocument {
    change: ChangeName,
    /// From the watched directory.
    path: Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChangeName {
    Created,
    Written,
    Removed,
    RenamedFrom,
    RenamedTo,
    Attributes,
    /// More happened than was kept.
    Overflow,
}

impl FileDocument {
    pub(super) fn new(path: &Path, info: &FileInfo) -> Self {
        // Nanoseconds are more than a number in JSON holds.
        #[expect(clippy::cast_precision_loss, reason = "a time for people; the etag is exact")]
        let modified = info.version.modified as f64 / 1e9;
        Self {
            path: written(path),
            type_: match info.file_type {
                FileType::File => FileKind::File,
                FileType::Directory => FileKind::Directory,
                FileType::Link => FileKind::Link,
                FileType::Other => FileKind::Other,
            },
            size: info.size,
            mode: format!("{:04o}", info.mode),
            uid: info.uid,
            gid: info.gid,
            modified,
            target: info.target.as_deref().map(written),
            etag: etag(&info.version),
        }
    }

    pub(super) fn listed(entry: &Listing) -> Self {
        Self::new(&entry.path, &entry.info)
    }
}

impl From<&Change> for ChangeDocument {
    fn from(change: &Change) -> Self {
        let name = match change.kind {
            ChangeKind::Created => ChangeName::Created,
            ChangeKind::Written => ChangeName::Written,
            ChangeKind::Removed => ChangeName::Removed,
            ChangeKind::RenamedFrom => ChangeName::RenamedFrom,
            ChangeKind::RenamedTo => ChangeName::RenamedTo,
            ChangeKind::Attributes => ChangeName::Attributes,
            ChangeKind::Overflow => ChangeName::Overflow,
        };
        Self { change: name, path: written(&change.path) }
    }
}

fn written(path: &Path) -> Written {
    Written::of(path.as_os_str().as_bytes())
}

/// A version as HTTP has it (RFC 9110, 8.8.3).
pub(super) fn etag(version: &FileVersion) -> String {
    format!("\"{:x}-{:x}-{:x}\"", version.inode, version.modified, version.changed)
}

pub(super) fn version_of(etag: &str) -> Option<FileVersion> {
    let text = etag.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut parts = text.split('-');
    let mut next = || parts.next();
    let inode = u64::from_str_radix(next()?, 16).ok()?;
    let modified = i128::from_str_radix(next()?, 16).ok()?;
    let changed = i128::from_str_radix(next()?, 16).ok()?;
    parts.next().is_none().then_some(FileVersion { inode, modified, changed })
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        let detail = error.to_string();
        match error {
            ClientError::Refused(refused) => match refused.errno {
                Errno::NOENT => Self::not_found(detail),
                Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::refused(detail),
                Errno::AGAIN => Self::changed_meanwhile(detail),
                Errno::EXIST | Errno::NOTEMPTY | Errno::BUSY => Self::conflict(detail),
                Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
                    Self::busy(detail)
                }
                _ => Self::invalid(detail),
            },
            ClientError::TooLarge { .. } => Self::too_large(detail),
            ClientError::Lost(_) | ClientError::OtherVersion => Self::conflict(detail),
            ClientError::Source(_) => Self::malformed(detail),
            ClientError::Unexpected => Self::internal(detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{etag, version_of};
    use palisade_session::files::FileVersion;

    #[test]
    fn a_version_comes_back_from_its_etag() {
        let version = FileVersion { inode: 7, modified: 1_800_000_000_123_456_789, changed: 1 };
        assert_eq!(version_of(&etag(&version)), Some(version));
        for wrong in ["", "\"\"", "*", "\"1-2\"", "\"1-2-3-4\"", "\"x-1-2\"", "1-2-3"] {
            assert_eq!(version_of(wrong), None, "{wrong}");
        }
    }
}
