//! The judge's questions and answers.

use palisade_guard::Hit;
use std::os::fd::BorrowedFd;

/// Why something may not be created under this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) rule: String,
    pub(crate) why: String,
}

pub(crate) type Verdict<T> = Result<T, Denied>;

impl Denied {
    pub(crate) fn by(hit: Hit<'_>) -> Self {
        Self { rule: hit.name.to_owned(), why: hit.why.to_owned() }
    }
}

/// What is about to be created or written under a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coming<'a> {
    /// A new directory.
    Directory,
    /// A file, socket or pipe, new or old.
    Written,
    /// A second name of something.
    Link,
    /// A new symbolic link.
    SymbolicLink,
    /// A directory moved from elsewhere, with its content.
    MovedDirectory(BorrowedFd<'a>),
    /// Anything else moved from elsewhere.
    Moved,
    /// A symbolic link moved from elsewhere.
    MovedLink,
}

/// How the call continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Plainly,
    /// A directory: afterwards, remember that it did not exist before the run.
    AsNewborn,
    /// Afterwards, the directory around it counts as one that existed before.
    AsOldRepository,
    /// Git configuration and Python path files: only as a copy whose content is judged; what is written in
    /// place goes through a staging file.
    AsJudgedContent,
}
