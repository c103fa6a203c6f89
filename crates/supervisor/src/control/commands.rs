//! The commands of a sandbox that outlives them, and the client that starts them.
//!
//! Must never let a client change a wall or wait for one: a request is carried out at once or refused.

use super::connection::{Connection, Incoming};
use super::handshake::refused;
use super::interface::{
    CommandStatus, CommandStreams, Environment, Event, FromSupervisor, MAX_COMMANDS, RefusalKind,
    Request, Response, StartCommand, TerminalSize,
};
use palisade_launch::{
    Checked, CommandId, CommandStart, LaunchError, Spawner, SpawnerEvent, check_stream,
};
use palisade_plan::model::{Command, Plan};
use palisade_sys::{SysError, tty};
use palisade_wire::WireError;
use rustix::event::PollFlags;
use rustix::termios::Winsize;
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// The clock and signals must not wait for the end of a flood.
const REQUESTS_A_TURN: usize = 16;
/// A client that sends so many packets which are none of ours is none of ours.
const MAX_MALFORMED: usize = 16;

/// The commands, and the client that starts them.
#[derive(Debug)]
pub(crate) struct Commands {
    session: String,
    /// What each command has if its request says nothing else.
    defaults: Command,
    umask: u32,
    connection: Option<Connection>,
    running: BTreeMap<CommandId, Known>,
    next_id: u64,
    malformed: usize,
    /// What became of the spawner's set-up, until somebody takes it.
    launched: Option<Result<Checked, LaunchError>>,
}

#[derive(Debug)]
struct Known {
    pid: Option<u32>,
    /// The supervisor's own copy of the other end, to resize it by.
    terminal: Option<OwnedFd>,
}

/// What the supervisor has to do for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    GoOn,
    /// The client wants the sandbox to end, or is gone.
    End,
}

impl Commands {
    pub(crate) fn new(plan: &Plan, session: &str, control: OwnedFd) -> Result<Self, SysError> {
        Ok(Self {
            session: session.to_owned(),
            defaults: plan.command.clone(),
            umask: palisade_sys::proc::current_umask(),
            connection: Some(Connection::new(control)?),
            running: BTreeMap::new(),
            next_id: 1,
            malformed: 0,
            launched: None,
        })
    }

    /// What became of the spawner's set-up, once.
    pub(crate) fn take_launched(&mut self) -> Option<Result<Checked, LaunchError>> {
        self.launched.take()
    }

    /// The client's socket, and what to wait for there.
    pub(crate) fn watched(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.connection.as_ref().map(|connection| (connection.socket(), connection.interest()))
    }

    /// Every command that was started and has not ended.
    pub(crate) fn running(&self) -> impl Iterator<Item = CommandId> + '_ {
        self.running.keys().copied()
    }

    /// From now on commands can be started.
    pub(crate) fn announce(&mut self) -> Outcome {
        let session = self.session.clone();
        self.respond(Response::Created { session }, None)
    }

    /// What the spawner says.
    pub(crate) fn hear_spawner(&mut self, event: SpawnerEvent) -> Outcome {
        let event = match event {
            SpawnerEvent::Ready(checked) => {
                self.launched = Some(Ok(checked));
                return Outcome::GoOn;
            }
            SpawnerEvent::Failed(error) => {
                self.launched = Some(Err(error));
                return Outcome::GoOn;
            }
            SpawnerEvent::Started { command, pid } => {
                let Some(known) = self.running.get_mut(&command) else { return Outcome::GoOn };
                known.pid = Some(pid);
                Event::CommandStarted { command, pid }
            }
            SpawnerEvent::NotStarted { command, error } => {
                self.running.remove(&command);
                let (exit_code, message) = (error.exit_code(), error.to_string());
                Event::CommandFailed { command, exit_code, message }
            }
            SpawnerEvent::Exited { command, cause } => {
                // That of a process which could not become its command was told.
                if self.running.remove(&command).is_none() {
                    return Outcome::GoOn;
                }
                Event::CommandExited { command, cause }
            }
        };
        self.send(FromSupervisor::Event(event), None)
    }

    /// What the client says.
    pub(crate) fn hear_client(&mut self, spawner: &Spawner) -> Outcome {
        for _ in 0..REQUESTS_A_TURN {
            let Some(connection) = &mut self.connection else { return Outcome::GoOn };
            if connection.flush().is_err() {
                return self.hang_up();
            }
            let outcome = match connection.receive() {
                Incoming::Nothing => return Outcome::GoOn,
                Incoming::Closed => self.hang_up(),
                Incoming::Malformed(_) if self.malformed >= MAX_MALFORMED => self.hang_up(),
                Incoming::Malformed(why) => {
                    self.malformed += 1;
                    self.respond(refused(RefusalKind::Malformed, why), None)
                }
                Incoming::Request(request, descriptors) => {
                    self.carry_out(spawner, request, &descriptors)
                }
            };
            if outcome == Outcome::End {
                return outcome;
            }
        }
        Outcome::GoOn
    }

    fn carry_out(
        &mut self,
        spawner: &Spawner,
        request: Request,
        descriptors: &[OwnedFd],
    ) -> Outcome {
        let expected = match &request {
            Request::StartCommand(start) if start.streams == CommandStreams::Descriptors => 3,
            _ => 0,
        };
        if descriptors.len() != expected {
            let why = format!("{} descriptors came with it, not {expected}", descriptors.len());
            return self.respond(refused(RefusalKind::Malformed, why), None);
        }
        match request {
            Request::Hello { .. } | Request::Create(_) => {
                let why = "the sandbox is there already".to_owned();
                self.respond(refused(RefusalKind::OutOfOrder, why), None)
            }
            Request::StartCommand(start) => {
                let (response, terminal) = self.start(spawner, start, descriptors);
                self.respond(response, terminal)
            }
            Request::Signal { command, signal } => {
                let response = match self.running.contains_key(&command) {
                    false => unknown(command),
                    true => match spawner.signal(command, signal) {
                        Ok(()) => Response::Done,
                        Err(error) => refused(RefusalKind::Failed, error.to_string()),
                    },
                };
                self.respond(response, None)
            }
            Request::ResizeTerminal { command, size } => {
                let response = self.resize(command, size);
                self.respond(response, None)
            }
            Request::Status => {
                let known = self.running.iter();
                let commands = known
                    .map(|(command, known)| CommandStatus { command: *command, pid: known.pid })
                    .collect();
                self.respond(Response::Status { commands }, None)
            }
            Request::End => {
                // If it cannot be sent, the client is gone, and that means the same.
                let _ = self.respond(Response::Done, None);
                Outcome::End
            }
        }
    }

    fn start(
        &mut self,
        spawner: &Spawner,
        start: StartCommand,
        descriptors: &[OwnedFd],
    ) -> (Response, Option<OwnedFd>) {
        let failed = |message: String| (refused(RefusalKind::Failed, message), None);
        if self.running.len() >= MAX_COMMANDS {
            let why = format!("{MAX_COMMANDS} commands are running");
            return (refused(RefusalKind::TooManyCommands, why), None);
        }
        let unsafe_stream =
            descriptors.iter().find_map(|stream| check_stream(stream.as_fd()).err());
        if let Some(error) = unsafe_stream {
            return (refused(RefusalKind::Malformed, error.to_string()), None);
        }
        let terminal = match start.streams {
            CommandStreams::Descriptors => None,
            CommandStreams::Terminal(size) => match spawner.open_terminal(winsize(size)) {
                Ok(terminal) => Some(terminal),
                Err(error) => return failed(error.to_string()),
            },
        };
        let id = CommandId(self.next_id);
        let request = self.request(id, start, terminal.is_some());
        let streams = match (&terminal, descriptors) {
            (Some((_, slave)), _) => [slave.as_fd(); 3],
            (None, [stdin, stdout, stderr]) => [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            (None, _) => return failed("its streams are missing".to_owned()),
        };
        if let Err(error) = spawner.start_command(request, streams) {
            return failed(error.to_string());
        }
        self.next_id += 1;
        let master = terminal.map(|(master, _)| master);
        // Without a copy of our own it cannot be resized by us; the client still can.
        let own = master.as_ref().and_then(|master| master.try_clone().ok());
        self.running.insert(id, Known { pid: None, terminal: own });
        (Response::Starting { command: id }, master)
    }

    fn request(&self, id: CommandId, start: StartCommand, has_terminal: bool) -> CommandStart {
        let StartCommand { argv, environment, cwd, umask, rlimits, .. } = start;
        let env = match environment {
            Environment::Exactly(env) => env,
            Environment::Extended(more) => {
                let own = self.defaults.env.iter();
                let own =
                    own.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
                let mut all: Vec<_> =
                    own.filter(|(name, _)| more.iter().all(|(other, _)| other != name)).collect();
                all.extend(more);
                all
            }
        };
        let cwd = cwd.unwrap_or_else(|| self.defaults.cwd.clone());
        let umask = umask.unwrap_or(self.umask);
        CommandStart { id, argv, env, cwd, umask, rlimits, has_terminal }
    }

    fn resize(&self, command: CommandId, size: TerminalSize) -> Response {
        let Some(known) = self.running.get(&command) else { return unknown(command) };
        let Some(terminal) = &known.terminal else {
            return refused(RefusalKind::Failed, "the command has no terminal".to_owned());
        };
        match tty::set_window_size(terminal, winsize(size)) {
            Ok(()) => Response::Done,
            Err(error) => refused(RefusalKind::Failed, error.to_string()),
        }
    }

    fn respond(&mut self, response: Response, descriptor: Option<OwnedFd>) -> Outcome {
        self.send(FromSupervisor::Response(response), descriptor)
    }

    fn send(&mut self, message: FromSupervisor, descriptor: Option<OwnedFd>) -> Outcome {
        let Some(connection) = &mut self.connection else { return Outcome::GoOn };
        let sent = match connection.send(message, descriptor) {
            // It never is: texts are truncated, and lists are limited.
            Err(WireError::TooLong { .. }) => Ok(()),
            sent => sent,
        };
        if sent.is_ok() { Outcome::GoOn } else { self.hang_up() }
    }

    /// The sandbox ends with the client that made it.
    fn hang_up(&mut self) -> Outcome {
        self.connection = None;
        Outcome::End
    }
}

fn unknown(command: CommandId) -> Response {
    refused(RefusalKind::UnknownCommand, format!("command {} is not running", command.0))
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}
