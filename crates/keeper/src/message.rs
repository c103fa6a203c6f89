//! What the supervisor asks of the keeper, and what the keeper tells: one packet each, in order.
//!
//! Both ends are ours, but the paths are not. What does not fit is an error of the sender, never a path cut short.

use palisade_sys::FileIdentity;
use palisade_wire::{Raw, Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Room for every path of a [`Found`] but the strangest: forty links of full length.
const MAX_BYTES: usize = 64 * 1024;

/// Words for a person.
const MAX_TEXT: usize = 4096;

/// From the supervisor. Each is answered once, in the order they came, but for [`KeeperRequest::Forget`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperRequest {
    /// What is at this absolute path on the host? What is found is held under the token.
    Look {
        token: u64,
        #[serde(with = "Raw")]
        path: Vec<u8>,
        /// Whether a link in the last place is followed.
        follow: bool,
        /// Whether it is to be executed: then what its start needs is told, too.
        execute: bool,
        /// What is to be changed: then whether the host would let the command is told, too.
        change: Change,
    },
    /// Show what is held under the token, at its real path; read-only, unless it may be written.
    Graft { token: u64, what: What, exec: bool, write: bool },
    /// Open the regular file that is held under the token, for reading. Of the caller's flags only
    /// those count that can do no harm.
    Open { token: u64, flags: u32 },
    /// Take away what was shown.
    Ungraft { graft: u64 },
    /// Give a descriptor (`O_PATH`) by which what is held under the token, or the directory it is in, can be written. It is
    /// shown nowhere.
    Lend { token: u64, parent: bool },
    /// Let go of what is held under the token.
    Forget { token: u64 },
}

/// What a call would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Nothing,
    /// The file itself, or what is in the directory.
    Content,
    /// The name, in the directory that it is in.
    Name,
    /// Mode, owner, times, extended attributes: its owner may, whatever its mode says.
    Attributes,
}

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// What was found, with the links that led to it.
    Found,
    /// A directory that holds it, with everything in it.
    Directory(#[serde(with = "Raw")] PathBuf),
    /// Of a directory only that it is there: an empty one of the sandbox's own stands for it.
    Name,
    /// Only the links that led to it: what they lead to can be seen already.
    Links,
    /// Something of the sandbox's own that can be changed: of a file a copy, of a directory an empty one.
    Copy,
}

/// To the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperEvent {
    Found(Found),
    /// Nothing there, or nothing that this user could see.
    Absent {
        token: u64,
    },
    Grafted {
        token: u64,
        graft: u64,
    },
    /// It is a directory, and something below it is asked about on its own, or leads elsewhere. Nothing was
    /// shown.
    NotWhole {
        token: u64,
    },
    /// A descriptor comes with it.
    Opened {
        token: u64,
    },
    /// Nothing was shown, opened or found.
    Failed {
        token: u64,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        step: String,
        errno: u16,
    },
    Ungrafted {
        graft: u64,
    },
    /// It is still to be seen: whoever granted it for a moment has to end the run.
    NotUngrafted {
        graft: u64,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        step: String,
        errno: u16,
    },
    /// The keeper cannot go on, and ends.
    Unable {
        #[serde(with = "Truncated::<MAX_TEXT>")]
        why: String,
    },
}

/// What is at a path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub token: u64,
    /// Without a link in it; where a [`FileKind::Link`] is, of the link itself.
    #[serde(with = "Raw")]
    pub path: PathBuf,
    pub kind: FileKind,
    /// The links that were followed, in order: where each is, and what it says. A [`FileKind::Link`] is the
    /// last of them.
    #[serde(with = "Raw")]
    pub links: Vec<(PathBuf, PathBuf)>,
    /// What else the kernel opens to execute it: interpreters and loaders, by real path.
    #[serde(with = "Raw")]
    pub needs: Vec<PathBuf>,
    /// Why the host would not let it be written, as an errno; only where that was asked for.
    pub unwritable: Option<u16>,
    pub identity: Option<FileIdentity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    File,
    Directory,
    /// A link that was not to be followed; to show it is to make it inside.
    Link,
    /// A device, socket or pipe, which cannot be shown.
    Special,
}

impl WireMessage for KeeperRequest {
    const MAX_BYTES: usize = MAX_BYTES;
}

impl WireMessage for KeeperEvent {
    const MAX_BYTES: usize = MAX_BYTES;
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
