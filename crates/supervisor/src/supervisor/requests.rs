//! Carries out requests, both those of this process and those of a client at the socket.
//!
//! Must never let a client change a wall or wait for one: a request is carried out at once or refused. How a sandbox is
//! ended, step by step, is in `end.rs`.

use crate::control::handshake::refused;
use crate::control::interface::{
    CommandStatus, CommandStreams, MAX_COMMANDS, RefusalKind, Request, Response, SIGNALS,
    StartCommand, TerminalSize,
};
use crate::error::Result;
use crate::supervisor::{Phase, Supervisor};
use palisade_launch::CommandId;
use palisade_sys::tty;
use palisade_wire::WireError;
use rustix::process::Signal;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// A response, and the descriptor that goes with it.
#[derive(Debug)]
pub struct Reply {
    pub response: Response,
    pub descriptor: Option<OwnedFd>,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self { response, descriptor: None }
    }
}

impl Supervisor<'_> {
    /// Carries out one request. An error is one of the sandbox, which cannot go on.
    pub fn handle(&mut self, request: Request, descriptors: Vec<OwnedFd>) -> Result<Reply> {
        if let Some(why) = malformed(&request, descriptors.len()) {
            return Ok(refused(RefusalKind::Malformed, why).into());
        }
        Ok(match request {
            Request::Hello { .. } | Request::Create(_) => {
                refused(RefusalKind::OutOfOrder, "the sandbox is there already".to_owned()).into()
            }
            Request::StartCommand(start) => self.start_command(start, descriptors),
            Request::Signal { command, .. } | Request::ResizeTerminal { command, .. }
                if !self.control.commands.contains(command) =>
            {
                let why = format!("command {} is not running", command.0);
                refused(RefusalKind::UnknownCommand, why).into()
            }
            Request::Signal { command, signal } => self.signal_command(command, signal)?.into(),
            Request::ResizeTerminal { command, size } => self.resize_terminal(command, size).into(),
            Request::Status => Response::Status { commands: self.status() }.into(),
            Request::End { signal, grace } => {
                self.end(signal, grace)?;
                Response::Done.into()
            }
        })
    }

    fn start_command(&mut self, start: StartCommand, descriptors: Vec<OwnedFd>) -> Reply {
        let refuse = |kind, why: String| Reply::from(refused(kind, why));
        let Some(spawner) = self.running.spawner() else {
            let why = "the sandbox ends with its command".to_owned();
            return refuse(RefusalKind::OutOfOrder, why);
        };
        if self.phase != Phase::Running {
            return refuse(RefusalKind::OutOfOrder, "the sandbox is ending".to_owned());
        }
        let commands = &mut self.control.commands;
        if commands.len() >= MAX_COMMANDS {
            let why = format!("{MAX_COMMANDS} commands are running");
            return refuse(RefusalKind::TooManyCommands, why);
        }
        let mut own = None;
        let (streams, master) = match start.streams {
            CommandStreams::Descriptors => (descriptors, None),
            CommandStreams::Terminal(size) => match spawner.open_terminal(size.into()) {
                Ok((master, slave)) => {
                    // Without a copy of our own it cannot be resized by us; the client still can.
                    own = slave.try_clone().ok();
                    (vec![slave], Some(master))
                }
                Err(error) => return refuse(RefusalKind::Failed, error.to_string()),
            },
        };
        let defaults = &self.control.defaults;
        let request = defaults.complete(commands.next_id(), start, master.is_some());
        match spawner.start_command(request, streams) {
            Ok(()) => {}
            // The request itself is within its limit; the sandbox's own variables come on top.
            Err(WireError::TooLong { limit }) => {
                let why = format!(
                    "arguments and environment, with the variables of the sandbox, exceed {limit} bytes"
                );
                return refuse(RefusalKind::Malformed, why);
            }
            Err(error) => return refuse(RefusalKind::Failed, error.to_string()),
        }
        let command = commands.add(own);
        Reply { response: Response::Starting { command }, descriptor: master }
    }

    fn signal_command(&mut self, command: CommandId, signal: i32) -> Result<Response> {
        // Before its exec our own code would get it.
        if !self.is_started() {
            self.control.held_back.push(Request::Signal { command, signal });
            return Ok(Response::Done);
        }
        if let Some(spawner) = self.running.spawner() {
            return Ok(match spawner.signal(command, signal) {
                Ok(()) => Response::Done,
                Err(error) => refused(RefusalKind::Failed, error.to_string()),
            });
        }
        if signal == Signal::TSTP.as_raw() {
            self.own_client.stop_asked = Some(Instant::now());
        }
        match signal == Signal::CONT.as_raw() {
            true => self.running.resume()?,
            false => self.running.signal(signal)?,
        }
        Ok(Response::Done)
    }

    fn resize_terminal(&self, command: CommandId, size: TerminalSize) -> Response {
        // That of the one command is relayed by us.
        let Some(terminal) = self.control.commands.terminal(command).or(self.running.pty()) else {
            return refused(RefusalKind::Failed, "the command has no terminal".to_owned());
        };
        match tty::set_window_size(terminal, size.into()) {
            Ok(()) => Response::Done,
            Err(error) => refused(RefusalKind::Failed, error.to_string()),
        }
    }

    fn status(&self) -> Vec<CommandStatus> {
        let mut commands = self.control.commands.status();
        if self.running.spawner().is_none() && self.is_started() {
            let pid = self.running.command().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
            commands.iter_mut().for_each(|known| known.pid = pid);
        }
        commands
    }
}

/// Why a request is none, whatever the sandbox does.
fn malformed(request: &Request, descriptors: usize) -> Option<String> {
    let expected = request.descriptors();
    if descriptors != expected {
        return Some(format!("{descriptors} descriptors came with it, not {expected}"));
    }
    let signal = request.signal().filter(|signal| !SIGNALS.contains(signal))?;
    Some(format!("{signal} is no signal"))
}

#[cfg(test)]
mod tests {
    use super::{CommandId, Request, malformed};
    use crate::control::interface::Grace;

    #[test]
    fn a_number_that_is_no_signal_is_refused() {
        for signal in [i32::MIN, -1, 0, 1, 9, 64, 65, i32::MAX] {
            let is_one = (1..=64).contains(&signal);
            for request in [
                Request::Signal { command: CommandId(1), signal },
                Request::End { signal, grace: Grace::OfSandbox },
            ] {
                assert_eq!(malformed(&request, 0).is_none(), is_one, "{request:?}");
                assert!(malformed(&request, 1).is_some(), "it has no descriptors");
            }
        }
    }
}
