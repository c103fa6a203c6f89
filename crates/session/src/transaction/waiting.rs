//! The changes of one session, opened to be shown, applied or discarded.

use super::committed::CommittedContents;
use super::state_number::StateNumber;
use super::{
    CHECKPOINTS, DIRECTORY, LAYER, LAYERS, RECORD, TransactionRecord, UPPER, copied, interrupted,
    open_project,
};
use crate::caller::Caller;
use crate::config::{self, PolicyRequest};
use crate::error::{Result, SessionError};
use crate::kept_layer::{self, WORK};
use crate::machine_start;
use crate::replaced_file::Synced;
use crate::session_id::new_session_id;
use crate::sessions::{SessionDirectory, SessionRecord};
use palisade_changes::{
    ApplyRequest, ChangeSet, GuardJudge, Held, Judge, Layers, NoJudge, OnConflict, OnRefused,
    Outcome, Recovery, Selection, Source,
};
use palisade_launch::probe::{RealTree, limit_facts};
use palisade_plan::model::TransactionMethod;
use palisade_policy::model::ProjectAccess;
use palisade_sys::beneath::open_beneath;
use palisade_sys::{At as _, Errno, OFlags, fault};
use rustix::fs::Mode;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const JOURNAL: &str = SessionDirectory::APPLY;

/// What a session changed and nobody has applied or discarded.
#[derive(Debug)]
pub struct WaitingChanges {
    directory: SessionDirectory,
    session: SessionRecord,
    record: TransactionRecord,
    /// Of the record.
    hidden: Vec<PathBuf>,
    layers: Layers,
    /// Which state this is.
    state: StateNumber,
}

impl WaitingChanges {
    /// None if the session has no transaction, or its changes were applied or discarded.
    pub fn open(directory: SessionDirectory, session: SessionRecord) -> Result<Option<Self>> {
        if !directory.is_alive() {
            interrupted::finish_ended(&directory)?;
        }
        let upper = match open_beneath(directory.directory(), Path::new(UPPER), DIRECTORY) {
            Ok(upper) => upper,
            Err(error) if error.errno == Errno::NOENT => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let record: TransactionRecord = match directory.read_json(RECORD) {
            Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            record => record?,
        };
        let project = open_project(&session.project)?;
        let layers = match record.method {
            TransactionMethod::Overlay => Layers::new(project, vec![upper]),
            TransactionMethod::Copy => Layers::of_copy(project, upper, copied::read(&directory)?),
        };
        let hidden = record.hidden_paths();
        let state = StateNumber::Now;
        Ok(Some(Self { directory, session, record, hidden, layers, state }))
    }

    /// The same in another state.
    pub(super) fn with_state(self, state: StateNumber, layers: Layers) -> Self {
        Self { layers, state, ..self }
    }

    /// As they are by now.
    pub fn reopen(self) -> Result<Option<Self>> {
        let Self { directory, session, layers, .. } = self;
        drop(layers);
        Self::open(directory, session)
    }

    /// What would be lost with a session.
    pub fn unapplied(directory: &SessionDirectory, session: &SessionRecord) -> Result<Unapplied> {
        let Some(waiting) = Self::open(directory.try_clone()?, session.clone())? else {
            return Ok(Unapplied::default());
        };
        let changes = waiting.scan()?.changes().len();
        Ok(Unapplied { changes, checkpoints: waiting.unapplied_checkpoints()? })
    }

    /// Gives back what an interrupted apply of a session keeps of the host. Where its changes cannot be opened, removing the
    /// session is refused for that.
    pub fn recover_of(directory: &SessionDirectory, session: &SessionRecord) -> Result<()> {
        match Self::open(directory.try_clone()?, session.clone()) {
            Ok(Some(waiting)) => waiting.recover().map(drop),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    pub fn directory(&self) -> &SessionDirectory {
        &self.directory
    }

    pub fn session(&self) -> &SessionRecord {
        &self.session
    }

    /// Files of the host that changed later are not those that the session saw.
    pub fn record(&self) -> &TransactionRecord {
        &self.record
    }

    /// Relative to the project.
    pub(super) fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    pub fn scan(&self) -> Result<ChangeSet> {
        Ok(palisade_changes::scan(&self.layers)?)
    }

    /// Whether there is neither a change nor a checkpoint. What cannot be listed counts as something.
    pub(super) fn is_empty(&self) -> bool {
        self.scan().is_ok_and(|set| set.changes().is_empty())
            && self.checkpoints().is_ok_and(|kept| kept.is_empty())
    }

    /// One at a time changes what was kept.
    pub(super) fn lock(&self) -> Result<OwnedFd> {
        interrupted::lock(&self.directory)
    }

    /// The same, if the changes are still those that were opened: another process may have rolled them back, or dropped the
    /// checkpoint, before the lock was ours.
    pub(super) fn lock_opened(&self) -> Result<OwnedFd> {
        let lock = self.lock()?;
        if let StateNumber::Checkpoint(number) = self.state {
            // One that nobody asked for can be dropped meanwhile, and its files with it.
            return match self.layers.is_newest(self.open_image(number)?.as_fd())? {
                true => Ok(lock),
                false => {
                    Err(SessionError::ChangesReplaced { session: self.session.label().to_owned() })
                }
            };
        }
        let by_name = match open_beneath(self.directory.directory(), Path::new(UPPER), DIRECTORY) {
            Err(error) if error.errno == Errno::NOENT => None,
            upper => Some(upper?),
        };
        match by_name {
            Some(upper) if self.layers.is_newest(upper.as_fd())? => Ok(lock),
            _ => Err(SessionError::ChangesReplaced { session: self.session.label().to_owned() }),
        }
    }

    /// The project on the host, once more.
    pub(super) fn open_project(&self) -> Result<OwnedFd> {
        open_project(&self.session.project)
    }

    /// After the end: the kernel's working directory is nothing but in the way, as nobody may enter it.
    pub(super) fn tidy(&self) -> Result<()> {
        let layer = open_beneath(self.directory.directory(), Path::new(LAYER), DIRECTORY)?;
        palisade_changes::discard(layer.as_fd(), WORK.as_ref())?;
        Ok(())
    }

    /// Removes the changes, and what is left of the run if the session is there for nothing else. What still runs goes on
    /// with what it has open, so it must have ended.
    pub fn remove(self) -> Result<()> {
        let _lock = self.lock_opened()?;
        // An apply that was interrupted has files of the host.
        self.recover()?;
        let Self { directory, session, layers, record, .. } = self;
        // It makes unreadable files readable until it is dropped.
        drop(layers);
        discard(directory, session, record.is_of_one_run)
    }

    /// The same by the supervisor of a session itself, when nothing else of it is left.
    pub(super) fn remove_as_supervisor(self) -> Result<()> {
        self.recover()?;
        let Self { directory, layers, .. } = self;
        drop(layers);
        remove_layers_of(&directory)
    }

    /// The same without looking at them, where their project is gone.
    pub(super) fn remove_unseen(directory: SessionDirectory, session: SessionRecord) -> Result<()> {
        let record: TransactionRecord = directory.read_json(RECORD)?;
        discard(directory, session, record.is_of_one_run)
    }

    /// Whether an apply has to be finished or undone.
    pub fn is_apply_interrupted(&self) -> bool {
        self.directory.refuse_interrupted_apply().is_err()
    }

    /// Finishes or undoes an apply that was interrupted.
    pub fn recover(&self) -> Result<Recovery> {
        Ok(palisade_changes::recover(&self.layers, self.journal()?.as_fd())?)
    }

    /// Sees to it that the changes are on disk, for as long as they wait. The command's processes must be gone.
    pub(super) fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(self.directory.directory()).call("syncfs")?;
        let record: TransactionRecord = self.directory.read_json(RECORD)?;
        let record = TransactionRecord { until_restart_of: None, ..record };
        self.directory.write_json(RECORD, &record, Synced::Everything)
    }

    /// An error if a loss of power may have left files of it empty.
    fn check_that_it_is_whole(&self, options: &ApplyOptions<'_>) -> Result<()> {
        let is_whole = self.record.until_restart_of.as_deref().is_none_or(machine_start::is_this);
        match is_whole || matches!(options.on_conflict, OnConflict::Force) {
            true => Ok(()),
            false => {
                Err(SessionError::MaybeIncomplete { session: self.session.label().to_owned() })
            }
        }
    }

    pub(super) fn apply_unrecorded(
        &self,
        options: &ApplyOptions<'_>,
        processes: SessionProcesses,
    ) -> Result<Outcome> {
        self.check_that_it_is_whole(options)?;
        let _lock = self.lock_opened()?;
        self.recover()?;
        let journal = self.journal()?;
        let mut request = self.request(options, journal.as_fd());
        // What is moved is gone from the layers, so nothing may be left there that somebody still wants.
        let is_whole = || {
            let held = palisade_changes::preview(&request)?;
            Ok::<_, SessionError>(held.refused.is_empty() && held.conflicts.is_empty())
        };
        // What the host keeps stays in the layers, for another decision.
        let is_kept = matches!(options.on_conflict, OnConflict::KeepHost);
        // What is moved out of a copy would look deleted in it.
        let is_overlay = self.record.method == TransactionMethod::Overlay;
        let is_over = processes == SessionProcesses::Gone && self.state == StateNumber::Now;
        if is_over && is_overlay && options.is_all && !is_kept && is_whole()? {
            request.source = Source::Move;
        }
        let outcome = palisade_changes::apply(&request)?;
        match (&outcome, request.source) {
            (Outcome::Applied(applied), Source::Copy) => {
                let baseline = applied.baseline.clone();
                let record = TransactionRecord { baseline, ..self.record.clone() };
                self.directory.write_json(RECORD, &record, Synced::Content)?;
            }
            (Outcome::Applied(applied), Source::Move)
                if applied.refused.is_empty() && applied.kept.is_empty() =>
            {
                self.empty()?;
            }
            (Outcome::Applied(_) | Outcome::Held(_), _) => {}
        }
        Ok(outcome)
    }

    /// What files were when the transaction started, as far as git has them.
    pub fn committed(&self) -> CommittedContents {
        CommittedContents::new(&self.session.project, self.record.commit.as_deref())
    }

    /// After everything was moved: a directory that hid the host's would now look as if what came there had been deleted.
    fn empty(&self) -> Result<()> {
        const SPENT: &str = "spent";
        let layer = open_beneath(self.directory.directory(), Path::new(LAYER), DIRECTORY)?;
        palisade_changes::discard(layer.as_fd(), SPENT.as_ref())?;
        let upper = kept_layer::UPPER;
        rustix::fs::renameat(&layer, upper, &layer, SPENT).at("rename", Path::new(UPPER))?;
        fault::point("emptying", "the layer");
        rustix::fs::mkdirat(&layer, upper, Mode::RWXU).at("mkdir", Path::new(UPPER))?;
        palisade_changes::discard(layer.as_fd(), SPENT.as_ref())?;
        Ok(())
    }

    /// What stands in the way of an apply, without applying anything.
    pub fn preview(&self, options: &ApplyOptions<'_>) -> Result<Held> {
        let journal = self.journal()?;
        Ok(palisade_changes::preview(&self.request(options, journal.as_fd()))?)
    }

    fn request<'a>(
        &'a self,
        options: &'a ApplyOptions<'a>,
        journal: BorrowedFd<'a>,
    ) -> ApplyRequest<'a> {
        ApplyRequest {
            layers: &self.layers,
            state: journal,
            baseline: &self.record.baseline,
            selection: &options.selection,
            hidden: &self.hidden,
            judge: options.judge,
            on_conflict: options.on_conflict,
            on_refused: options.on_refused,
            source: Source::Copy,
        }
    }

    /// In a directory of its own: no command can write there.
    fn journal(&self) -> Result<OwnedFd> {
        let at = self.directory.directory();
        let path = self.directory.path().join(JOURNAL);
        let failed = |errno: Errno| SessionError::io("open", &path, errno.into());
        match rustix::fs::mkdirat(at, JOURNAL, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        rustix::fs::openat(at, JOURNAL, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map_err(failed)
    }

    /// Judges what would come to the host as the broker judges what a run writes there.
    pub fn judge(&self, caller: &Caller, request: &PolicyRequest) -> Result<Box<dyn Judge>> {
        let project = self.session.project.clone();
        let mut caller = caller.clone();
        caller.facts.cwd.clone_from(&project);
        let loaded = config::load(&caller, request)?;
        let mut policy = loaded.merged.policy;
        policy.filesystem.project = ProjectAccess::ReadWrite;
        let session = new_session_id();
        let plan = palisade_plan::build(&palisade_plan::PlanRequest {
            policy: &policy,
            facts: &caller.facts,
            tree: &RealTree,
            command: vec!["/bin/sh".into()],
            session: session.clone(),
            missing: palisade_plan::IfMissing::IsNoted,
            project: loaded.project.as_ref(),
            policy_files: &loaded.read_from,
            preset_paths: &[],
            layer: &caller.places.layer(&session),
            caches: &|project| crate::caches::look(&caller.places, project, &session),
            listed: None,
            limits: &limit_facts,
        })?;
        match plan.sandbox.guard {
            Some(guard) => Ok(Box::new(GuardJudge::new(guard.matcher(), project, guard.hooks))),
            None if !policy.filesystem.protect_names => Ok(Box::new(NoJudge)),
            None => Err(SessionError::NoJudge { project }),
        }
    }
}

fn discard(directory: SessionDirectory, session: SessionRecord, is_of_one_run: bool) -> Result<()> {
    if directory.is_alive() {
        return Err(SessionError::SessionRunning { session: session.id });
    }
    directory.refuse_interrupted_apply()?;
    if is_of_one_run {
        return directory.remove();
    }
    remove_layers(&directory)
}

/// For the supervisor of a session, which is alive itself, and nobody else.
pub(super) fn remove_layers_of(directory: &SessionDirectory) -> Result<()> {
    directory.refuse_interrupted_apply()?;
    remove_layers(directory)
}

fn remove_layers(directory: &SessionDirectory) -> Result<()> {
    for name in [LAYERS, CHECKPOINTS] {
        palisade_changes::discard(directory.directory(), name.as_ref())?;
    }
    Ok(())
}

/// Work that is nowhere but in a session's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unapplied {
    pub changes: usize,
    /// Those that differ from the project.
    pub checkpoints: usize,
}

impl Unapplied {
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Whether a process of the session could still write through what it has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionProcesses {
    MayRemain,
    Gone,
}

/// What to apply, and what to do about what stands in the way.
#[derive(Clone)]
pub struct ApplyOptions<'a> {
    pub selection: Selection,
    /// Whether the selection is everything.
    pub is_all: bool,
    pub judge: &'a dyn Judge,
    pub on_conflict: OnConflict<'a>,
    pub on_refused: OnRefused,
}

impl std::fmt::Debug for ApplyOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplyOptions").field("is_all", &self.is_all).finish_non_exhaustive()
    }
}

impl<'a> ApplyOptions<'a> {
    /// Everything or nothing.
    pub fn all(judge: &'a dyn Judge) -> Self {
        Self {
            selection: Selection::all(),
            is_all: true,
            judge,
            on_conflict: OnConflict::Refuse,
            on_refused: OnRefused::ApplyNothing,
        }
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
