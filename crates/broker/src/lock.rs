//! Locks that keep what a call was judged by until it is performed, from the other threads of this broker and from the
//! brokers of other runs.
//!
//! Two threads, or two runs in one project, could change what the other has judged: for example, turn a plain directory
//! into a git directory between the check and the write. So every call is performed in a turn of its broker and under
//! the lock of its tree, and calls that change the meaning of other names (a rename, a part that makes a git directory)
//! have both alone.
//!
//! A lock belongs to one tree: runs that share no tree share no lock. Waiting is bounded: a run that was
//! stopped in the middle of a call costs others in the same tree a short delay and then an EBUSY, never more.

use crate::unpoisoned::Unpoisoned as _;
use palisade_sys::Errno;
use palisade_sys::lock::{ByteLock, is_byte_locked, try_lock_byte, unlock_byte};
use palisade_sys::proc;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Held shared for as long as a run lives.
pub const PRESENCE: i64 = 0;
/// Held while a call is judged and performed.
const CALLS: i64 = 1;
/// Held shared by a broker that waits for the other one.
const WAITING: i64 = 2;

/// A call takes microseconds; a holder that exceeds this was stopped in the middle of one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The same, once that is known.
const SHORT_TIMEOUT: Duration = Duration::from_millis(20);
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const MAX_PAUSE: Duration = Duration::from_micros(250);
/// Threads that take turns could hold a lock between them forever. After this time they let go if another run waits, for
/// longer than that pauses.
const HELD_AT_A_TIME: Duration = Duration::from_millis(1);
const LET_GO_FOR: Duration = Duration::from_micros(400);

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

/// What the threads of a broker hold together.
#[derive(Debug)]
struct BrokerLocks {
    locks: TreeLocks,
    /// By file.
    shares: Mutex<Vec<Share>>,
    turns: &'static RwLock<()>,
    /// How long a thread waits for another run.
    patience: Mutex<Duration>,
}

/// How many threads share a lock that the kernel counts once.
#[derive(Clone, Copy, Debug)]
struct Share {
    threads: usize,
    /// Since when there has been one.
    since: Instant,
    /// Until when it is left to the other runs.
    left_until: Option<Instant>,
}

/// The turn of a call among those of its own broker.
#[derive(Debug)]
pub(crate) enum Turn {
    Shared { _turn: RwLockReadGuard<'static, ()> },
    Alone { _turn: RwLockWriteGuard<'static, ()> },
}

/// The locks as one thread uses them.
#[derive(Debug)]
pub(crate) struct Locks {
    broker: Arc<BrokerLocks>,
    held: Needed,
    /// The held locks that the current call turned out to need.
    used: Vec<usize>,
    /// What the last call needed: the next one is usually in the same tree.
    likely: Vec<usize>,
}

impl Locks {
    pub(crate) fn new(locks: TreeLocks) -> Self {
        let none = Share { threads: 0, since: Instant::now(), left_until: None };
        let shares = Mutex::new(vec![none; locks.files.len()]);
        // For as long as the process lives, so that a turn borrows from no thread's part.
        let turns = Box::leak(Box::new(RwLock::new(())));
        let patience = Mutex::new(LOCK_TIMEOUT);
        Self::of(Arc::new(BrokerLocks { locks, shares, turns, patience }))
    }

    /// The same locks for another thread.
    pub(crate) fn for_another_thread(&self) -> Self {
        Self::of(Arc::clone(&self.broker))
    }

    fn of(broker: Arc<BrokerLocks>) -> Self {
        Self { broker, held: Self::nothing(), used: Vec::new(), likely: Vec::new() }
    }

    /// The locks a call starts with.
    pub(crate) fn guess(&self, company: Company) -> Needed {
        Needed { files: self.likely.clone(), company }
    }

    /// The locks of a call that is judged by nothing in a tree.
    pub(crate) fn nothing() -> Needed {
        Needed { files: Vec::new(), company: Company::Shared }
    }

    /// The locks needed to judge something in `tree`, if more than are held. A tree that no other run can have has no
    /// lock, but a turn of this broker's it needs too.
    pub(crate) fn missing_for(&mut self, tree: Option<&Path>, company: Company) -> Option<Needed> {
        let tree = tree?;
        let lock = self.broker.locks.trees.iter().find(|lock| lock.tree == tree);
        let wanted = lock.map_or(&[][..], |lock| &lock.files);
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

    /// `turn` is the company that the call bears in its own broker, whatever it needs in its tree.
    pub(crate) fn take(&mut self, needed: Needed, turn: Company) -> Result<Turn, LockError> {
        let is_alone = needed.company == Company::Alone || turn == Company::Alone;
        self.used.clear();
        let mut since = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let turn = self.broker.turn(if is_alone { Company::Alone } else { Company::Shared });
            match self.broker.try_all(&needed) {
                Ok(None) => {
                    if since.is_some() {
                        self.broker.wait_no_longer(&needed.files);
                        self.broker.set_patience(LOCK_TIMEOUT);
                    }
                    self.held = needed;
                    return Ok(turn);
                }
                Ok(Some(busy)) => {
                    // Nobody else of ours need wait for it.
                    drop(turn);
                    let since = *since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.broker.patience() {
                        let is_first = self.broker.set_patience(SHORT_TIMEOUT) == LOCK_TIMEOUT;
                        self.broker.wait_no_longer(&needed.files);
                        return Err(LockError::Busy { tree: self.tree_of(busy), is_first });
                    }
                    let _ = proc::poll(&mut [], Some(pause));
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err(errno) => {
                    self.broker.wait_no_longer(&needed.files);
                    return Err(LockError::Failed(errno));
                }
            }
        }
    }

    pub(crate) fn release(&mut self, turn: Turn) {
        if !self.used.is_empty() {
            self.likely.clone_from(&self.used);
        }
        let held = std::mem::replace(&mut self.held, Self::nothing());
        self.broker.unlock(&held.files);
        drop(turn);
    }

    fn tree_of(&self, file: usize) -> PathBuf {
        let trees = &self.broker.locks.trees;
        let tree = trees.iter().find(|lock| lock.files.contains(&file));
        tree.map(|lock| lock.tree.clone()).unwrap_or_default()
    }
}

impl BrokerLocks {
    fn patience(&self) -> Duration {
        *self.patience.lock().held()
    }

    /// Returns what it was.
    fn set_patience(&self, patience: Duration) -> Duration {
        let mut current = self.patience.lock().held();
        std::mem::replace(&mut *current, patience)
    }

    /// Waits for calls of the same broker only. A waiting rename goes before calls that come after it.
    fn turn(&self, company: Company) -> Turn {
        let turns = self.turns;
        match company {
            Company::Shared => Turn::Shared { _turn: turns.read().held() },
            Company::Alone => Turn::Alone { _turn: turns.write().held() },
        }
    }

    /// All of them or none; returns the one that is taken.
    fn try_all(&self, needed: &Needed) -> Result<Option<usize>, Errno> {
        for (count, number) in needed.files.iter().enumerate() {
            let taken = self.try_one(*number, needed.company);
            if taken != Ok(true) {
                self.unlock(&needed.files[..count]);
                return taken.map(|_| Some(*number));
            }
        }
        Ok(None)
    }

    fn try_one(&self, number: usize, company: Company) -> Result<bool, Errno> {
        let Some(file) = self.locks.files.get(number) else { return Ok(true) };
        let mut shares = self.shares.lock().held();
        let Some(share) = shares.get_mut(number) else { return Ok(true) };
        let now = Instant::now();
        if share.threads > 0 {
            // Whoever is alone has a turn alone, so this is for a share.
            if now.duration_since(share.since) >= HELD_AT_A_TIME {
                let is_awaited = is_byte_locked(file, WAITING).unwrap_or_default();
                share.left_until = is_awaited.then_some(now + LET_GO_FOR);
                share.since = if is_awaited { share.since } else { now };
            }
            let is_joined = share.left_until.is_none();
            share.threads += usize::from(is_joined);
            return Ok(is_joined);
        }
        if share.left_until.is_some_and(|until| now < until) {
            return Ok(false);
        }
        share.left_until = None;
        let lock = match company {
            Company::Shared => ByteLock::Shared,
            Company::Alone => ByteLock::Exclusive,
        };
        let is_taken = try_lock_byte(file, CALLS, lock)?;
        if is_taken {
            *share = Share { threads: 1, since: now, left_until: None };
        } else {
            // Only tells threads that take turns over there.
            let _ = try_lock_byte(file, WAITING, ByteLock::Shared);
        }
        Ok(is_taken)
    }

    /// Another thread of ours that still waits says so again.
    fn wait_no_longer(&self, files: &[usize]) {
        for file in files.iter().filter_map(|number| self.locks.files.get(*number)) {
            let _ = unlock_byte(file, WAITING);
        }
    }

    fn unlock(&self, files: &[usize]) {
        let mut shares = self.shares.lock().held();
        for number in files {
            let (Some(file), Some(share)) =
                (self.locks.files.get(*number), shares.get_mut(*number))
            else {
                continue;
            };
            share.threads = share.threads.saturating_sub(1);
            if share.threads == 0 {
                // For a held lock this cannot fail.
                let _ = unlock_byte(file, CALLS);
            }
        }
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
