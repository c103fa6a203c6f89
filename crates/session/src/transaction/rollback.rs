//! Brings a kept state of a transaction back (LIFE-5).
//!
//! In a session that lives, by ordinary calls in the project as its commands see it, while none runs: a mark says which state
//! is meant until that is done. In one that is over, the changes are replaced by a copy of the state at once. An interrupted
//! rollback is finished by whoever uses the changes next.

use super::checkpoints::CheckpointReason;
use super::interrupted::{self, Mark};
use super::state_number::StateNumber;
use super::waiting::WaitingChanges;
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use crate::sessions::SessionDirectory;
use palisade_changes::Restoration;
use palisade_record::EventKind;
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::client::Client;
use palisade_supervisor::control::interface::{Request, Response, VERSION};
use palisade_sys::proc::sig::SIGKILL;
use palisade_sys::{Errno, fault};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How long a supervisor may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long killed commands may take to end.
const KILLED: Duration = Duration::from_secs(10);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(5);

/// What happens to commands that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningCommands {
    /// Nothing is brought back then.
    Refuse,
    Kill,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// Where the state before it was kept.
    pub kept_as: u32,
}

impl WaitingChanges {
    /// Brings a state back; 0 is the project without changes. The present one is kept first.
    pub fn roll_back(
        &self,
        places: &AppDirs,
        to: u32,
        running: RunningCommands,
    ) -> Result<RolledBack> {
        let _lock = self.lock_opened()?;
        // What an interrupted apply has moved must be back before the changes are replaced.
        self.recover()?;
        // It must be there before anything happens.
        drop(self.open_state(StateNumber::Checkpoint(to))?);
        let held = match self.directory().is_alive() {
            true => Some(self.hold_project(running)?),
            false => None,
        };
        fault::point("project held", "");
        let message = format!("before the rollback to {to}");
        let reason = CheckpointReason::BeforeRollback;
        let kept = self.checkpoint_locked(places, Some(&message), reason, Some(to))?;
        match &held {
            Some((_client, tree)) => self.restore(to, tree)?,
            None => {
                Mark { checkpoint: to, is_under_way: false }.write(self.directory())?;
                interrupted::finish_ended_locked(self.directory())?;
            }
        }
        let event = palisade_record::RolledBack { checkpoint: to, kept_as: kept.number };
        let about = (self.session().id.as_str(), self.session().state);
        Journal::add_later(places, about, EventKind::RolledBack(event))?;
        Ok(RolledBack { kept_as: kept.number })
    }

    /// Finishes a rollback of a living session that was interrupted. Says which state came back.
    pub fn finish_rollback(&self) -> Result<Option<u32>> {
        if !interrupted::is_interrupted(self.directory()) {
            return Ok(None);
        }
        let _lock = self.lock()?;
        // Whoever held the lock may have done it.
        let Some(Mark { checkpoint, .. }) = interrupted::read_mark(self.directory())? else {
            return Ok(None);
        };
        match self.directory().is_alive() {
            true => {
                let (_client, tree) = self.hold_project(RunningCommands::Refuse)?;
                self.restore(checkpoint, &tree)?;
            }
            false => interrupted::finish_ended_locked(self.directory())?,
        }
        Ok(Some(checkpoint))
    }

    fn restore(&self, to: u32, tree: &OwnedFd) -> Result<()> {
        let layers = self.states(StateNumber::Now, StateNumber::Checkpoint(to))?;
        let restoration = Restoration::plan(&layers)?;
        Mark { checkpoint: to, is_under_way: true }.write(self.directory())?;
        restoration.perform(tree.as_fd())?;
        fault::point("restored", "");
        interrupted::remove_mark(self.directory())
    }

    /// The project as commands see it. None is started while the connection exists.
    fn hold_project(&self, running: RunningCommands) -> Result<(Client, OwnedFd)> {
        let mut client = self.connect()?;
        let end = Instant::now() + KILLED;
        loop {
            let Response::Status { commands } = ask(&mut client, &Request::Status)?.0 else {
                return Err(self.is_running());
            };
            if commands.is_empty() {
                break;
            }
            if running == RunningCommands::Refuse || Instant::now() > end {
                let session = self.session().label().to_owned();
                return Err(SessionError::CommandsRunning { session, commands: commands.len() });
            }
            for known in commands {
                // One that has ended meanwhile is refused.
                let kill = Request::Signal { command: known.command, signal: SIGKILL };
                let _ = ask(&mut client, &kill);
            }
            std::thread::sleep(LOOK);
        }
        match ask(&mut client, &Request::HoldProject)? {
            (Response::ProjectHeld, Some(tree)) => Ok((client, tree)),
            _ => Err(self.is_running()),
        }
    }

    pub(super) fn connect(&self) -> Result<Client> {
        let socket = self.directory().connect().map_err(|error| match error {
            // A run of one command takes no requests.
            SessionError::SessionNotRunning { .. } => self.is_running(),
            error => error,
        })?;
        let failed =
            |errno: Errno| SessionError::io("connect to", self.directory().path(), errno.into());
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER)).map_err(failed)?;
        let mut client = Client::new(socket);
        ask(&mut client, &Request::Hello { version: VERSION })?;
        Ok(client)
    }

    fn is_running(&self) -> SessionError {
        SessionError::SessionRunning { session: self.session().label().to_owned() }
    }
}

/// To be called before a command starts in a session. Says which state came back, if a rollback had been interrupted. Most
/// sessions need nothing.
pub fn before_command(directory: &SessionDirectory) -> Result<Option<u32>> {
    if !interrupted::is_interrupted(directory) {
        return Ok(None);
    }
    match WaitingChanges::open(directory.try_clone()?, directory.record()?)? {
        Some(waiting) => waiting.finish_rollback(),
        None => Ok(None),
    }
}

pub(super) fn ask(client: &mut Client, request: &Request) -> Result<(Response, Option<OwnedFd>)> {
    match client.ask(request, &[]).map_err(SupervisorError::from)? {
        (Response::Refused(refusal), _) => {
            Err(SessionError::SessionRefused { message: refusal.message })
        }
        answer => Ok(answer),
    }
}
