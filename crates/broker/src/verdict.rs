//! What the judge is asked about, and what it says.

use palisade_guard::Hit;
use std::os::fd::BorrowedFd;

/// Why something may not stand where it was to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) rule: String,
    pub(crate) why: String,
}

impl Denied {
    pub(crate) fn by(hit: Hit<'_>) -> Self {
        Self { rule: hit.name.to_owned(), why: hit.why.to_owned() }
    }
}

/// What is about to appear in a place, or to be written there.
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
    /// A directory from elsewhere, with all that is in it.
    MovedDirectory(BorrowedFd<'a>),
    /// Something else from elsewhere.
    Moved,
    /// A symbolic link from elsewhere.
    MovedLink,
}

/// How the call goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Plainly,
    /// A directory: afterwards, remember that it was not there before the run.
    AsNewborn,
    /// Afterwards, the directory around it counts as one that was there before.
    AsOldRepository,
    /// Configuration of git and path files of Python: only as a copy that is judged by its content; what is written in
    /// place, by a staging file.
    AsJudgedContent,
}
