//! Messages between the supervisor and the spawner, over a SEQPACKET socket that no command ever holds.

use crate::error::LaunchError;
use crate::message::{Checked, ExitCause};
use palisade_plan::model::Resource;
use palisade_wire::{Raw, WireMessage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The number of a command in its sandbox, given by the supervisor and never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId(pub u64);

/// What a command is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandKind {
    /// The program that its arguments name.
    #[default]
    Program,
    /// Our own code, which does for a client outside what programs do with files ([`palisade_files`]). The client is at the other
    /// end of its standard input, and its arguments are its name in records.
    FileServer,
}

/// A command to start. Its three streams come as descriptors, or its terminal as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStart {
    pub id: CommandId,
    pub kind: CommandKind,
    pub argv: Vec<Vec<u8>>,
    /// Names and values.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    #[serde(with = "Raw")]
    pub cwd: PathBuf,
    pub umask: u32,
    /// Below those of the sandbox; what is above one of them is an error of the start.
    pub rlimits: Vec<(Resource, u64)>,
    /// Whether its standard input is a terminal for it to control.
    pub has_terminal: bool,
}

impl CommandStart {
    /// Overwrites what may be a secret of this command.
    pub(super) fn wipe(&mut self) {
        let values = self.env.iter_mut().map(|(_, value)| value);
        for bytes in self.argv.iter_mut().chain(values) {
            bytes.fill(0);
        }
    }
}

/// From the supervisor to the spawner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SpawnerRequest {
    Start(CommandStart),
    /// To the process group that the command leads; an empty group is no error.
    Signal {
        command: CommandId,
        signal: i32,
    },
    /// The same, to every command.
    SignalAll {
        signal: i32,
    },
}

/// From the spawner to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnerEvent {
    /// All restrictions are in force and were checked from inside. Comes with the user and mount namespaces,
    /// and the directory of terminals where the view has one.
    Ready(Checked),
    /// The spawner cannot start.
    Failed(LaunchError),
    /// Its exec succeeded.
    Started {
        command: CommandId,
        pid: u32,
    },
    /// The command did not run.
    NotStarted {
        command: CommandId,
        error: LaunchError,
    },
    Exited {
        command: CommandId,
        cause: ExitCause,
    },
}

impl WireMessage for SpawnerRequest {
    /// What the default send buffer of a socket has room for (`net.core.wmem_default`).
    const MAX_BYTES: usize = 160 * 1024;
}

impl WireMessage for SpawnerEvent {
    const MAX_BYTES: usize = 16 * 1024;
}

/// From a process that becomes a command to the spawner. Its exec closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StartReport {
    /// Its exec is next. If the connection closes without this, the process has ended before.
    Executing,
    /// It could not become the command.
    Failed(LaunchError),
}

impl WireMessage for StartReport {
    const MAX_BYTES: usize = 16 * 1024;
}
