//! What a sandbox and its commands, files and questions share: where it is, and what is known of it.

use crate::change_set::Changes;
use crate::error::{Error, Result};
use crate::program::{Answer, Call, Program, WORK_PATIENCE};
use crate::usage::Meters;
use crate::violations::AuditTrail;
use palisade_session::AppDirs;
use palisade_session::sessions::{self, SessionDirectory, SessionRecord};
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What commands of the sandbox share with it.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) program: Program,
    pub(crate) places: AppDirs,
    pub(crate) directory: SessionDirectory,
    pub(crate) record: SessionRecord,
    /// What it was made with here: a fork gets it anew.
    pub(crate) environment: Vec<(OsString, OsString)>,
    meters: Mutex<Meters>,
    trail: Mutex<AuditTrail>,
}

impl Core {
    /// The sandbox that is meant.
    pub(crate) fn find(
        program: Program,
        named: &str,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Self> {
        let places = AppDirs::here()?;
        let (directory, record) = sessions::find(&places, named)?;
        let trail = Mutex::new(AuditTrail::open(&places, &record.id));
        let meters = Mutex::default();
        Ok(Self { program, places, directory, record, environment, meters, trail })
    }

    /// What it changed so far.
    pub(crate) fn changes(&self) -> Result<Changes> {
        self.look(Call::new(["diff", "--json", self.directory.id()]))?.json()
    }

    /// What the program prints about its project.
    pub(crate) fn look(&self, call: Call) -> Result<Answer> {
        self.program.done(&call.within(WORK_PATIENCE)).map_err(Error::into_conflict)
    }

    pub(crate) fn meters(&self) -> MutexGuard<'_, Meters> {
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trail(&self) -> MutexGuard<'_, AuditTrail> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
