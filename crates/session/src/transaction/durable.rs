//! Checkpoints are there at once and on disk later (LIFE-5): whoever asks for one does not wait for everything that anybody
//! writes to that disk. A process of the session does it, or the one who asks where none is there.

use super::checkpoints::CheckpointReason;
use super::copied::COPY_RECORD;
use super::disk_marks::DiskMark;
use super::rollback::ask;
use super::waiting::WaitingChanges;
use super::{DIRECTORY, RECORD};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::sessions::SessionDirectory;
use palisade_supervisor::control::interface::{Request, Response};
use palisade_supervisor::project_work::ProjectWork;
use palisade_sys::beneath::open_beneath;
use palisade_sys::{At as _, Errno, fault};
use std::os::fd::OwnedFd;
use std::path::Path;

impl WaitingChanges {
    /// Has the checkpoints written to disk without waiting for it, where the session's supervisor lives. Nobody else is there
    /// to do it, so otherwise it is done here.
    pub fn write_checkpoints_soon(&self) -> Result<()> {
        let asked = self.connect().and_then(|mut client| {
            ask(&mut client, &Request::WriteCheckpoints).map(|(answer, _)| answer)
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
            let is_lasting = !checkpoint.reason.is_step();
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
        self.mark(&places, DiskMark::Written)?;
        fault::point("marked", "the checkpoints");
        for place in &places {
            rustix::fs::fsync(place).call("fsync")?;
        }
        fault::point("on disk", "the checkpoints");
        self.mark(&places, DiskMark::OnDisk)
    }

    /// Nothing is removed meanwhile: a directory that gets a file could not be.
    fn mark(&self, places: &[OwnedFd], mark: DiskMark) -> Result<()> {
        let _lock = self.lock()?;
        places.iter().try_for_each(|place| mark.make(place))
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
