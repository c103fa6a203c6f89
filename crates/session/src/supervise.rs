//! A sandbox as a separate process, created and driven by a client over a control socket, so that a threaded program
//! never has to fork and configure.
//!
//! The first two requests are answered here, all later ones by the supervisor's event loop. The last message to a
//! client, whatever went wrong, must always be [`Event::Ended`].

use crate::caller::Caller;
use crate::error::{Result, SessionError};
use crate::run::{Controller, Finished, RunRequest, run_until};
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::connection::{Connection, is_seqpacket};
use palisade_supervisor::control::endpoint::Endpoint;
use palisade_supervisor::control::handshake;
use palisade_supervisor::control::interface::{CreateSandbox, Event, FromSupervisor};
use palisade_sys::proc::take_inherited;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsFd as _, RawFd};
use std::path::Path;

pub use palisade_supervisor::control::{client, interface};

/// The supervisor's end of a control socket.
#[derive(Debug)]
pub struct ControlSocket(Endpoint);

impl ControlSocket {
    /// Takes the descriptor with this number; must be called before anything else is opened. It may be standard input,
    /// which is the easiest to pass to a new process.
    pub fn take(number: RawFd) -> Result<Self> {
        let socket = match number {
            0 => {
                let failed = |source| SessionError::io("take", Path::new("standard input"), source);
                let socket = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
                let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty());
                null.and_then(rustix::stdio::dup2_stdin).map_err(|errno| failed(errno.into()))?;
                socket
            }
            number => take_inherited(number)?,
        };
        match is_seqpacket(&socket)? {
            true => Ok(Self(Endpoint::of_owner(Connection::new(socket)))),
            false => Err(SessionError::NotAControlSocket { number }),
        }
    }

    /// Waits for a client and returns the sandbox it requests.
    pub fn accept(&mut self) -> Result<CreateSandbox> {
        let connection = self.0.owner_connection().ok_or(SupervisorError::ClientGone)?;
        Ok(handshake::accept(connection).map_err(SupervisorError::from)?)
    }

    /// Creates the sandbox and serves the client until either ends. The conditions of [`crate::run::run`] apply.
    pub fn supervise(
        &mut self,
        caller: Caller,
        request: &RunRequest,
        tell: &mut dyn FnMut(&str),
    ) -> Finished {
        run_until(caller, request, Some(Controller::Client(&mut self.0)), tell)
    }

    /// The last message to a client, after all that it has not read yet.
    pub fn tell_end(&mut self, exit_code: i32, error: Option<String>) {
        let ended = FromSupervisor::Event(Event::Ended { exit_code, error });
        self.0.finish(&ended);
    }
}
