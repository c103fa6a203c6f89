//! A call on something that is not there inside and may be outside: what the broker tells of it, and what it
//! is told to do. The seam of the gate: whatever notices a first touch speaks these two types, and
//! everything behind them is the same.

use palisade_sys::Errno;
use palisade_wire::{Raw, Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A path that is only shown; a longer one is an attempt to make the message fail.
pub(crate) const MAX_FIELD: usize = 2048;

/// The most a path can have in a touch; what is longer no system call takes either (`PATH_MAX`).
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// A call that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAccess {
    /// Names it in every answer; never used again.
    pub id: u64,
    /// The system call.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub call: String,
    pub wants: Wants,
    /// Absolute: as far as it leads inside without a link left in it, then the rest as it was typed.
    #[serde(with = "Raw")]
    pub path: Vec<u8>,
    /// How many bytes of the path lead to a directory that is there inside; 0 where that is not known.
    pub existing: usize,
    /// What a rename would call it, for people to read: the caller may write something else meanwhile. Empty for all others.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub new_path: Vec<u8>,
    /// Whether a link in the last place is followed.
    pub follow: bool,
    /// The thread, on the host.
    pub pid: u32,
    /// The program, as the sandbox sees it; empty if it could not be found out.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub executable: Vec<u8>,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub cwd: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wants {
    /// To read it. `directory`: nothing but a directory will do; `path_only`: `O_PATH`.
    Open {
        directory: bool,
        path_only: bool,
    },
    /// stat, access, readlink, extended attributes, statfs.
    Look,
    /// To make it the working directory.
    Enter,
    Execute,
    /// To give it another name.
    Source,
    /// To write it, to make it, or to make something below it.
    Write,
    /// To make it, which fails where it is there already; or to make something below it.
    Make,
    /// To put another file in its place, or where it would be.
    Replace,
    /// To give it another name in the directory it is in.
    Rename,
    Remove,
    /// To change its mode, owner, times or extended attributes.
    Change,
    /// To move or link something from another mount there, which fails whatever is granted (EXDEV).
    MoveInto,
}

impl Wants {
    /// Whether something would be written, made or removed.
    pub fn is_change(self) -> bool {
        match self {
            Self::Write
            | Self::Make
            | Self::Replace
            | Self::Rename
            | Self::Remove
            | Self::Change
            | Self::MoveInto => true,
            Self::Open { .. } | Self::Look | Self::Enter | Self::Execute | Self::Source => false,
        }
    }

    /// Whether it may be about something that is not there.
    pub fn may_make(self) -> bool {
        matches!(self, Self::Write | Self::Make | Self::Replace | Self::MoveInto)
    }
}

/// What becomes of a touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessReply {
    /// It was granted for longer than this call: the kernel goes on.
    Continue {
        request: u64,
    },
    /// It was granted for this call: the kernel goes on, and the broker says when the call has returned.
    ContinueAndWatch {
        request: u64,
    },
    /// What was granted for this call is taken away again: others may look.
    Ended {
        request: u64,
    },
    /// It is not on the host either: the kernel goes on, and the same is not told again for a moment.
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
    /// A descriptor comes with it by which this call, and no other, may write: the file, or the directory that something
    /// is made in or removed from. The path is the real one of what the call changes, name included.
    WriteOnce {
        request: u64,
        #[serde(with = "Raw")]
        path: Vec<u8>,
    },
    /// It succeeds, and nothing is done: for the run, what it would remove is gone.
    Pretend {
        request: u64,
    },
}

/// Whatever notices first touches, seen from the supervisor: they come as [`PathAccess`]es, each gets one answer.
pub trait Trigger {
    type Error;

    /// `file` belongs to [`AccessReply::File`] and [`AccessReply::WriteOnce`]. An answer to a call that is over by now is no error.
    fn reply(&self, reply: AccessReply, file: Option<BorrowedFd<'_>>) -> Result<(), Self::Error>;
}

impl PathAccess {
    /// The deepest directory on the way that is there inside, if that is known.
    pub fn existing_directory(&self) -> Option<&Path> {
        let existing = self.path.get(..self.existing).filter(|path| !path.is_empty())?;
        Some(Path::new(OsStr::from_bytes(existing)))
    }
}

impl AccessReply {
    pub fn request(&self) -> u64 {
        match *self {
            Self::Continue { request }
            | Self::ContinueAndWatch { request }
            | Self::Ended { request }
            | Self::Absent { request }
            | Self::Fail { request, .. }
            | Self::File { request }
            | Self::WriteOnce { request, .. }
            | Self::Pretend { request } => request,
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
