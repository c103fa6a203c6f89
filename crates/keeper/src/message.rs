//! Requests of the supervisor to the keeper and the keeper's answers: one packet each, in order.
//!
//! Both ends are ours, but the paths are not. What does not fit is an error of the sender, never a truncated
//! path.

use palisade_sys::FileIdentity;
use palisade_wire::{Raw, Truncated, WireMessage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Room for every path of a [`Found`] in practice: forty links of full length.
const MAX_BYTES: usize = 64 * 1024;

/// Words for a person.
const MAX_TEXT: usize = 4096;

/// From the supervisor. Each one is answered once, in order, except [`KeeperRequest::Forget`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperRequest {
    /// What is at this absolute path on the host? The result is held under the token.
    Look {
        token: u64,
        #[serde(with = "Raw")]
        path: Vec<u8>,
        /// Whether a link as the last component is followed.
        follow: bool,
        /// Whether it is to be executed: then the answer names what its start needs, too.
        execute: bool,
        /// What is to be changed: then the answer says whether the host would allow it, too.
        change: Change,
    },
    /// Show what is held under the token, at its real path: read-only, unless writing was granted.
    Graft { token: u64, what: What, exec: bool, write: bool },
    /// Open the regular file that is held under the token for reading. Only harmless flags of the caller are
    /// used.
    Open { token: u64, flags: u32 },
    /// Remove what was shown.
    Ungraft { graft: u64 },
    /// Remove everything that was shown at this path and below it, except private versions.
    Revoke {
        token: u64,
        #[serde(with = "Raw")]
        path: PathBuf,
    },
    /// Return a descriptor (`O_PATH`) through which what is held under the token, or its directory, can be
    /// written. It is not shown in the view.
    Lend { token: u64, parent: bool },
    /// Could this directory be shown as a whole? It is what is held under the token, or contains it.
    Survey {
        token: u64,
        #[serde(with = "Raw")]
        directory: PathBuf,
    },
    /// Drop what is held under the token.
    Forget { token: u64 },
}

/// What a call would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Nothing,
    /// The file itself, or the entries of the directory.
    Content,
    /// The name, in its directory.
    Name,
    /// Mode, owner, times, extended attributes: the owner may, whatever the mode says.
    Attributes,
}

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// What was found, with the links that lead to it.
    Found,
    /// A directory that contains it, with everything below.
    Directory(#[serde(with = "Raw")] PathBuf),
    /// Only that a directory exists: an empty one of the sandbox's own represents it.
    Name,
    /// Only the links that lead to it: their target is visible already.
    Links,
    /// A private version that can be changed: a copy of a file, or an empty directory.
    Copy,
    /// What is visible at its path, once more below the grant that covers this directory. A process that
    /// entered the directory before that grant still looks there, and would not find it.
    BelowCover(#[serde(with = "Raw")] PathBuf),
}

/// To the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperEvent {
    Found(Found),
    /// Nothing there, or nothing that this user can see.
    Absent {
        token: u64,
    },
    Grafted {
        token: u64,
        graft: u64,
    },
    /// It is a directory, and something below it has to be asked about separately, or leads elsewhere. Nothing
    /// was shown.
    NotWhole {
        token: u64,
    },
    Surveyed {
        token: u64,
        is_whole: bool,
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
    Revoked {
        token: u64,
    },
    /// It is still visible: the run has to end.
    NotUngrafted {
        graft: u64,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        step: String,
        errno: u16,
    },
    /// The keeper cannot go on, and exits.
    Unable {
        #[serde(with = "Truncated::<MAX_TEXT>")]
        why: String,
    },
}

/// What is at a path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub token: u64,
    /// Without links; for a [`FileKind::Link`], the path of the link itself.
    #[serde(with = "Raw")]
    pub path: PathBuf,
    pub kind: FileKind,
    /// The links that were followed, in order: path and target. A [`FileKind::Link`] is the last of them.
    #[serde(with = "Raw")]
    pub links: Vec<(PathBuf, PathBuf)>,
    /// What else the kernel opens to execute it: interpreters and loaders, by real path.
    #[serde(with = "Raw")]
    pub needs: Vec<PathBuf>,
    /// Why the host does not allow writing, as an errno; only if requested.
    pub unwritable: Option<u16>,
    pub identity: Option<FileIdentity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    File,
    Directory,
    /// A link that was not to be followed; it is shown by creating it inside.
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
