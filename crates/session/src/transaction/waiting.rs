//! The changes of one session, opened to be shown, applied or discarded.

use super::{RECORD, TransactionRecord};
use crate::caller::Caller;
use crate::config::{self, PolicyRequest};
use crate::error::{Result, SessionError};
use crate::run::new_session_id;
use crate::sessions::{SessionDirectory, SessionRecord};
use palisade_changes::{ChangeSet, GuardJudge, Judge, Layers, NoJudge};
use palisade_launch::probe::{RealTree, limit_facts};
use palisade_policy::model::ProjectAccess;
use palisade_sys::OFlags;
use palisade_sys::beneath::open_beneath;
use rustix::fs::{CWD, Mode};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// In a session's directory.
const LAYERS: &str = "layers";
const UPPER: &str = "layers/1/upper";

/// What a session changed and nobody has applied or discarded.
#[derive(Debug)]
pub struct WaitingChanges {
    directory: SessionDirectory,
    session: SessionRecord,
    record: TransactionRecord,
    layers: Layers,
}

impl WaitingChanges {
    /// None if the session has no transaction, or its changes were applied or discarded.
    pub fn open(directory: SessionDirectory, session: SessionRecord) -> Result<Option<Self>> {
        let upper = match open_beneath(&directory.directory(), Path::new(UPPER), DIRECTORY) {
            Ok(upper) => upper,
            Err(error) if error.errno == palisade_sys::Errno::NOENT => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let record = match directory.read_json(RECORD) {
            Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            record => record?,
        };
        let project = open_project(&session.project)?;
        let layers = Layers::new(project, vec![upper]);
        Ok(Some(Self { directory, session, record, layers }))
    }

    pub fn directory(&self) -> &SessionDirectory {
        &self.directory
    }

    pub fn into_directory(self) -> SessionDirectory {
        self.directory
    }

    pub fn session(&self) -> &SessionRecord {
        &self.session
    }

    /// Files of the host that changed later are not those that the session saw.
    pub fn record(&self) -> &TransactionRecord {
        &self.record
    }

    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    pub fn scan(&self) -> Result<ChangeSet> {
        Ok(palisade_changes::scan(&self.layers)?)
    }

    /// Removes the changes. A session that still runs goes on with what it has open, so it must have ended.
    pub fn discard(self) -> Result<()> {
        let Self { directory, session, layers, .. } = self;
        if directory.is_alive() {
            return Err(SessionError::SessionRunning { session: session.id });
        }
        // It makes unreadable files readable until it is dropped.
        drop(layers);
        palisade_changes::discard(directory.directory(), LAYERS.as_ref())?;
        Ok(())
    }

    /// Judges what would come to the host as the broker judges what a run writes there.
    pub fn judge(&self, mut caller: Caller) -> Result<Box<dyn Judge>> {
        let project = self.session.project.clone();
        caller.facts.cwd.clone_from(&project);
        let loaded = config::load(&caller, &PolicyRequest::default())?;
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
            policy_files: &loaded.read_from,
            preset_paths: &[],
            layer: &caller.places.layer(&session),
            limits: &limit_facts,
        })?;
        Ok(match plan.sandbox.guard {
            Some(guard) => Box::new(GuardJudge::new(guard.matcher(), project, guard.hooks)),
            // The policy protects no names.
            None => Box::new(NoJudge),
        })
    }
}

/// The path had no links when the session began, and must have none now.
fn open_project(path: &Path) -> Result<OwnedFd> {
    let failed = |source: io::Error| SessionError::io("open", path, source);
    let root = rustix::fs::openat(CWD, "/", OFlags::PATH | DIRECTORY, Mode::empty())
        .map_err(|errno| failed(errno.into()))?;
    open_beneath(&root, path, DIRECTORY).map_err(|error| failed(error.errno.into()))
}
