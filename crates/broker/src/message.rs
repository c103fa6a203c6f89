//! What the broker tells the supervisor, packet by packet.
//!
//! But for a [`PathAccess`] no answer is awaited, and a supervisor that reads slowly costs the sandbox nothing but
//! the details of its later attempts.

use crate::path_access::{MAX_FIELD, PathAccess};
use palisade_sys::FileIdentity;
use palisade_wire::{Truncated, WireMessage};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// A call that the filter refuses.
    Blocked(Blocked),
    /// A write that the host would run later.
    Protected(Protected),
    /// A program that may not be executed.
    NotExecuted(NotExecuted),
    /// A socket was put into a tree of the host's: somebody there may connect to it.
    Socket {
        #[serde(with = "Truncated::<MAX_FIELD>")]
        path: Vec<u8>,
        pid: u32,
    },
    /// Whether git configuration is being written whose content is yet to be judged: until then the broker is not to be
    /// ended.
    Staging { is_open: bool },
    /// A write failed because the view has this directory read-only; on the host, the command could write there.
    ReadOnly {
        #[serde(with = "Truncated::<MAX_FIELD>")]
        directory: Vec<u8>,
    },
    /// A call in this tree failed with EBUSY: another run that shares the tree does not finish one of its own.
    Busy {
        #[serde(with = "Truncated::<MAX_FIELD>")]
        tree: Vec<u8>,
    },
    /// A call that waits for a [`Reply`](crate::Reply).
    PathAccess(PathAccess),
    /// A call that was let go on for once is over.
    Returned { request: u64 },
    /// A call that was allowed once has made this file, which nobody had made before.
    Made { request: u64, file: FileIdentity },
    /// Nobody waits for the answer any more.
    Withdrawn { request: u64 },
    /// So many messages before this one found no room, and so many of them told of suspicious calls.
    Lost { count: u64, suspicious: u64 },
    /// The broker cannot go on; with it the command cannot write.
    Failed(#[serde(with = "Truncated::<MAX_FIELD>")] String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    pub number: u32,
    pub arguments: [u64; 6],
    /// On the host.
    pub pid: u32,
    /// The program, as the sandbox sees it; empty if it could not be found out.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub executable: Vec<u8>,
    pub errno: u16,
    pub suspicious: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// The system call.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub call: String,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub path: Vec<u8>,
    /// The name on the list, or the setting.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub rule: String,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub why: String,
    pub pid: u32,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub executable: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotExecuted {
    /// The system call.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub call: String,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub path: Vec<u8>,
    /// The policy's key.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub rule: String,
    pub pid: u32,
    /// The program that tried.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub executable: Vec<u8>,
}

impl WireMessage for Message {
    /// Three paths and a few words, each at its limit.
    const MAX_BYTES: usize = 14 * 1024;
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
