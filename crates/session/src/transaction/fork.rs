//! A second session that begins with the changes of another one (LIFE-5), and with its options: a fork must never be able to
//! do more than the session it comes from.

use super::TransactionRecord;
use super::state_number::StateNumber;
use super::waiting::WaitingChanges;
use crate::app_dirs::AppDirs;
use crate::caller::Caller;
use crate::config::PolicyRequest;
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use crate::kept_layer;
use crate::replaced_file::Synced;
use crate::sessions::SessionDirectory;
use palisade_changes::CopyThreads;
use palisade_plan::model::{Transaction as PlannedTransaction, TransactionMethod};
use palisade_policy::Flag;
use palisade_record::{EventKind, SessionForked};
use palisade_sys::OFlags;
use palisade_sys::beneath::open_beneath;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// In a session's directory.
const OPTIONS: &str = "options.json";
/// The key of options that set variables.
const VARIABLES: &str = "process.env";

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
        if waiting.record().method == TransactionMethod::Copy {
            return Err(SessionError::ForkOfCopy { session: waiting.session().label().to_owned() });
        }
        let _lock = waiting.lock()?;
        let from = waiting
            .open_state(self.checkpoint.map_or(StateNumber::Now, StateNumber::Checkpoint))?;
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty())
            .map_err(|errno| SessionError::io("open", Path::new("/"), errno.into()))?;
        let layer = open_beneath(&root, layer, super::DIRECTORY)?;
        // It is there already, and empty.
        palisade_changes::discard(layer.as_fd(), OsStr::new(kept_layer::UPPER))?;
        // The session's supervisor is forked later.
        let (upper, threads) = (OsStr::new(kept_layer::UPPER), CopyThreads::One);
        palisade_changes::copy_layer(from.as_fd(), layer.as_fd(), upper, threads)?;
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
        let mut value = flag.value.clone();
        if let Some(variables) = variables(&flag.key, &mut value) {
            variables.values_mut().for_each(|value| *value = serde_json::Value::Null);
        }
        Self { name: flag.name.clone(), key: flag.key.clone(), value }
    }
}

impl StoredFlag {
    /// With the values that variables have here. Adds those that have none to `missing`.
    fn flag(self, value_of: &dyn Fn(&str) -> Option<String>, missing: &mut Vec<String>) -> Flag {
        let Self { name, key, mut value } = self;
        if let Some(variables) = variables(&key, &mut value) {
            variables.retain(|name, value| match value_of(name) {
                Some(here) => {
                    *value = here.into();
                    true
                }
                None => {
                    missing.push(name.clone());
                    false
                }
            });
        }
        Flag { name, key, value }
    }
}

/// The variables that an option sets. Their values are often secret, so they are not kept.
fn variables<'v>(
    key: &str,
    value: &'v mut serde_json::Value,
) -> Option<&'v mut serde_json::Map<String, serde_json::Value>> {
    (key == VARIABLES).then(|| value.as_object_mut()).flatten()
}

/// What a fork is asked for.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    pub policy: PolicyRequest,
    /// Where the options were given.
    pub working_directory: PathBuf,
    /// Variables that the origin was given and that have no value here.
    pub missing_variables: Vec<String>,
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
        directory.write_json(OPTIONS, self, Synced::Nothing)
    }

    /// A run of one command keeps none.
    pub fn of_session(directory: &SessionDirectory) -> Result<Self> {
        match directory.read_json(OPTIONS) {
            Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(SessionError::NoForkOptions { session: directory.id().to_owned() })
            }
            options => options,
        }
    }

    /// The same request once more. Values of variables come from who forks: they are not kept.
    pub fn request(self, value_of: &dyn Fn(&str) -> Option<String>) -> ForkRequest {
        let mut missing_variables = Vec::new();
        let mut flags = |stored: Vec<StoredFlag>| -> Vec<Flag> {
            let stored = stored.into_iter();
            stored.map(|stored| stored.flag(value_of, &mut missing_variables)).collect()
        };
        let (environment, command_line) = (flags(self.environment), flags(self.command_line));
        let path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
        let policy = PolicyRequest {
            environment,
            command_line,
            files: self.files.into_iter().map(path).collect(),
            tool: self.tool,
            declared: None,
            project: None,
            preset_paths: self.preset_paths,
        };
        let working_directory = path(self.working_directory);
        ForkRequest { policy, working_directory, missing_variables }
    }
}

#[cfg(test)]
#[path = "fork_tests.rs"]
mod tests;
