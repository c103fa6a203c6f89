//! The interface between a trigger and the gate: a call on a path that is not granted but may exist on the host,
//! and what to do with it. A trigger is whatever notices the first use of a path: the broker by notified system
//! calls, or the gate's file system. The rest of the gate does not depend on which of them it was.

use palisade_sys::Errno;
use palisade_wire::{Raw, Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A path that is only displayed; a longer one is an attempt to make the message fail.
pub const MAX_FIELD: usize = 2048;

/// The longest path in a message; no system call accepts a longer one (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;

/// A call that is waiting for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAccess {
    /// Identifies it in every answer; used again only after that answer, by the same call.
    pub id: u64,
    /// The system call.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub call: String,
    pub wants: Wants,
    /// Absolute: without links as far as it exists inside, then the rest as it was written.
    #[serde(with = "Raw")]
    pub path: Vec<u8>,
    /// How many bytes of the path lead to a directory that exists inside; 0 if unknown.
    pub existing: usize,
    /// Whether the caller looks in that directory below a grant that covers it: it was there before the grant.
    pub is_covered: bool,
    /// Whether it lies in something that was granted for reading only. Then nothing is missing, and `existing` ends above the
    /// directory it is in, because that directory is asked about, too.
    pub is_read_only: bool,
    /// The new name in a rename, for display only: the caller may change it meanwhile. Empty for all other
    /// calls.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub new_path: Vec<u8>,
    /// Whether a link as the last component is followed.
    pub follow: bool,
    /// Whether the trigger could serve this one use itself, given an open file.
    pub may_be_served: bool,
    /// The thread, on the host.
    pub pid: u32,
    /// The program, as the sandbox sees it; empty if unknown.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub executable: Vec<u8>,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub cwd: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wants {
    /// To read it. `directory`: it must be a directory; `path_only`: `O_PATH`.
    Open {
        directory: bool,
        path_only: bool,
    },
    /// stat, access, readlink, extended attributes, statfs.
    Look,
    /// To go on where a link leads, which is decided about by itself.
    Follow,
    /// To make it the working directory.
    Enter,
    Execute,
    /// To rename it.
    Source,
    /// To write it, to create it, or to create something below it.
    Write,
    /// To write it, which fails if it does not exist.
    WriteExisting,
    /// To create it, which fails if it exists; or to create something below it.
    Make,
    /// To replace it, or to move a file to where it would be.
    Replace,
    /// To rename it within its directory.
    Rename,
    Remove,
    /// To change its mode, owner, times or extended attributes.
    Change,
    /// To move or link something from another mount there, which fails whatever is granted (EXDEV).
    MoveInto,
}

impl Wants {
    /// Whether something would be written, created or removed.
    pub fn is_change(self) -> bool {
        match self {
            Self::Write
            | Self::WriteExisting
            | Self::Make
            | Self::Replace
            | Self::Rename
            | Self::Remove
            | Self::Change
            | Self::MoveInto => true,
            Self::Open { .. }
            | Self::Look
            | Self::Follow
            | Self::Enter
            | Self::Execute
            | Self::Source => false,
        }
    }

    /// Whether something by that name exists once the call has succeeded.
    pub fn creates(self) -> bool {
        matches!(self, Self::Write | Self::Make | Self::Replace)
    }

    /// Whether it may be about something that does not exist.
    pub fn may_make(self) -> bool {
        matches!(self, Self::Write | Self::Make | Self::Replace | Self::MoveInto)
    }
}

/// The answer to a [`PathAccess`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessReply {
    /// Granted for longer than this call: the kernel continues.
    Continue {
        request: u64,
    },
    /// Granted, but only that a directory exists: nothing in it is shown by that.
    Named {
        request: u64,
        for_one_call: bool,
    },
    /// Granted for this call: the kernel continues, and the trigger reports when the call has returned.
    ContinueAndWatch {
        request: u64,
    },
    /// The grant for this call has been withdrawn again: other calls may go on.
    Ended {
        request: u64,
    },
    /// It does not exist on the host either: the kernel continues, and the same path is not reported again for
    /// a moment.
    Absent {
        request: u64,
    },
    Fail {
        request: u64,
        errno: u16,
    },
    /// The file itself, by a descriptor that comes with it.
    File {
        request: u64,
    },
    /// Comes with a descriptor through which this call, and no other, may write: the file, or the directory to
    /// create in or remove from. The path is the real one of what the call changes, including its name.
    WriteOnce {
        request: u64,
        #[serde(with = "Raw")]
        path: Vec<u8>,
    },
    /// The other trigger's: this directory is shown for one call, at this path. Who keeps it open is later on a mount
    /// without a path.
    ShownOnce {
        #[serde(with = "Raw")]
        path: Vec<u8>,
        /// Device and inode.
        directory: (u64, u64),
    },
    /// It succeeds without effect: for the run, what it would remove is already gone.
    Pretend {
        request: u64,
    },
}

impl PathAccess {
    /// The deepest directory of the path that exists inside, if known.
    pub fn existing_directory(&self) -> Option<&Path> {
        let existing = self.path.get(..self.existing).filter(|path| !path.is_empty())?;
        Some(Path::new(OsStr::from_bytes(existing)))
    }

    /// The first name of the path that does not exist inside, with the directory it would be in. None where that is unknown,
    /// where nothing is missing, and below a grant: there another file may have the name.
    pub fn missing_name(&self) -> Option<PathBuf> {
        let is_known = !self.is_covered && !self.is_read_only;
        let existing = self.existing_directory().filter(|_| is_known)?;
        let path = Path::new(OsStr::from_bytes(&self.path));
        let name = path.strip_prefix(existing).ok()?.iter().next()?;
        Some(existing.join(name))
    }
}

impl AccessReply {
    pub fn request(&self) -> u64 {
        match *self {
            Self::Continue { request }
            | Self::Named { request, .. }
            | Self::ContinueAndWatch { request }
            | Self::Ended { request }
            | Self::Absent { request }
            | Self::Fail { request, .. }
            | Self::File { request }
            | Self::WriteOnce { request, .. }
            | Self::Pretend { request } => request,
            // No request of its receiver.
            Self::ShownOnce { .. } => 0,
        }
    }

    /// The call fails with this errno.
    pub fn fail(request: u64, errno: Errno) -> Self {
        let errno = u16::try_from(errno.raw_os_error()).unwrap_or(u16::MAX);
        Self::Fail { request, errno }
    }
}

impl WireMessage for AccessReply {
    /// A path and a few numbers.
    const MAX_BYTES: usize = MAX_PATH_BYTES + 128;
}

#[cfg(test)]
#[path = "path_access_tests.rs"]
mod tests;
