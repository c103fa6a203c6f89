//! Messages between the supervisor, pid 1 and the process that becomes the command, each pair over a SEQPACKET
//! socket.
//!
//! Both ends are ours; the command never holds the socket. Each direction of each socket has its own type, so a
//! message cannot be mistaken for one of another conversation.

use crate::error::LaunchError;
use crate::network::Handed;
use crate::selfcheck::Observation;
use palisade_wire::{Raw, WireMessage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Room for an error with every text at its limit; see [`LaunchError`].
const MAX_BYTES: usize = 8 * 1024;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitCause {
    Code(i32),
    Signal(i32),
}

/// What the self-check found, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub took: Duration,
    pub observations: Vec<Observation>,
}

/// From pid 1 to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromInit {
    /// The sandbox's terminal exists; [`crate::Running::pty`] holds its other end from now on.
    Terminal,
    /// The private home directory exists, and this many inodes of its file system are in use;
    /// [`crate::Running::take_private_home`] returns it from now on.
    PrivateHome { inodes: u64 },
    /// A file system of the sandbox's own, which the gate's file system shows at this path. The keeper creates names
    /// there.
    Ground {
        #[serde(with = "Raw")]
        path: PathBuf,
    },
    /// A file system of the run's own that the command writes to. Handed over where files are limited and the gate's file
    /// system is the root: nobody outside its user namespace gets through that.
    OwnFiles {
        #[serde(with = "Raw")]
        path: PathBuf,
    },
    /// The sandbox's network exists; [`crate::Running::take_network`] returns the listeners to serve.
    Network(Handed),
    /// The sandbox's network leads nowhere; [`crate::Running::take_network_counters`] returns the counters of
    /// attempts.
    NetworkCounters,
    /// The self-check passed.
    Checked(Checked),
    /// The command's exec succeeded.
    Started,
    /// The launch failed; the command did not run.
    Failed(LaunchError),
    /// The command was stopped by this signal (job control).
    Stopped(i32),
    /// The command ended, and with it everything else in the sandbox.
    Exited(ExitCause),
}

/// From the supervisor to pid 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToInit {
    /// The id maps are written: go on.
    Mapped,
    /// The egress process is ready.
    Connected,
    /// Send this signal to the command's process group.
    Signal(i32),
    /// Continue the stopped command in the foreground.
    Resume,
    /// End all processes, and exit.
    End,
}

/// From the process that becomes the command to pid 1. A closed connection means that `exec` succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromCommand {
    /// The network namespace is made.
    NetworkReady,
    /// No descriptor of the host's tree is left except what was taken for the view.
    OldRootGone,
    /// To be passed on to the supervisor.
    PassOn(FromInit),
}

/// From pid 1 to the process that becomes the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCommand {
    /// The new root is `/`.
    RootChanged,
    /// Setup is complete: go on.
    Go,
}

impl WireMessage for FromInit {
    const MAX_BYTES: usize = MAX_BYTES;
}

impl WireMessage for ToInit {
    const MAX_BYTES: usize = MAX_BYTES;
}

impl WireMessage for FromCommand {
    const MAX_BYTES: usize = MAX_BYTES;
}

impl WireMessage for ToCommand {
    const MAX_BYTES: usize = MAX_BYTES;
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
