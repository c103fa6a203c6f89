//! Keeps the brokers of one user from stepping between each other's judging and performing.
//!
//! Two runs in one project have a broker each, and what one judges the other could change: make a plain
//! directory a git directory, say, between the look at it and the writing into it. So every call is
//! performed under a lock that all of them share; what changes the meaning of other names (a rename, a
//! part that makes a git directory) is performed alone.

use palisade_sys::Errno;
use rustix::fs::{FlockOperation, flock};
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(crate) struct Lock {
    /// Opened for this broker alone: the kernel counts by open file.
    file: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Shared,
    Alone,
}

impl Lock {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self { file }
    }

    pub(crate) fn take(&self, company: Company) -> Result<(), Errno> {
        let operation = match company {
            Company::Shared => FlockOperation::LockShared,
            Company::Alone => FlockOperation::LockExclusive,
        };
        rustix::io::retry_on_intr(|| flock(&self.file, operation))
    }

    pub(crate) fn release(&self) {
        // Of a lock that is held this can not fail.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
