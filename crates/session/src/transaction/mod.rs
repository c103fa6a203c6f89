//! A project's changes that wait until they are applied (LIFE-2): where a run keeps them, and what is written down about
//! them. What the changes are is the business of `palisade-changes`.
//!
//! The command wrote everything in the layer. So this must never follow a link in there, nor take a word of it for ours.

mod waiting;

pub use palisade_changes as changes;
pub use waiting::WaitingChanges;

use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::sessions::{self, SessionDirectory, SessionRecord, SupervisorLock, TimeToLive};
use jiff::Timestamp;
use palisade_plan::model::{Confinement, MountOp, Owner, Plan};
use palisade_record::{RunReport, State};
use rustix::fs::{Gid, Uid};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// In a session's directory.
const RECORD: &str = "transaction.json";

/// What is written down about a transaction when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionRecord {
    /// Files of the host that changed later than this are not those that the command saw. By the kernel's clock for
    /// times of files, which is behind the usual one.
    pub since: FileTime,
}

/// A time as `stat` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileTime {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl FileTime {
    fn now() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self { seconds: now.tv_sec, nanoseconds: now.tv_nsec }
    }
}

/// A run whose project is a transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    directory: SessionDirectory,
    /// Of a run that has a session's directory for its changes alone.
    own: Option<(SupervisorLock, SessionRecord)>,
}

impl Transaction {
    /// Makes the directory that the plan mounts. None if the plan has no transaction.
    pub(crate) fn begin(places: &AppDirs, plan: &Plan, report: &RunReport) -> Result<Option<Self>> {
        let Some(planned) = &plan.supervision.transaction else { return Ok(None) };
        let (directory, own) = match SessionDirectory::open(places, &report.session_id)? {
            Some(directory) => (directory, None),
            None => {
                let record = record_of(report, planned.project.clone());
                let (directory, lock) = sessions::create(places, &record)?;
                (directory, Some((lock, record)))
            }
        };
        make_layer(&planned.layer, owner(plan))?;
        let record = TransactionRecord { since: FileTime::now() };
        directory.write_json(RECORD, &record)?;
        Ok(Some(Self { directory, own }))
    }
}

impl Transaction {
    /// After the run: says what waits. A session that has nothing else is gone if nothing does.
    pub(crate) fn end(self, report: &mut RunReport, is_failed: bool) -> Result<()> {
        let Self { directory, own } = self;
        let id = directory.id().to_owned();
        let session = own.as_ref().map(|(_, record)| record.clone());
        let record = session.map_or_else(|| directory.record(), Ok)?;
        let waiting = WaitingChanges::open(directory, record)?
            .ok_or_else(|| SessionError::NoTransaction { session: id })?;
        let count = waiting.scan()?.changes().len();
        let Some((lock, mut record)) = own else {
            report.waiting_changes = Some(count);
            return Ok(());
        };
        if count == 0 {
            drop(lock);
            return waiting.into_directory().remove();
        }
        report.waiting_changes = Some(count);
        record.state = if is_failed { State::Error } else { State::Completed };
        record.supervisor = None;
        record.exit_code = Some(report.exit_code);
        record.ended_at = Some(Timestamp::now());
        waiting.directory().write_record(&record)
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
        time_to_live: TimeToLive::default(),
        state: State::Created,
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

/// The directory belongs to who owns the project: through the sandbox's id map nobody else could make a file in it.
fn make_layer(layer: &Path, owner: Option<Owner>) -> Result<()> {
    let failed = |errno: rustix::io::Errno| SessionError::io("create", layer, errno.into());
    crate::app_dirs::make_private_dir(layer)?;
    let Some(Owner { uid, gid }) = owner else { return Ok(()) };
    rustix::fs::chown(layer, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(failed)
}
