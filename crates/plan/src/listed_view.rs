//! A view that the caller lists entry by entry, as an input of a plan. What it comes to is decided in `listed`.

use std::path::PathBuf;

/// What the command sees, in the order in which it was said: what comes later covers what was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedView {
    pub entries: Vec<ListedEntry>,
}

/// One entry. Its place is an absolute path without `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    pub place: PathBuf,
    pub shown: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A file, directory or socket of the host.
    Host {
        source: PathBuf,
        access: ListedAccess,
        if_missing: IfSourceMissing,
    },
    /// A directory that is empty at first, and private to the run.
    Private {
        mode: u32,
        size: Option<u64>,
        is_read_only: bool,
    },
    /// A directory, where there is none.
    Directory {
        mode: u32,
    },
    Link {
        points_to: PathBuf,
    },
    /// A file with this content, read-only.
    File {
        content: String,
        mode: u32,
    },
    /// Nothing: what the host has there cannot be seen, and nothing can be made in its place.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedAccess {
    ReadOnly,
    ReadWrite,
    /// Looks writable; changes are discarded.
    Overlay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfSourceMissing {
    IsAnError,
    IsLeftOut,
}
