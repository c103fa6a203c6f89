//! One sandbox as a process of its own, made and driven by a client over a control socket, so that a threaded program
//! never has to fork and configure.
//!
//! The first two requests are answered here, everything after them by the supervisor's event loop. What a client gets
//! last, whatever went wrong, is [`Event::Ended`].

use crate::caller::Caller;
use crate::error::SessionError;
use crate::run::{Finished, RunRequest, run_until};
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::connection::{Connection, is_seqpacket};
use palisade_supervisor::control::handshake;
use palisade_supervisor::control::interface::{Event, FromSupervisor};
use palisade_sys::proc::take_inherited;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

pub use palisade_supervisor::control::{client, interface};

/// The supervisor's end of a control socket.
#[derive(Debug)]
pub struct ControlSocket(Connection);

impl ControlSocket {
    /// Takes the descriptor with this number, before anything else was opened. Standard input is one too: the easiest
    /// to hand to a new process.
    pub fn take(number: RawFd) -> Result<Self, SessionError> {
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
            true => Ok(Self(Connection::new(socket))),
            false => Err(SessionError::NotAControlSocket { number }),
        }
    }

    /// Waits for a client that says what sandbox it wants: options as `sandbox run` takes them.
    pub fn accept(&mut self) -> Result<Vec<OsString>, SessionError> {
        let create = handshake::accept(&mut self.0).map_err(SupervisorError::from)?;
        Ok(create.options.into_iter().map(OsString::from_vec).collect())
    }

    /// Makes the sandbox and serves the client until one of the two ends. The conditions of [`crate::run::run`] hold.
    pub fn supervise(
        &mut self,
        caller: Caller,
        request: &RunRequest,
        tell: &mut dyn FnMut(&str),
    ) -> Finished {
        run_until(caller, request, Some(&mut self.0), tell)
    }

    /// The last that a client is told, after all that it has not read yet. Nobody is left to tell if that fails.
    pub fn tell_end(&mut self, exit_code: i32, error: Option<String>) {
        let ended = FromSupervisor::Event(Event::Ended { exit_code, error });
        let _ = self.0.finish(&ended);
    }
}
