//! Checkpoints are there at once and on disk later (LIFE-5): whoever asks for one does not wait for everything that anybody
//! writes to that disk. Until then a checkpoint lasts as long as the machine runs, and its record says so.
//!
//! ```text
//! sessions/ID/checkpoints/N/written      all of it was on disk before this mark was made
//! sessions/ID/checkpoints/N/on-disk      and so is that mark
//! ```
//!
//! Two marks, since one can be seen before it is on disk itself: the first counts after the next start of the machine, the
//! second until then. Neither replaces anything, so that an interruption between them leaves a record that is true.

use super::checkpoints::{Checkpoint, CheckpointReason};
use super::copied::COPY_RECORD;
use super::waiting::WaitingChanges;
use super::{DIRECTORY, RECORD};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::machine_start;
use crate::sessions::SessionDirectory;
use palisade_supervisor::control::interface::{Request, Response};
use palisade_supervisor::project_work::ProjectWork;
use palisade_sys::beneath::open_beneath;
use palisade_sys::{At as _, Errno, OFlags, fault};
use rustix::fs::{Access, AtFlags, Mode};
use std::os::fd::OwnedFd;
use std::path::Path;

const WRITTEN: &str = "written";
const ON_DISK: &str = "on-disk";

/// The record as it counts now. None if a loss of power may have left files of it empty.
pub(super) fn judged(all: &OwnedFd, record: Checkpoint) -> Option<Checkpoint> {
    let Some(start) = &record.until_restart_of else { return Some(record) };
    let place = record.number.to_string();
    let is_marked = |mark: &str| {
        let path = Path::new(&place).join(mark);
        rustix::fs::accessat(all, path, Access::EXISTS, AtFlags::empty()).is_ok()
    };
    let is_this_start = machine_start::is_this(start);
    let mark = if is_this_start { ON_DISK } else { WRITTEN };
    match is_marked(mark) {
        true => Some(Checkpoint { until_restart_of: None, ..record }),
        false => is_this_start.then_some(record),
    }
}

impl WaitingChanges {
    /// Has the checkpoints written to disk without waiting for it, where the session's supervisor lives. Nobody else is there
    /// to do it, so otherwise it is done here.
    pub fn write_checkpoints_soon(&self) -> Result<()> {
        let asked = self.connect().and_then(|mut client| {
            super::rollback::ask(&mut client, &Request::WriteCheckpoints).map(|(answer, _)| answer)
        });
        match asked {
            Ok(Response::Done) => Ok(()),
            // One that ends writes what was there before.
            Ok(_) | Err(_) => self.write_checkpoints(),
        }
    }

    /// Sees to it that all checkpoints are on disk, but for those before each command, which are steps on the way.
    pub fn write_checkpoints(&self) -> Result<()> {
        let Some(all) = self.open_checkpoints()? else { return Ok(()) };
        let mut places = Vec::new();
        for checkpoint in self.checkpoints()? {
            let is_lasting = checkpoint.reason != CheckpointReason::BeforeCommand;
            if is_lasting && !checkpoint.is_on_disk() {
                match open_beneath(&all, Path::new(&checkpoint.number.to_string()), DIRECTORY) {
                    Err(error) if error.errno == Errno::NOENT => {}
                    place => places.push(place?),
                }
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        fault::point("writing", "the checkpoints");
        // All files at once: one by one takes far longer. Nobody else waits for the lock meanwhile.
        rustix::fs::syncfs(&all).call("syncfs")?;
        fault::point("written", "the checkpoints");
        self.mark(&places, WRITTEN)?;
        fault::point("marked", "the checkpoints");
        for place in &places {
            rustix::fs::fsync(place).call("fsync")?;
        }
        fault::point("on disk", "the checkpoints");
        self.mark(&places, ON_DISK)
    }

    /// Nothing is removed meanwhile: a directory that gets a file could not be.
    fn mark(&self, places: &[OwnedFd], mark: &str) -> Result<()> {
        let _lock = self.lock()?;
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for place in places {
            match rustix::fs::openat(place, mark, flags, Mode::RUSR | Mode::WUSR) {
                // It was removed meanwhile.
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno).at("openat", Path::new(mark))?,
            }
        }
        Ok(())
    }
}

/// For the supervisor of a session with a transaction.
#[derive(Clone, Debug)]
pub(crate) struct SessionProject {
    pub(crate) places: AppDirs,
    pub(crate) session: String,
}

impl SessionProject {
    /// Does nothing where nothing of it is there any more.
    fn perform(
        &self,
        work: impl FnOnce(&WaitingChanges) -> Result<()>,
    ) -> std::result::Result<(), String> {
        let open = || {
            let Some(directory) = SessionDirectory::open(&self.places, &self.session)? else {
                return Ok(None);
            };
            let record = directory.record()?;
            WaitingChanges::open(directory, record)
        };
        let done = open().and_then(|waiting| waiting.as_ref().map_or(Ok(()), work));
        done.map_err(|error: SessionError| error.to_string())
    }
}

impl ProjectWork for SessionProject {
    fn write_records(&self) -> std::result::Result<(), String> {
        let names = [RECORD, COPY_RECORD];
        self.perform(|waiting| {
            waiting.directory().sync_records(&names)?;
            fault::point("synced", "the records");
            Ok(())
        })
    }

    fn keep_state(&self) -> std::result::Result<(), String> {
        let reason = CheckpointReason::BeforeCommand;
        self.perform(|waiting| waiting.checkpoint(&self.places, None, reason).map(drop))
    }

    fn write_checkpoints(&self) -> std::result::Result<(), String> {
        self.perform(WaitingChanges::write_checkpoints)
    }
}
