//! What a client and the process inside say to each other, over a SEQPACKET socket: one packet is one message. Each request
//! gets one response, in the order of the requests; changes of what is watched come between them.

use palisade_sys::{Errno, errno_text};
use palisade_wire::{AsErrno, Raw, WireMessage};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Both sides are the same program, but not always the same build of it: a session stays while the program is replaced.
pub const VERSION: u32 = 1;

/// Bytes of a file in one message.
pub const MAX_CONTENT: usize = 64 * 1024;

/// Bytes of paths in one message with entries. What else belongs to an entry is not longer than a short path.
pub(crate) const MAX_LISTED: usize = 32 * 1024;

/// From the client. A relative path starts at the working directory that the command was started in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The first request. Answered with [`Response::Hello`].
    Hello { version: u32 },
    /// Answered with [`Response::Info`].
    Stat {
        #[serde(with = "Raw")]
        path: PathBuf,
        follow_links: bool,
    },
    /// Answered with [`Response::Opened`]; the entries come with [`Self::NextEntries`].
    OpenDirectory {
        #[serde(with = "Raw")]
        path: PathBuf,
        /// 1: its own entries only.
        depth: u32,
    },
    /// Answered with [`Response::Entries`]; with none of them at the end.
    NextEntries { handle: Handle },
    /// Of a regular file only: nothing else has an end. Answered with [`Response::Opened`].
    OpenForReading {
        #[serde(with = "Raw")]
        path: PathBuf,
    },
    /// Answered with [`Response::Content`], which is empty at the end of the file.
    Read { handle: Handle, offset: u64, length: u32 },
    /// Nothing changes before [`Self::Commit`], unless it is [`IfExists::Append`]. Answered with [`Response::Opened`].
    OpenForWriting {
        #[serde(with = "Raw")]
        path: PathBuf,
        options: WriteOptions,
    },
    /// Answered with [`Response::Done`].
    Write {
        handle: Handle,
        #[serde(with = "Raw")]
        bytes: Vec<u8>,
    },
    /// Answered with [`Response::Info`] of the file.
    Commit { handle: Handle },
    /// What was written and not committed is forgotten. Answered with [`Response::Done`].
    Close { handle: Handle },
    /// Answered with [`Response::Info`].
    MakeDirectory {
        #[serde(with = "Raw")]
        path: PathBuf,
        /// Whether missing directories are made, and one that is there already is no error.
        make_parents: bool,
    },
    /// Answered with [`Response::Info`] of what was renamed.
    Rename {
        #[serde(with = "Raw")]
        from: PathBuf,
        #[serde(with = "Raw")]
        to: PathBuf,
        /// Whether a file that is there may be replaced.
        replace: bool,
    },
    /// Answered with [`Response::Done`].
    Remove {
        #[serde(with = "Raw")]
        path: PathBuf,
        /// Whether a directory goes with what is in it.
        recursive: bool,
    },
    /// [`Reply::Changed`] from now on, until [`Self::Close`]. Answered with [`Response::Opened`].
    Watch {
        #[serde(with = "Raw")]
        path: PathBuf,
        recursive: bool,
    },
}

/// Something that is open for one client, until it is closed or the client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Handle(pub u32);

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteOptions {
    pub if_exists: IfExists,
    /// Whether missing directories are made.
    pub make_parents: bool,
    /// Permissions of a new file, less the umask. An old file keeps its own.
    pub mode: u32,
}

/// What happens if there is something at the path that is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IfExists {
    Replace,
    /// Replaced only if it is still this version; `EAGAIN` otherwise.
    ReplaceVersion(FileVersion),
    Refuse,
    Append,
}

/// To the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Response(Response),
    Changed { handle: Handle, changes: Vec<Change> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    Hello { version: u32 },
    Done,
    Info(FileInfo),
    Opened { handle: Handle, info: FileInfo },
    Content(#[serde(with = "Raw")] Vec<u8>),
    Entries(Vec<Listing>),
    Failed(FileError),
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{call} {}: {}", path.display(), errno_text(*errno))]
pub struct FileError {
    /// The system call that failed.
    pub call: String,
    #[serde(with = "Raw")]
    pub path: PathBuf,
    #[serde(with = "AsErrno")]
    pub errno: Errno,
}

/// What stat(2) says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    pub file_type: FileType,
    /// Permissions, and the bits of chmod(2).
    pub mode: u32,
    pub size: u64,
    pub uid: u32,
    pub gid: u32,
    pub version: FileVersion,
    /// Where a link leads; none for anything else.
    #[serde(with = "Raw")]
    pub target: Option<PathBuf>,
}

/// Tells a file that was changed or replaced from what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    pub inode: u64,
    /// Nanoseconds since 1970.
    pub modified: i128,
    pub changed: i128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileType {
    File,
    Directory,
    Link,
    Other,
}

/// An entry of a directory, or of one below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Relative to the directory that was asked for.
    #[serde(with = "Raw")]
    pub path: PathBuf,
    pub info: FileInfo,
}

/// Something that happened to an entry of a watched directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub kind: ChangeKind,
    /// Relative to the directory that is watched.
    #[serde(with = "Raw")]
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    Created,
    Written,
    Removed,
    /// Renamed away from this path. Where it went is told by [`Self::RenamedTo`], if that is watched too.
    RenamedFrom,
    RenamedTo,
    Attributes,
    /// More happened than was kept: what was not told is not known.
    Overflow,
}

impl WireMessage for Request {
    const MAX_BYTES: usize = 96 * 1024;
}

impl WireMessage for Reply {
    const MAX_BYTES: usize = 160 * 1024;
}

impl FileInfo {
    pub(crate) fn new(stat: &Stat, target: Option<PathBuf>) -> Self {
        let file_type = match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
            rustix::fs::FileType::RegularFile => FileType::File,
            rustix::fs::FileType::Directory => FileType::Directory,
            rustix::fs::FileType::Symlink => FileType::Link,
            _ => FileType::Other,
        };
        Self {
            file_type,
            mode: stat.st_mode & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            uid: stat.st_uid,
            gid: stat.st_gid,
            version: FileVersion::of(stat),
            target,
        }
    }
}

impl FileVersion {
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanoseconds = |seconds, rest| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            inode: stat.st_ino,
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}
