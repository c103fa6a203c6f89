//! Where an apply works: the locked project, the directory with the journal, and the directory with staged copies.

use super::faults::Faults;
use super::journal::{self, ABORT, BEGIN, Begin, DONE, JOURNAL, Journal, RECORDS};
use super::operations::Operation;
use crate::discard::discard;
use crate::entry::{Found, Timestamp};
use crate::error::{ChangesError, Result};
use crate::layers::Layers;
use palisade_sys::beneath::open_on_mount;
use palisade_sys::lock::{lock_within, try_lock_file};
use palisade_sys::{At as _, Mode, OFlags, Result as SysResult};
use rustix::fs::{
    AtFlags, Dir, FlockOperation, StatxFlags, fstat, fsync, mkdirat, openat, statx, syncfs,
};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

/// Nothing of this name ever comes from a session to the host. In lower case.
pub(super) const STAGE_PREFIX: &str = ".palisade-apply-";
/// In the stage: what is to be installed, and what was removed.
pub(super) const NEW: &str = "new";
pub(super) const OLD: &str = "old";

/// A small apply of another session ends within this.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct Workspace<'w> {
    /// Open for reading; holds the lock.
    project: OwnedFd,
    state: BorrowedFd<'w>,
    begin: Option<Begin>,
    stage: Option<OwnedFd>,
}

impl<'w> Workspace<'w> {
    /// One apply at a time works on a project, whichever session it belongs to.
    pub(super) fn lock(layers: &Layers, state: BorrowedFd<'w>) -> Result<Self> {
        let root = layers.root(layers.project());
        let project = openat(root, ".", DIRECTORY, Mode::empty()).at("openat", Path::new("."))?;
        let operation = FlockOperation::NonBlockingLockExclusive;
        let is_locked = lock_within(LOCK_TIMEOUT, || try_lock_file(&project, operation));
        if !is_locked.call("flock")? {
            return Err(ChangesError::Busy);
        }
        Ok(Self { project, state, begin: None, stage: None })
    }

    pub(super) fn require_none_interrupted(&self) -> Result<()> {
        for record in RECORDS {
            if journal::exists(self.state, record)? {
                return Err(ChangesError::Interrupted);
            }
        }
        Ok(())
    }

    /// The time by the clock of file systems, which lags behind that of the system.
    pub(super) fn now(&self) -> Result<Timestamp> {
        let now = journal::prepare(self.state, &())?;
        let found = Found::of(&fstat(&now).call("fstat")?);
        journal::remove(self.state, journal::NEW)?;
        Ok(found.changed)
    }

    /// Makes the directory for staged copies: where no sandbox can write, if files can be renamed from there.
    pub(super) fn begin(&mut self, faults: &mut dyn Faults) -> Result<()> {
        let is_in_project = !is_same_mount(self.state, self.project.as_fd());
        let name = format!("{STAGE_PREFIX}{}", uuid::Uuid::now_v7());
        let begin = Begin::new(is_in_project, name.clone());
        faults.step()?;
        let record = journal::prepare(self.state, &begin)?;
        if is_in_project {
            // The directory must not be on disk without the record.
            fsync(record).call("fsync")?;
        }
        faults.step()?;
        journal::publish(self.state, BEGIN)?;
        if is_in_project {
            journal::flush(self.state)?;
        }
        self.begin = Some(begin);
        faults.step()?;
        let made = mkdirat(self.stage_parent(), &name, Mode::RWXU)
            .at("mkdir", Path::new(&name))
            .and_then(|()| self.open_stage())
            .and_then(|()| {
                let stage = self.stage();
                mkdirat(stage, NEW, Mode::RWXU).at("mkdir", Path::new(NEW))?;
                mkdirat(stage, OLD, Mode::RWXU).at("mkdir", Path::new(OLD))
            });
        made.map_err(|error| self.give_up(error.into()))
    }

    /// After a crash: which record counts, and its operations.
    pub(super) fn resume(&mut self) -> Result<Resumed> {
        for record in [DONE, ABORT, JOURNAL] {
            if let Some(Journal { begin, operations }) = journal::read_journal(self.state, record)?
            {
                self.take_over(begin)?;
                return Ok(Resumed::Decided { record, operations });
            }
        }
        let Some(begin) = journal::read_begin(self.state)? else { return Ok(Resumed::Nothing) };
        self.take_over(begin)?;
        Ok(Resumed::Begun)
    }

    fn take_over(&mut self, begin: Begin) -> Result<()> {
        if !begin.stage.starts_with(STAGE_PREFIX) || begin.stage.contains('/') {
            return Err(ChangesError::Journal { why: "it names a wrong directory".to_owned() });
        }
        self.begin = Some(begin);
        match self.open_stage() {
            // Not made yet, or removed already.
            Err(error) if error.errno == palisade_sys::Errno::NOENT => Ok(()),
            opened => Ok(opened?),
        }
    }

    pub(super) fn has_stage(&self) -> bool {
        self.stage.is_some()
    }

    fn open_stage(&mut self) -> SysResult<()> {
        let Some(begin) = &self.begin else { return Ok(()) };
        let name = Path::new(&begin.stage);
        self.stage = Some(open_on_mount(self.stage_parent(), name, DIRECTORY)?);
        Ok(())
    }

    fn stage_parent(&self) -> BorrowedFd<'_> {
        let is_in_project = self.begin.as_ref().is_some_and(|begin| begin.is_in_project);
        if is_in_project { self.project.as_fd() } else { self.state }
    }

    /// The state directory before anything is staged.
    pub(super) fn stage(&self) -> BorrowedFd<'_> {
        self.stage.as_ref().map_or(self.state, |stage| stage.as_fd())
    }

    /// Whether files can be renamed from all upper layers into the project.
    pub(super) fn can_move_from(&self, layers: &Layers) -> bool {
        (0..layers.project()).all(|layer| is_same_mount(layers.root(layer), self.project.as_fd()))
    }

    pub(super) fn sync(&self, faults: &mut dyn Faults) -> Result<()> {
        faults.step()?;
        Ok(syncfs(&self.project).call("syncfs")?)
    }

    /// Flushes what was staged, and then decides to apply it.
    pub(super) fn commit_to(
        &self,
        operations: Vec<Operation>,
        faults: &mut dyn Faults,
    ) -> Result<Vec<Operation>> {
        let Some(begin) = self.begin.clone() else { return Ok(operations) };
        let is_elsewhere = begin.is_in_project;
        let journal = Journal { begin, operations };
        faults.step()?;
        let record = journal::prepare(self.state, &journal)?;
        self.sync(faults)?;
        if is_elsewhere {
            faults.step()?;
            fsync(record).call("fsync")?;
        }
        faults.step()?;
        journal::publish(self.state, JOURNAL)?;
        faults.step()?;
        journal::flush(self.state)?;
        journal::remove(self.state, BEGIN)?;
        Ok(journal.operations)
    }

    /// What the journal means from now on.
    pub(super) fn turn_into(&self, record: &str, faults: &mut dyn Faults) -> Result<()> {
        faults.step()?;
        Ok(journal::turn_into(self.state, record)?)
    }

    /// Before anything was performed. Returns the error that led here.
    pub(super) fn give_up(&self, error: ChangesError) -> ChangesError {
        if !matches!(error, ChangesError::Stopped { .. }) {
            // What cannot be removed now is removed by the next recovery.
            let _ = journal::remove(self.state, JOURNAL);
            let _ = self.clean(&mut super::faults::NoFaults);
        }
        error
    }

    /// Removes the stage and the records. Interrupted, it can be repeated: the record that says what to do goes last.
    pub(super) fn clean(&self, faults: &mut dyn Faults) -> Result<()> {
        faults.step()?;
        if let Some(begin) = &self.begin {
            discard(self.stage_parent(), OsStr::new(&begin.stage))?;
        }
        for record in [journal::NEW, BEGIN, ABORT, DONE] {
            faults.step()?;
            journal::remove(self.state, record)?;
        }
        Ok(())
    }

    /// Removes staged copies that lost their record in a power failure.
    pub(super) fn sweep(&self) -> Result<()> {
        let dir = openat(self.state, ".", DIRECTORY, Mode::empty()).at("openat", Path::new("."))?;
        for entry in Dir::read_from(&dir).call("getdents")? {
            let entry = entry.call("getdents")?;
            let name = entry.file_name().to_bytes();
            if name.starts_with(STAGE_PREFIX.as_bytes()) {
                discard(self.state, OsStr::from_bytes(name))?;
            }
        }
        Ok(())
    }
}

/// What a crash left.
#[derive(Debug)]
pub(super) enum Resumed {
    Nothing,
    /// Copies, perhaps.
    Begun,
    Decided {
        record: &'static str,
        operations: Vec<Operation>,
    },
}

/// Whether a rename from one to the other can work: the same mount of the same file system (btrfs: of the same subvolume).
fn is_same_mount(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let mount = |dir: BorrowedFd<'_>| {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = statx(dir, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
        let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        is_told.then_some((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor))
    };
    mount(one).is_some_and(|one| Some(one) == mount(other))
}
