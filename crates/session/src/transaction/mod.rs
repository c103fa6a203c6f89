//! A project's changes that wait until they are applied (LIFE-2): where a run keeps them, and what is written down about
//! them. What the changes are is the business of `palisade-changes`.
//!
//! The command wrote everything in the layer. So this must never follow a link in there, nor take a word of it for ours.

mod audited;
mod checkpoints;
mod committed;
mod copied;
mod disk_marks;
mod durable;
mod fork;
mod interrupted;
mod rollback;
mod state_number;
mod waiting;

pub use audited::record_removal;
pub use checkpoints::{Checkpoint, CheckpointReason};
pub use committed::CommittedContents;
pub(crate) use durable::SessionProject;
pub use fork::{ForkOptions, ForkOrigin, ForkRequest};
pub use palisade_changes as changes;
pub use palisade_plan::model::TransactionMethod;
pub use rollback::{RolledBack, RunningCommands, before_command};
pub use state_number::StateNumber;
pub use waiting::{ApplyOptions, SessionProcesses, Unapplied, WaitingChanges};

use crate::caller::Caller;
use crate::config::PolicyRequest;
use crate::error::{Result, SessionError};
use crate::kept_layer::make_layer;
use crate::machine_start;
use crate::replaced_file::Synced;
use crate::sessions::{self, SessionDirectory, SessionRecord, SupervisorLock, TimeToLive};
use palisade_changes::{Baseline, Held, Outcome, Timestamp as FileTime};
use palisade_plan::model::{AtEnd, Confinement, MountOp, Owner, Plan};
use palisade_policy::model::OnExpiry;
use palisade_record::{RunReport, State};
use palisade_sys::OFlags;
use palisade_sys::beneath::open_beneath;
use rustix::fs::{CWD, Mode};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// In a session's directory.
const RECORD: &str = "transaction.json";
const LAYERS: &str = "layers";
const LAYER: &str = "layers/1";
const UPPER: &str = "layers/1/upper";
const CHECKPOINTS: &str = "checkpoints";
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How many paths are named that were not applied; `sandbox apply` names all.
const MAX_TOLD: usize = 20;

/// What is written down about a transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionRecord {
    /// What the changes are compared with to find those of others.
    pub baseline: Baseline,
    /// The commit that was checked out, if the project is in a git repository.
    #[serde(default)]
    pub commit: Option<String>,
    #[serde(default = "overlay")]
    pub method: TransactionMethod,
    /// Paths in the project that the command could not see, byte by byte.
    pub hidden: Vec<Vec<u8>>,
    /// Whether the session's directory is there for the changes of one run, and for nothing else.
    pub is_of_one_run: bool,
    /// The start of the machine as long as which the changes are certain to be whole. None once they are on disk: while
    /// the command works nothing of them is synced.
    #[serde(default)]
    pub until_restart_of: Option<String>,
}

impl TransactionRecord {
    /// Relative to the project.
    fn hidden_paths(&self) -> Vec<PathBuf> {
        let path = |bytes: &Vec<u8>| PathBuf::from(OsString::from_vec(bytes.clone()));
        self.hidden.iter().map(path).collect()
    }
}

/// Of records from before there were others.
fn overlay() -> TransactionMethod {
    TransactionMethod::Overlay
}

/// By the kernel's clock for times of files, which is behind the usual one.
fn now_on_files() -> FileTime {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    FileTime { seconds: now.tv_sec, nanoseconds: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

/// A run whose project is a transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    directory: SessionDirectory,
    /// Of a run that has a session's directory for its changes alone.
    own: Option<(SupervisorLock, SessionRecord)>,
    at_end: AtEnd,
    on_expiry: OnExpiry,
    /// Whether what was changed is listed in the audit log.
    records_operations: bool,
}

impl Transaction {
    /// Makes the directory that the plan mounts. None if the plan has no transaction.
    pub(crate) fn begin(
        caller: &Caller,
        plan: &Plan,
        (policy, fork_of): (&PolicyRequest, Option<&ForkOrigin>),
        report: &RunReport,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Option<Self>> {
        let places = &caller.places;
        let planned = plan.supervision.transaction.as_ref();
        if let Some(origin) = fork_of {
            origin.check(planned)?;
        }
        let Some(planned) = planned else { return Ok(None) };
        if planned.layer.starts_with(&planned.project) {
            return Err(SessionError::StateInProject { state: places.state.clone() });
        }
        let (directory, own) = match SessionDirectory::open(places, &report.session_id)? {
            Some(directory) => (directory, None),
            None => {
                let mut record = record_of(report, planned.project.clone());
                record.transaction = Some(planned.method);
                let (directory, lock) = sessions::create(places, &record)?;
                (directory, Some((lock, record)))
            }
        };
        make_layer(&planned.layer, owner(plan))?;
        let (baseline, commit) = match fork_of {
            Some(origin) => {
                let copied = origin.copy_changes(places, &planned.layer)?;
                (copied.baseline, copied.commit)
            }
            None => {
                let commit = committed::checked_out(&planned.project);
                (Baseline::started(now_on_files()), commit)
            }
        };
        // Nobody forks a run of one command, nor a call of a declared tool: without its declaration a fork could do more.
        if own.is_none() && policy.declared.is_none() {
            ForkOptions::of(caller, policy).keep(&directory)?;
        }
        // After the time from which on changes of the host are told from those of the session.
        if planned.method == TransactionMethod::Copy
            && let Err(error) =
                copied::make(&directory, &planned.project, &hidden_paths(plan), tell)
        {
            // The first error is the one that matters; a later start sweeps what is left.
            let _ = match own.map(drop) {
                Some(()) => directory.remove(),
                None => waiting::remove_layers_of(&directory),
            };
            return Err(error);
        }
        let record = TransactionRecord {
            baseline,
            commit,
            method: planned.method,
            hidden: hidden(plan),
            is_of_one_run: own.is_some(),
            until_restart_of: Some(machine_start::this_start()?),
        };
        // On disk a moment later: see `SessionProject`. A start would wait longer for it than for everything else.
        directory.write_json(RECORD, &record, Synced::Nothing)?;
        let records_operations = plan.supervision.records_operations();
        let (at_end, on_expiry) = (planned.at_end, planned.on_expiry);
        Ok(Some(Self { directory, own, at_end, on_expiry, records_operations }))
    }

    fn session(&self) -> Result<SessionRecord> {
        let session = self.own.as_ref().map(|(_, record)| record.clone());
        session.map_or_else(|| self.directory.record(), Ok)
    }

    /// After a session whose time to live was over: if the policy says so, discards what waits. Otherwise as after any other.
    pub(crate) fn expire(
        self,
        by: (&Caller, &PolicyRequest),
        report: &mut RunReport,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let waiting = match self.on_expiry {
            OnExpiry::Keep => None,
            OnExpiry::Discard => {
                interrupted::finish_ended(&self.directory)?;
                WaitingChanges::open(self.directory.try_clone()?, self.session()?)?
            }
        };
        let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else {
            return self.end(by, report, false, tell);
        };
        waiting.tidy()?;
        let Self { own, records_operations, .. } = self;
        // Whoever removes the directory needs its lock.
        drop(own);
        let count = waiting.discard_expired(&by.0.places, records_operations)?;
        report.discarded_changes = Some(count.unwrap_or_default());
        let count = count.map_or("all".to_owned(), |count| count.to_string());
        let note = format!(
            "the time to live was over: {count} changes were discarded, as filesystem.onExpiry says"
        );
        tell(&note);
        report.notes.push(note);
        Ok(())
    }

    /// Discards what was changed, whatever it is. Of a session the rest stays.
    pub(crate) fn roll_back(self) -> Result<()> {
        let session = self.session()?;
        let Self { directory, own, .. } = self;
        let is_of_one_run = own.is_some();
        // Whoever removes the directory needs its lock.
        drop(own);
        match WaitingChanges::open(directory.try_clone()?, session.clone()) {
            Ok(Some(waiting)) => waiting.tidy().and_then(|()| match is_of_one_run {
                true => waiting.remove(),
                false => waiting.remove_as_supervisor(),
            }),
            Ok(None) => Ok(()),
            // The project is gone, or cannot be opened: its changes need not be looked at.
            Err(_) => match is_of_one_run {
                true => WaitingChanges::remove_unseen(directory, session),
                false => waiting::remove_layers_of(&directory),
            },
        }
    }

    /// After the run: applies what is to be applied, and says what waits. A session that has nothing else is gone if
    /// nothing does.
    pub(crate) fn end(
        self,
        (caller, policy): (&Caller, &PolicyRequest),
        report: &mut RunReport,
        has_failed: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let session = self.session()?;
        let Self { directory, own, at_end, records_operations, .. } = self;
        interrupted::finish_ended(&directory)?;
        let Some(waiting) = WaitingChanges::open(directory.try_clone()?, session)? else {
            // Nothing was mounted, so nothing ran.
            return match own.map(drop) {
                Some(()) => directory.remove(),
                None => Ok(()),
            };
        };
        waiting.tidy()?;
        let mut count = match waiting.scan() {
            Ok(set) => {
                if records_operations {
                    audited::record_changes(&caller.places, waiting.session(), &set)?;
                }
                set.changes().len()
            }
            Err(error) => {
                // Somebody has to look at them all the same.
                waiting.sync()?;
                write_checkpoints(&waiting, tell);
                tell(&format!("changes wait that cannot be listed: {error}"));
                return finish(own, &waiting, report, has_failed);
            }
        };
        let is_good = !has_failed && report.exit_code == 0;
        if at_end == AtEnd::Apply && is_good && count > 0 {
            let judge = waiting.judge(caller, policy)?;
            match waiting.apply(
                &caller.places,
                &ApplyOptions::all(&*judge),
                SessionProcesses::Gone,
            )? {
                Outcome::Applied(applied) => {
                    report.applied_changes = Some(applied.paths.len());
                    count = 0;
                }
                Outcome::Held(held) => tell_of_held(&held, tell),
            }
        }
        report.waiting_changes = Some(count);
        if count > 0 {
            waiting.sync()?;
        }
        write_checkpoints(&waiting, tell);
        if count == 0 && own.is_some() {
            // Kept while the command ran. What cannot be told counts as something that somebody may want.
            if waiting.unapplied_checkpoints().map_or(true, |kept| kept > 0) {
                tell("checkpoints of this run differ from the project, and are kept");
                return finish(own, &waiting, report, has_failed);
            }
            drop(own);
            // What was moved is not seen through what was opened before.
            return waiting.reopen()?.map_or(Ok(()), WaitingChanges::remove);
        }
        finish(own, &waiting, report, has_failed)
    }
}

/// At the end, for those that nobody has written to disk yet.
fn write_checkpoints(waiting: &WaitingChanges, tell: &mut dyn FnMut(&str)) {
    // Their records say what is true, and the next checkpoint tries again.
    if let Err(error) = waiting.write_checkpoints() {
        tell(&format!("checkpoints are not on disk yet: {error}"));
    }
}

/// The last word of the record, if it is the run's own.
fn finish(
    own: Option<(SupervisorLock, SessionRecord)>,
    waiting: &WaitingChanges,
    report: &RunReport,
    has_failed: bool,
) -> Result<()> {
    let Some((_lock, mut record)) = own else { return Ok(()) };
    let state = if has_failed { State::Error } else { report.outcome.into() };
    record.end(state, Some(report.exit_code));
    waiting.directory().write_record(&record)
}

/// The path had no links when the session began, and must have none now.
fn open_project(path: &Path) -> Result<OwnedFd> {
    let failed = |source: io::Error| SessionError::io("open", path, source);
    let root = rustix::fs::openat(CWD, "/", OFlags::PATH | DIRECTORY, Mode::empty())
        .map_err(|errno| failed(errno.into()))?;
    open_beneath(&root, path, DIRECTORY).map_err(|error| failed(error.errno.into()))
}

/// What the overlay leaves out, relative to the project.
fn hidden(plan: &Plan) -> Vec<Vec<u8>> {
    hidden_paths(plan).iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect()
}

fn hidden_paths(plan: &Plan) -> Vec<PathBuf> {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return Vec::new() };
    let of_transaction = inside.mounts.iter().filter_map(|op| match op {
        MountOp::Overlay { layer: Some(_), hidden, .. } => Some(hidden),
        _ => None,
    });
    of_transaction.flatten().cloned().collect()
}

/// Why changes were not applied at the end.
fn tell_of_held(held: &Held, tell: &mut dyn FnMut(&str)) {
    tell("the changes were not applied");
    let refused = held.refused.iter().map(|it| (&it.path, it.reason.to_string()));
    let conflicts = held.conflicts.iter().map(|it| (&it.path, it.reason.to_string()));
    for (path, reason) in refused.chain(conflicts).take(MAX_TOLD) {
        tell(&format!("{}: {reason}", palisade_changes::quoted(path)));
    }
}

fn record_of(report: &RunReport, project: PathBuf) -> SessionRecord {
    SessionRecord {
        id: report.session_id.clone(),
        name: None,
        created_at: report.started_at,
        project,
        command: Some(report.command.clone()),
        presets: Vec::new(),
        level: None,
        has_own_network: false,
        time_to_live: TimeToLive::default(),
        checkpoint_each_command: false,
        transaction: None,
        recording: None,
        state: State::Created,
        is_prepared: false,
        supervisor: Some(std::process::id()),
        exit_code: None,
        ended_at: None,
        end_reason: None,
    }
}

/// On whose behalf files are written, if root starts the run.
fn owner(plan: &Plan) -> Option<Owner> {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return None };
    inside.mounts.iter().find_map(|op| match op {
        MountOp::Overlay { layer: Some(_), idmap, .. } => *idmap,
        _ => None,
    })
}
