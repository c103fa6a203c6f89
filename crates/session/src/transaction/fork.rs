//! A second session that begins with the changes of another one (LIFE-5), and with its options: a fork must never be able to
//! do more than the session it comes from.

use super::TransactionRecord;
use super::checkpoints::StateNumber;
use super::waiting::WaitingChanges;
use crate::app_dirs::AppDirs;
use crate::caller::Caller;
use crate::config::PolicyRequest;
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use crate::kept_layer;
use crate::sessions::SessionDirectory;

use palisade_plan::model::Transaction as PlannedTransaction;
use palisade_policy::Flag;
use palisade_record::{EventKind, SessionForked};
use palisade_sys::OFlags;
use palisade_sys::beneath::open_beneath;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// In a session's directory.
const OPTIONS: &str = "options.json";

/// Where the changes of a new session come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkOrigin {
    pub session: String,
    pub project: PathBuf,
    /// None: as they are now.
    pub checkpoint: Option<u32>,
}

impl ForkOrigin {
    /// The fork's changes are those of the same project, and are kept apart from it.
    pub(super) fn check(&self, planned: Option<&PlannedTransaction>) -> Result<()> {
        match planned {
            Some(planned) if planned.project == self.project => Ok(()),
            _ => Err(SessionError::ForkedElsewhere {
                session: self.session.clone(),
                project: self.project.clone(),
            }),
        }
    }

    /// Fills the layer of the new session, before it is mounted. Its changes are compared with what the origin's are.
    pub(super) fn copy_changes(&self, places: &AppDirs, layer: &Path) -> Result<TransactionRecord> {
        let gone = || SessionError::NoTransaction { session: self.session.clone() };
        let directory = SessionDirectory::open(places, &self.session)?.ok_or_else(gone)?;
        let record = directory.record()?;
        let waiting = WaitingChanges::open(directory, record)?.ok_or_else(gone)?;
        let _lock = waiting.lock()?;
        let from = waiting
            .open_state(self.checkpoint.map_or(StateNumber::Now, StateNumber::Checkpoint))?;
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty())
            .map_err(|errno| SessionError::io("open", Path::new("/"), errno.into()))?;
        let layer = open_beneath(&root, layer, super::DIRECTORY)?;
        // It is there already, and empty.
        palisade_changes::discard(layer.as_fd(), OsStr::new(kept_layer::UPPER))?;
        palisade_changes::copy_layer(from.as_fd(), layer.as_fd(), OsStr::new(kept_layer::UPPER))?;
        Ok(waiting.record().clone())
    }

    pub(crate) fn record(&self, journal: &mut Journal) {
        journal.add(EventKind::SessionForked(SessionForked {
            origin: self.session.clone(),
            checkpoint: self.checkpoint,
        }));
    }
}

/// What a session was made with. Paths are kept byte by byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkOptions {
    environment: Vec<StoredFlag>,
    command_line: Vec<StoredFlag>,
    files: Vec<Vec<u8>>,
    tool: Option<String>,
    preset_paths: Vec<String>,
    working_directory: Vec<u8>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredFlag {
    name: String,
    key: String,
    value: serde_json::Value,
}

impl From<&Flag> for StoredFlag {
    fn from(flag: &Flag) -> Self {
        Self { name: flag.name.clone(), key: flag.key.clone(), value: flag.value.clone() }
    }
}

impl From<StoredFlag> for Flag {
    fn from(StoredFlag { name, key, value }: StoredFlag) -> Self {
        Self { name, key, value }
    }
}

impl ForkOptions {
    pub(super) fn of(caller: &Caller, policy: &PolicyRequest) -> Self {
        let absolute = |path: &PathBuf| caller.facts.cwd.join(path).into_os_string().into_vec();
        Self {
            environment: policy.environment.iter().map(StoredFlag::from).collect(),
            command_line: policy.command_line.iter().map(StoredFlag::from).collect(),
            files: policy.files.iter().map(absolute).collect(),
            tool: policy.tool.clone(),
            preset_paths: policy.preset_paths.clone(),
            working_directory: caller.facts.cwd.as_os_str().as_bytes().to_vec(),
        }
    }

    pub(super) fn keep(&self, directory: &SessionDirectory) -> Result<()> {
        directory.write_json(OPTIONS, self)
    }

    pub fn of_session(directory: &SessionDirectory) -> Result<Self> {
        directory.read_json(OPTIONS)
    }

    /// The same request once more, and where it was made.
    pub fn request(self) -> (PolicyRequest, PathBuf) {
        let path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
        let request = PolicyRequest {
            environment: self.environment.into_iter().map(Flag::from).collect(),
            command_line: self.command_line.into_iter().map(Flag::from).collect(),
            files: self.files.into_iter().map(path).collect(),
            tool: self.tool,
            project: None,
            preset_paths: self.preset_paths,
        };
        (request, path(self.working_directory))
    }
}
