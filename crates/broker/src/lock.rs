//! Locks that keep the brokers of several runs from changing a tree between each other's judging and
//! performing.
//!
//! Two runs in one project have a broker each, and one could change what the other has judged: for example,
//! turn a plain directory into a git directory between the check and the write. So every call is performed
//! under the lock of its tree, and calls that change the meaning of other names (a rename, a part that makes a
//! git directory) under an exclusive one.
//!
//! A lock belongs to one tree: runs that share no tree share no lock. Waiting is bounded: a run that was
//! stopped in the middle of a call costs others in the same tree a short delay and then an EBUSY, never more.

use palisade_sys::Errno;
use palisade_sys::lock::{ByteLock, try_lock_byte, unlock_byte};
use palisade_sys::proc;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Held shared for as long as a run lives.
pub const PRESENCE: i64 = 0;
/// Held while a call is judged and performed.
const CALLS: i64 = 1;

/// A call takes microseconds; a holder that exceeds this was stopped in the middle of one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The same, once that is known.
const SHORT_TIMEOUT: Duration = Duration::from_millis(20);
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// The lock files of a run's trees, opened for this broker alone: the kernel counts by open file.
#[derive(Debug, Default)]
pub struct TreeLocks {
    pub files: Vec<OwnedFd>,
    pub trees: Vec<TreeLock>,
}

/// What a call in a tree has to lock: the tree's own file, and those of trees of other runs that overlap it.
#[derive(Debug)]
pub struct TreeLock {
    /// As the sandbox sees it.
    pub tree: PathBuf,
    /// Indices into the files.
    pub files: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Shared,
    Alone,
}

/// What a call needs. Discovered while it is judged, so that it is retried with more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    files: Vec<usize>,
    pub(crate) company: Company,
}

#[derive(Debug)]
pub(crate) struct Locks {
    locks: TreeLocks,
    held: Needed,
    /// The held locks that the current call turned out to need.
    used: Vec<usize>,
    /// What the last call needed: the next one is usually in the same tree.
    likely: Vec<usize>,
    patience: Duration,
}

impl Locks {
    pub(crate) fn new(locks: TreeLocks) -> Self {
        Self {
            locks,
            held: Self::nothing(),
            used: Vec::new(),
            likely: Vec::new(),
            patience: LOCK_TIMEOUT,
        }
    }

    /// The locks a call starts with.
    pub(crate) fn guess(&self, company: Company) -> Needed {
        Needed { files: self.likely.clone(), company }
    }

    /// The locks of a call that is judged by nothing in a tree.
    pub(crate) fn nothing() -> Needed {
        Needed { files: Vec::new(), company: Company::Shared }
    }

    /// The locks needed to judge something in `tree`, if more than are held.
    pub(crate) fn missing_for(&mut self, tree: Option<&Path>, company: Company) -> Option<Needed> {
        let tree = tree?;
        let wanted = &self.locks.trees.iter().find(|lock| lock.tree == tree)?.files;
        let is_held = wanted.iter().all(|file| self.held.files.contains(file));
        let is_alone = self.held.company == Company::Alone;
        for file in wanted {
            if !self.used.contains(file) {
                self.used.push(*file);
            }
        }
        if is_held && (is_alone || company == Company::Shared) {
            return None;
        }
        let mut files = self.used.clone();
        // All brokers take them in the same order.
        files.sort_unstable();
        Some(Needed { files, company: if is_alone { Company::Alone } else { company } })
    }

    pub(crate) fn take(&mut self, needed: Needed) -> Result<(), LockError> {
        let lock = match needed.company {
            Company::Shared => ByteLock::Shared,
            Company::Alone => ByteLock::Exclusive,
        };
        self.used.clear();
        let mut since = None;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.try_all(&needed.files, lock) {
                Ok(None) => {
                    self.held = needed;
                    if since.is_some() {
                        self.patience = LOCK_TIMEOUT;
                    }
                    return Ok(());
                }
                Ok(Some(busy)) => {
                    let since = *since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.patience {
                        let is_first = self.patience == LOCK_TIMEOUT;
                        self.patience = SHORT_TIMEOUT;
                        return Err(LockError::Busy { tree: self.tree_of(busy), is_first });
                    }
                    let _ = proc::poll(&mut [], Some(pause));
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err(errno) => return Err(LockError::Failed(errno)),
            }
        }
    }

    /// All of them or none; returns the one that is taken.
    fn try_all(&self, files: &[usize], lock: ByteLock) -> Result<Option<usize>, Errno> {
        for (count, number) in files.iter().enumerate() {
            let Some(file) = self.locks.files.get(*number) else { continue };
            let taken = try_lock_byte(file, CALLS, lock);
            if taken != Ok(true) {
                self.unlock(&files[..count]);
                return taken.map(|_| Some(*number));
            }
        }
        Ok(None)
    }

    pub(crate) fn release(&mut self) {
        if !self.used.is_empty() {
            self.likely.clone_from(&self.used);
        }
        let held = std::mem::take(&mut self.held.files);
        self.held.company = Company::Shared;
        self.unlock(&held);
    }

    fn unlock(&self, files: &[usize]) {
        for file in files.iter().filter_map(|number| self.locks.files.get(*number)) {
            // For a held lock this cannot fail.
            let _ = unlock_byte(file, CALLS);
        }
    }

    fn tree_of(&self, file: usize) -> PathBuf {
        let trees = &self.locks.trees;
        let tree = trees.iter().find(|lock| lock.files.contains(&file));
        tree.map(|lock| lock.tree.clone()).unwrap_or_default()
    }
}

/// Why a lock was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LockError {
    Busy { tree: PathBuf, is_first: bool },
    Failed(Errno),
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
