//! Marks that say whether a checkpoint is on disk. Until then it lasts as long as the machine runs.
//!
//! ```text
//! sessions/ID/checkpoints/N/written      all of it was on disk before this mark was made
//! sessions/ID/checkpoints/N/on-disk      and so is that mark
//! ```
//!
//! Two marks, since one can be seen before it is on disk itself: the first counts after the next start of the machine, the
//! second until then. Neither replaces anything, so that an interruption between them leaves a record that is true.

use crate::error::Result;
use crate::machine_start;
use palisade_sys::{At as _, Errno, OFlags};
use rustix::fs::{Access, AtFlags, Mode};
use std::os::fd::OwnedFd;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskMark {
    Written,
    OnDisk,
}

impl DiskMark {
    fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::OnDisk => "on-disk",
        }
    }

    pub(super) fn make(self, place: &OwnedFd) -> Result<()> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(place, self.name(), flags, Mode::RUSR | Mode::WUSR) {
            // The checkpoint was removed meanwhile.
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno).at("openat", Path::new(self.name()))?,
        }
    }
}

/// What a loss of power does to a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    OnDisk,
    /// It would be lost.
    UntilRestart,
    /// There was one, and files of it may be empty.
    Lost,
}

/// Of the checkpoint of this number, which was made at that start of the machine and not waited for.
pub(super) fn lasting(all: &OwnedFd, number: u32, start: &str) -> Lasting {
    let is_this_start = machine_start::is_this(start);
    let mark = if is_this_start { DiskMark::OnDisk } else { DiskMark::Written };
    let path = Path::new(&number.to_string()).join(mark.name());
    let is_marked = rustix::fs::accessat(all, path, Access::EXISTS, AtFlags::empty()).is_ok();
    match (is_marked, is_this_start) {
        (true, _) => Lasting::OnDisk,
        (false, true) => Lasting::UntilRestart,
        (false, false) => Lasting::Lost,
    }
}
