//! What the supervisor, our pid 1 and the command's process say to each other, over a SEQPACKET
//! socket between each two.
//!
//! Both ends are ours; the command never holds the socket. Each direction of each socket has a type of its own, so that
//! no message can be taken for one of another conversation.

use crate::error::LaunchError;
use crate::network::Handed;
use crate::selfcheck::Observation;
use palisade_wire::WireMessage;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Room for an error with every text at its limit; see [`LaunchError`].
const MAX_BYTES: usize = 8 * 1024;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitCause {
    Code(i32),
    Signal(i32),
}

/// What the self-check saw, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub took: Duration,
    pub observations: Vec<Observation>,
}

/// From pid 1 to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromInit {
    /// The terminal inside is made; [`crate::Running::pty`] has its other end from now on.
    Terminal,
    /// The private home directory is made, and so many inodes of its file system are in use;
    /// [`crate::Running::take_private_home`] has it from now on.
    PrivateHome { inodes: u64 },
    /// The network inside is made; [`crate::Running::take_network`] has what is to be served.
    Network(Handed),
    /// The network inside leads nowhere; [`crate::Running::take_network_counters`] has what counts the attempts.
    NetworkCounters,
    /// The self-check passed.
    Checked(Checked),
    /// The command's exec succeeded.
    Started,
    /// The launch failed; nothing of the command ran.
    Failed(LaunchError),
    /// The command was stopped by this signal (job control).
    Stopped(i32),
    /// The command ended, and everything else inside with it.
    Exited(ExitCause),
}

/// From the supervisor to pid 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToInit {
    /// The id maps are written: go on.
    Mapped,
    /// The way out stands.
    Connected,
    /// Send this signal to the command's process group.
    Signal(i32),
    /// Continue the stopped command in the foreground.
    Resume,
    /// End everybody, and leave.
    End,
}

/// From the process that becomes the command to pid 1. That its exec succeeded is said by the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromCommand {
    /// The network namespace is made.
    NetworkReady,
    /// Nothing of the host's tree is left but what was taken.
    OldRootGone,
    /// For the supervisor.
    PassOn(FromInit),
}

/// From pid 1 to the process that becomes the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCommand {
    /// The new root is `/`.
    RootChanged,
    /// Everything stands, go on.
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
#[path = "control_tests.rs"]
mod tests;
