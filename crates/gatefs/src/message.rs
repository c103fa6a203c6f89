//! Messages of the file system's process: to the supervisor, and with the process that builds the view.
//!
//! The supervisor answers each [`PathAccess`] once, and once more when a grant for one call has ended.

use palisade_gate::{AccessReply, MAX_FIELD, PathAccess};
use palisade_wire::{Raw, Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// To the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GateFsMessage {
    /// A call that waits for an answer.
    PathAccess(PathAccess),
    /// A call that was allowed once has returned.
    Returned { request: u64 },
    /// The answer is no longer awaited.
    Withdrawn { request: u64 },
    /// Somebody looked for one of Palisade's own directories, and was told that there is none. Nobody waits, and who it was may be
    /// gone by now.
    LookAtOwn {
        #[serde(with = "Raw")]
        path: PathBuf,
        pid: u32,
        /// Its program, as the sandbox sees it; empty if unknown.
        #[serde(with = "Raw")]
        executable: Vec<u8>,
    },
    /// The server cannot go on; without it nothing on the way to a granted path can be found.
    Failed(#[serde(with = "Truncated::<MAX_FIELD>")] String),
}

/// From the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToGateFs {
    Reply(AccessReply),
    /// The host's file or directory is mounted at this path, with everything below.
    Grafted {
        #[serde(with = "Raw")]
        path: PathBuf,
    },
    /// What was mounted at this path is gone, or could not be mounted: it is ungranted again.
    Ungrafted {
        #[serde(with = "Raw")]
        path: PathBuf,
        /// Whether something is mounted below it: a name that leads to a mount must not disappear.
        is_name_kept: bool,
    },
}

/// From the process that builds the view. A descriptor comes with each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromSetup {
    /// The sandbox's user namespace, which the file system belongs to. Answered by [`ToSetup`].
    UserNamespace,
    /// The same where root starts the run: the file system belongs to the host's user namespace.
    HostsNamespace,
    /// A file system of the sandbox's own, which is shown at this path from now on.
    Ground {
        #[serde(with = "Raw")]
        path: PathBuf,
    },
}

/// To the process that builds the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSetup {
    /// The file system, as a mount that is not attached yet, comes with it.
    Mounted,
    /// The ground is shown.
    Shown,
    Failed(#[serde(with = "Truncated::<MAX_FIELD>")] String),
}

impl WireMessage for GateFsMessage {
    /// Three paths and a few words, each at its limit.
    const MAX_BYTES: usize = 14 * 1024;
}

impl WireMessage for ToGateFs {
    const MAX_BYTES: usize = AccessReply::MAX_BYTES + 16;
}

impl WireMessage for FromSetup {
    const MAX_BYTES: usize = 5 * 1024;
}

impl WireMessage for ToSetup {
    const MAX_BYTES: usize = 5 * 1024;
}
