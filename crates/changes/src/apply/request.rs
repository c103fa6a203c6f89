//! What is to be applied, and how.

use super::baseline::Baseline;
use crate::judge::Judge;
use crate::layers::Layers;
use crate::selection::Selection;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// One apply.
#[derive(Clone, Copy)]
pub struct ApplyRequest<'a> {
    pub layers: &'a Layers,
    /// A directory of the session's that no session can reach: for the journal, and for copies if it is on the project's
    /// mount. Its owner only (0700).
    pub state: BorrowedFd<'a>,
    pub baseline: &'a Baseline,
    pub selection: &'a Selection,
    /// Paths of the project that the session could not see. What it made in their place is none of its business.
    pub hidden: &'a [PathBuf],
    pub judge: &'a dyn Judge,
    pub on_conflict: OnConflict<'a>,
    pub on_refused: OnRefused,
    pub source: Source,
}

impl std::fmt::Debug for ApplyRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplyRequest")
            .field("selection", self.selection)
            .field("on_refused", &self.on_refused)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// What to do with files that changed on the host, too.
#[derive(Clone, Copy)]
pub enum OnConflict<'a> {
    /// Apply nothing.
    Refuse,
    /// The session's version wins.
    Force,
    /// The host's version stays; the rest is applied.
    KeepHost,
    /// Both are merged if they fit together; otherwise apply nothing.
    Merge(&'a dyn BaseContents),
}

impl std::fmt::Debug for OnConflict<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Refuse => "Refuse",
            Self::Force => "Force",
            Self::KeepHost => "KeepHost",
            Self::Merge(_) => "Merge",
        })
    }
}

/// Files as they were when the transaction started, where somebody still has them (git does).
pub trait BaseContents {
    fn base(&self, path: &Path) -> Option<Vec<u8>>;
}

/// What to do if something must not come to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefused {
    ApplyNothing,
    ApplyRest,
}

/// How files come out of the upper layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Right at any time.
    Copy,
    /// Much faster, and the layers are used up: discard them afterwards. **Only if no process of the session remains and
    /// its overlay is unmounted.** A process with an open file or directory would write into the host's project.
    Move,
}
