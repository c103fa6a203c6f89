//! How a file of ours is replaced: a reader sees the old one or the new one, whoever is killed. What is there after a loss of
//! power is up to the caller, since waiting for a disk takes longer than everything else about a start.

use palisade_sys::fault;
use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use std::fs::File;
use std::io::{Result, Write as _};
use std::os::fd::BorrowedFd;
use uuid::Uuid;

/// What the name of a file ends with that takes the place of another one when it is written.
pub(crate) const TEMPORARY: &str = ".tmp";

const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// After a loss of power the file may be empty.
    Nothing,
    /// It is the old one or the new one.
    Content,
    /// It is the new one.
    Everything,
}

/// Who writes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Whoever has the lock for it. A temporary file was left by somebody who was killed, and is used again.
    OneAtATime,
    Any,
}

impl Writers {
    /// A name that cannot be foreseen, where anybody may write.
    fn temporary(self, name: &str) -> String {
        match self {
            Self::OneAtATime => format!("{name}{TEMPORARY}"),
            Self::Any => format!("{name}.{}{TEMPORARY}", Uuid::now_v7().simple()),
        }
    }

    fn flags(self) -> OFlags {
        let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        match self {
            Self::OneAtATime => flags | OFlags::TRUNC | OFlags::NONBLOCK,
            Self::Any => flags | OFlags::EXCL,
        }
    }

    /// A moment for tests, where the next writer puts right what a killed one left.
    fn moment(self, what: &str, name: &str) {
        if self == Self::OneAtATime {
            fault::point(what, name);
        }
    }
}

/// Replaces a file in a directory.
pub(crate) fn replace(
    directory: BorrowedFd<'_>,
    name: &str,
    content: &[u8],
    (writers, synced): (Writers, Synced),
) -> Result<()> {
    let temporary = writers.temporary(name);
    let mut file = File::from(openat(directory, &temporary, writers.flags(), OWNER)?);
    writers.moment("writing", name);
    let replaced = file
        .write_all(content)
        .and_then(|()| match synced {
            Synced::Nothing => Ok(()),
            Synced::Content | Synced::Everything => file.sync_all(),
        })
        .and_then(|()| {
            writers.moment("replacing", name);
            Ok(renameat(directory, &temporary, directory, name)?)
        });
    writers.moment("replaced", name);
    if replaced.is_err() {
        // If it cannot be removed either, the first error is the one that matters.
        let _ = unlinkat(directory, &temporary, AtFlags::empty());
    }
    replaced?;
    match synced {
        Synced::Nothing | Synced::Content => Ok(()),
        Synced::Everything => Ok(fsync(directory)?),
    }
}
