//! The control interface of a sandbox that outlives its commands: every request, response and event, as one enum each.
//!
//! One packet of a SEQPACKET socket is one message ([`palisade_wire`]). Each request gets one response, in the order of the
//! requests; events come between them. Who holds the socket decides what runs in the sandbox and how it ends, and never
//! what it may do: no request changes a wall.

use palisade_launch::{CommandId, ExitCause, LimitedResource};
use palisade_wire::{Raw, Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Both sides have to speak the same one.
pub const VERSION: u32 = 1;

/// Running at once in one sandbox.
pub const MAX_COMMANDS: usize = 256;

const MAX_TEXT: usize = 4 * 1024;

/// From a client to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The first request. Answered with [`Response::Hello`].
    Hello {
        version: u32,
    },
    /// The second request: makes the sandbox. Answered with [`Response::Created`] as soon as commands can be started.
    Create(CreateSandbox),
    /// Comes with three descriptors where `streams` says so. Answered with [`Response::Starting`];
    /// [`Event::CommandStarted`] or [`Event::CommandFailed`] follows.
    StartCommand(StartCommand),
    /// Sends a signal to the process group of a command.
    Signal {
        command: CommandId,
        signal: i32,
    },
    ResizeTerminal {
        command: CommandId,
        size: TerminalSize,
    },
    /// Answered with [`Response::Status`].
    Status,
    /// Ends everything inside. [`Event::Ended`] is the last message.
    End,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSandbox {
    /// Options as `sandbox run` takes them, without a command.
    pub options: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCommand {
    /// The program, looked up in `PATH` inside, and its arguments.
    pub argv: Vec<Vec<u8>>,
    pub environment: Environment,
    /// None: that of the sandbox.
    #[serde(with = "MaybePath")]
    pub cwd: Option<PathBuf>,
    /// None: that of the supervisor.
    pub umask: Option<u32>,
    /// Lower than those of the sandbox.
    pub rlimits: Vec<(LimitedResource, u64)>,
    pub streams: CommandStreams,
}

/// Names and values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Environment {
    /// The sandbox's own, with these set.
    Extended(Vec<(Vec<u8>, Vec<u8>)>),
    /// Nothing but these.
    Exactly(Vec<(Vec<u8>, Vec<u8>)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStreams {
    /// Standard input, output and error come with the request. None may be a terminal or a directory.
    Descriptors,
    /// One terminal inside for all three. Its other end comes with [`Response::Starting`].
    Terminal(TerminalSize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// From the supervisor to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromSupervisor {
    Response(Response),
    Event(Event),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    Hello { version: u32 },
    Created { session: String },
    Starting { command: CommandId },
    Done,
    Status { commands: Vec<CommandStatus> },
    Refused(Refusal),
}

/// Why a request was not carried out. Nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: RefusalKind,
    #[serde(with = "Truncated::<MAX_TEXT>")]
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// The two sides speak different versions.
    Version,
    /// It cannot be decoded, exceeds a limit, or has other descriptors than it says.
    Malformed,
    /// It is none that can come now.
    OutOfOrder,
    /// No command of this number is running.
    UnknownCommand,
    TooManyCommands,
    /// What it asks for could not be done.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStatus {
    pub command: CommandId,
    /// On the host; none before its exec.
    pub pid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Its exec succeeded. The pid is the host's.
    CommandStarted {
        command: CommandId,
        pid: u32,
    },
    /// Nothing of it ran. The code is what a shell would end with: 126, 127, or 125 for a failure of ours.
    CommandFailed {
        command: CommandId,
        exit_code: i32,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        message: String,
    },
    CommandExited {
        command: CommandId,
        cause: ExitCause,
    },
    /// The sandbox is gone, or never came about. Commands that were running ended with it, and are not told one by one.
    Ended {
        exit_code: i32,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        error: Option<String>,
    },
}

impl WireMessage for Request {
    const MAX_BYTES: usize = 128 * 1024;
}

impl WireMessage for FromSupervisor {
    const MAX_BYTES: usize = 16 * 1024;
}

/// A path that may be missing, byte by byte.
struct MaybePath;

impl MaybePath {
    fn serialize<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        let paths: Vec<PathBuf> = path.iter().cloned().collect();
        Raw::serialize(&paths, to)
    }

    fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let paths: Vec<PathBuf> = Raw::deserialize(from)?;
        Ok(paths.into_iter().next())
    }
}

#[cfg(test)]
#[path = "interface_tests.rs"]
mod tests;
