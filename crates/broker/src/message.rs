//! Messages from the broker to the supervisor, one per packet.
//!
//! Only a [`PathAccess`] is answered. A supervisor that reads slowly costs the sandbox nothing but the details
//! of later attempts.

use palisade_gate::{MAX_FIELD, PathAccess};
use palisade_sys::FileIdentity;
use palisade_wire::{Truncated, WireMessage};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerMessage {
    /// A call that the filter refuses.
    Blocked(BlockedCall),
    /// A write to a file that the host would run later.
    Protected(Protected),
    /// A program that may not be executed.
    NotExecuted(NotExecuted),
    /// A socket was created in a tree of the host: a process there may connect to it.
    Socket {
        #[serde(with = "Truncated::<MAX_FIELD>")]
        path: Vec<u8>,
        pid: u32,
    },
    /// Whether git configuration is being written that is not judged yet: until then the broker must not be
    /// ended.
    Staging { is_open: bool },
    /// A write failed because this directory is read-only in the view; on the host, the command could write
    /// there.
    ReadOnly {
        #[serde(with = "Truncated::<MAX_FIELD>")]
        directory: Vec<u8>,
    },
    /// A call in this tree failed with EBUSY: another run that shares the tree does not finish a call of its
    /// own.
    Busy {
        #[serde(with = "Truncated::<MAX_FIELD>")]
        tree: Vec<u8>,
    },
    /// A call that waits for a [`AccessReply`](crate::AccessReply).
    PathAccess(PathAccess),
    /// A call that was allowed once has returned.
    Returned { request: u64 },
    /// A call that was allowed once has made this file, which did not exist before.
    Made { request: u64, file: FileIdentity },
    /// The answer is no longer awaited.
    Withdrawn { request: u64 },
    /// This many messages before this one were dropped, and this many of them reported suspicious calls.
    Lost { count: u64, suspicious: u64 },
    /// The broker cannot go on; without it the command cannot write.
    Failed(#[serde(with = "Truncated::<MAX_FIELD>")] String),
    /// A call that was performed, where they are recorded.
    FileOperation(FileOperation),
    /// So many calls were denied because too many wait for an answer already.
    Unasked { count: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedCall {
    pub number: u32,
    pub arguments: [u64; 6],
    /// On the host.
    pub pid: u32,
    /// The program, as the sandbox sees it; empty if unknown.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOperation {
    /// The system call.
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub call: String,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub path: Vec<u8>,
    /// On the host.
    pub pid: u32,
    #[serde(with = "Truncated::<MAX_FIELD>")]
    pub executable: Vec<u8>,
    /// So many before it were not told.
    pub missed: u64,
}

impl WireMessage for BrokerMessage {
    /// Three paths and a few words, each at its limit.
    const MAX_BYTES: usize = 14 * 1024;
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
