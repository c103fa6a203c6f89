//! What is at one path: type, permissions, size, times.

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    Device,
}

/// Seconds and nanoseconds since 1970, as the file system recorded them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Timestamp {
    pub seconds: i64,
    pub nanoseconds: u32,
}

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub kind: EntryKind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    pub size: u64,
    pub modified: Timestamp,
    /// Of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::changeset::as_name")]
    pub target: Option<PathBuf>,
}

/// An entry with what tells it from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) kind: EntryKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
    pub(crate) changed: Timestamp,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) links: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// A character device 0:0, which means "deleted" in an upper layer.
    pub(crate) is_whiteout: bool,
}

/// Permissions without set-id bits, which never reach the host.
pub(crate) const KEPT_BITS: u32 = 0o1777;
/// On a directory, the set-group-id bit gives no right; it passes the group on to what is in it.
const KEPT_BITS_OF_DIRECTORIES: u32 = 0o3777;

/// Without the layer `reviewed-changes`: changes come to the host as they are.
#[cfg(feature = "layers-off")]
pub static UNREVIEWED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

impl Found {
    pub(crate) fn of(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo => EntryKind::Fifo,
            FileType::Socket => EntryKind::Socket,
            _ => EntryKind::Device,
        };
        let is_character = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
        #[allow(
            clippy::unnecessary_cast,
            clippy::useless_conversion,
            reason = "the width differs between architectures"
        )]
        Self {
            kind,
            mode: stat.st_mode & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
            device: stat.st_dev,
            inode: stat.st_ino,
            links: stat.st_nlink.into(),
            uid: stat.st_uid,
            gid: stat.st_gid,
            is_whiteout: is_character && stat.st_rdev == 0,
        }
    }

    pub(crate) fn entry(&self, target: Option<PathBuf>) -> Entry {
        let Self { kind, mode, size, modified, .. } = *self;
        Entry { kind, mode, size, modified, target }
    }

    /// The permissions with which it comes to the host.
    pub(crate) fn kept_mode(&self) -> u32 {
        #[cfg(feature = "layers-off")]
        if UNREVIEWED.load(std::sync::atomic::Ordering::Relaxed) {
            return self.mode & 0o7777;
        }
        let bits = if self.is_directory() { KEPT_BITS_OF_DIRECTORIES } else { KEPT_BITS };
        self.mode & bits
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == EntryKind::Directory
    }

    pub(crate) fn is_same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

fn time(seconds: i64, nanoseconds: u64) -> Timestamp {
    Timestamp { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or_default() }
}
