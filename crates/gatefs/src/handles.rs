//! Open files and directories. Each holds a descriptor of ours, so there are no more of them than we may have.

use crate::host::HostFile;
use palisade_fuse::{FileHandle, NodeId};
use palisade_sys::{Errno, Pid};
use rustix::fs::FileType;
use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// Leaves descriptors for what is opened on the way.
const SPARE: u64 = 64;

#[derive(Debug)]
pub(crate) enum Open {
    /// A file of a ground.
    File(OwnedFd),
    /// A directory of a ground, with the names on it that are mounted.
    Directory(OwnedFd),
    /// A file of the host that was granted.
    HostFile(HostFile),
    /// A directory of the host that was granted.
    HostDirectory(HostFile),
    /// A file of the host that was granted for this one use, by this thread.
    Lent(HostFile, Pid),
    /// A directory of which only mounted names are shown: those that were there when it was opened.
    Names(Vec<VisibleName>),
    /// A directory that static mode lists as the host has it, less secrets.
    Told(ToldDirectory),
}

/// What the ground has by a directory's path, if anything, and what the host has.
#[derive(Debug)]
pub(crate) struct ToldDirectory {
    /// On the host, as when it was opened. The command can move the directory of its own away; what it is told stays
    /// that of this path.
    pub(crate) path: PathBuf,
    pub(crate) own: Option<OwnedFd>,
    pub(crate) host: HostFile,
    /// How many of the host's names were told, and where the next one is.
    pub(crate) reached: Cell<HostPosition>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostPosition {
    pub(crate) names: u64,
    /// As the host's file system counts.
    pub(crate) cookie: u64,
}

impl ToldDirectory {
    pub(crate) fn new(path: PathBuf, own: Option<OwnedFd>, host: HostFile) -> Self {
        Self { path, own, host, reached: Cell::default() }
    }
}

/// A name on which something is mounted, or below.
#[derive(Clone, Debug)]
pub(crate) struct VisibleName {
    pub(crate) name: Box<[u8]>,
    pub(crate) node: NodeId,
    pub(crate) kind: FileType,
}

#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) node: NodeId,
    pub(crate) open: Open,
}

#[derive(Debug)]
pub(crate) struct Handles {
    open: HashMap<FileHandle, Handle>,
    last: u64,
    limit: usize,
}

impl Handles {
    /// For a process that may have so many descriptors.
    pub(crate) fn new(descriptors: u64) -> Self {
        let limit = usize::try_from(descriptors.saturating_sub(SPARE)).unwrap_or(usize::MAX);
        Self { open: HashMap::new(), last: 0, limit }
    }

    pub(crate) fn add(&mut self, node: NodeId, open: Open) -> Result<FileHandle, Errno> {
        if self.open.len() >= self.limit {
            return Err(Errno::NFILE);
        }
        self.last += 1;
        let handle = FileHandle(self.last);
        self.open.insert(handle, Handle { node, open });
        Ok(handle)
    }

    pub(crate) fn get(&self, handle: FileHandle) -> Option<&Handle> {
        self.open.get(&handle)
    }

    /// A file of a ground, which may be changed.
    pub(crate) fn own_file(&self, handle: FileHandle) -> Result<&OwnedFd, Errno> {
        match self.get(handle).map(|handle| &handle.open) {
            Some(Open::File(file)) => Ok(file),
            _ => Err(Errno::BADF),
        }
    }

    /// A file of a ground or of the host, to read from.
    pub(crate) fn readable(&self, handle: FileHandle) -> Result<BorrowedFd<'_>, Errno> {
        match self.get(handle).map(|handle| &handle.open) {
            Some(Open::File(file)) => Ok(file.as_fd()),
            Some(Open::HostFile(file) | Open::Lent(file, _)) => Ok(file.to_read()),
            _ => Err(Errno::BADF),
        }
    }

    /// What is open of a node of a ground whose name is gone. Never something of the host, which the caller would change.
    pub(crate) fn own_of_node(&self, node: NodeId) -> Option<&OwnedFd> {
        self.of_node(node).find_map(|open| match open {
            Open::File(file) | Open::Directory(file) => Some(file),
            _ => None,
        })
    }

    /// What was granted of a node for one use, and is still open.
    pub(crate) fn lent_of_node(&self, node: NodeId) -> Option<&HostFile> {
        self.of_node(node).find_map(|open| match open {
            Open::Lent(file, _) => Some(file),
            _ => None,
        })
    }

    /// The same for one thread.
    pub(crate) fn lent_to(&self, node: NodeId, thread: Option<Pid>) -> Option<&HostFile> {
        self.of_node(node).find_map(|open| match open {
            Open::Lent(file, to) if Some(*to) == thread => Some(file),
            _ => None,
        })
    }

    fn of_node(&self, node: NodeId) -> impl Iterator<Item = &Open> {
        self.open.values().filter(move |handle| handle.node == node).map(|handle| &handle.open)
    }

    pub(crate) fn remove(&mut self, handle: FileHandle) -> Option<Handle> {
        self.open.remove(&handle)
    }
}
