//! Pid 1 of a sandbox that outlives its commands: it reaps orphans, and ends everything when the supervisor
//! says so or is gone. Commands are children of the spawner, not of this process.
//!
//! It runs under the same filter as the other pid 1 (`init.rs`).

use crate::error::LaunchError;
use crate::init::{Household, tell};
use crate::message::{ExitCause, FromCommand, FromInit, ToInit};
use palisade_sys::proc::{self, PollFd, PollFlags, WaitFlags};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(crate) struct IdleInit {
    /// From the process that made the namespaces, until it ends.
    report: Option<OwnedFd>,
    signals: OwnedFd,
}

impl IdleInit {
    pub(crate) fn new(report: OwnedFd, signals: OwnedFd) -> Self {
        Self { report: Some(report), signals }
    }

    /// Until the supervisor says so, or is gone.
    pub(crate) fn run(mut self, init_socket: &OwnedFd) -> ! {
        loop {
            match self.turn(init_socket) {
                Ok(true) => {}
                ended => {
                    Household::Namespace.end();
                    if ended.is_ok() {
                        tell(init_socket, &FromInit::Exited(ExitCause::Code(0)));
                    }
                    proc::exit_now(0)
                }
            }
        }
    }

    /// Whether to go on. An error if the supervisor is gone or sends something that cannot be decoded.
    fn turn(&mut self, init_socket: &OwnedFd) -> Result<bool, WireError> {
        let mut watched = vec![
            PollFd::new(init_socket, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        watched.extend(self.report.as_ref().map(|report| PollFd::new(report, PollFlags::IN)));
        proc::poll_for_work(&mut watched, None).map_err(WireError::System)?;
        let is_told = !watched[0].revents().is_empty();
        let is_reported = watched.get(2).is_some_and(|report| !report.revents().is_empty());
        while let Ok(Some(_)) = proc::read_signalfd(&self.signals) {}
        while let Ok(Some(_)) = proc::wait_any(WaitFlags::NOHANG) {}
        if is_reported {
            self.hear_maker(init_socket);
        }
        if !is_told {
            return Ok(true);
        }
        let Received { message, .. } =
            palisade_wire::receive::<ToInit>(init_socket, &mut [0; ToInit::MAX_BYTES])?;
        // Signals are for commands, which are not our children.
        Ok(message != ToInit::End)
    }

    /// It exits silently once the spawner has entered through it.
    fn hear_maker(&mut self, init_socket: &OwnedFd) {
        let Some(report) = self.report.take() else { return };
        let mut buffer = [0; FromCommand::MAX_BYTES];
        let told = palisade_wire::receive(&report, &mut buffer).map(|received| received.message);
        let failure = match told {
            Err(WireError::Closed) => return,
            Ok(FromCommand::PassOn(message @ FromInit::Failed(_))) => message,
            Ok(_) => FromInit::Failed(LaunchError::new(
                "listening to the process that sets the sandbox up",
                "a step was reported twice",
            )),
            Err(error) => FromInit::Failed(LaunchError::new(
                "listening to the process that sets the sandbox up",
                error.to_string(),
            )),
        };
        tell(init_socket, &failure);
    }
}
