//! The space and inodes a run holds at this moment (FS-6): in tmpfs mounts of its own, and by how much trees of
//! the host that it may write to have grown. Deleting gives back. Must never block for long: trees are
//! walked in turns.
//!
//! No round is skipped because nothing seemed to happen: blocks can be allocated without a byte written
//! (fallocate(2)), and the free space of a shared file system moves for others, too.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use palisade_sys::beneath::open_beneath;
use palisade_sys::{Mode, OFlags, Pid, SysError};

use crate::error::UsageError;
use crate::tree::Tree;
use crate::walk::{Root, Walk};

/// The shortest pause between two rounds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);

/// A pause is at least this many times as long as the round before it: walking takes a twentieth.
const PAUSE_FACTOR: u32 = 20;

/// Space that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes, in whole blocks.
    pub bytes: u64,
    /// Files, directories and the like.
    pub inodes: u64,
}

impl Held {
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            inodes: self.inodes.saturating_sub(other.inodes),
        }
    }
}

/// Everything a run may fill.
#[derive(Debug)]
pub struct Places {
    roots: Vec<Root>,
    baseline: Held,
    mounts: Vec<Mount>,
    round: Option<Round>,
    next_round: Instant,
    last: Held,
    had_closed: bool,
}

/// A tmpfs, held so that it answers after the last process that saw it has gone.
#[derive(Debug)]
struct Mount {
    path: PathBuf,
    device: u64,
    place: OwnedFd,
}

#[derive(Debug)]
struct Round {
    walk: Walk,
    deleted: Held,
    spent: Duration,
}

impl Places {
    /// Walks the trees whole, before the command starts. Links are not followed: give resolved paths.
    pub fn baseline(trees: &[PathBuf]) -> Result<Self, UsageError> {
        let began = Instant::now();
        let mut roots: Vec<Root> = Vec::new();
        for tree in trees {
            let root = Root::open(tree)?;
            if !roots.iter().any(|known| known.contains(&root)) {
                roots.retain(|known| !root.contains(known));
                roots.push(root);
            }
        }
        let mut walk = Walk::new(roots.len(), HashMap::new());
        let baseline = walk.advance(&roots, None)?.unwrap_or_default();
        if let Some(closed) = walk.closed {
            return Err(UsageError::Unreadable(closed));
        }
        Ok(Self {
            roots,
            baseline,
            mounts: Vec::new(),
            round: None,
            next_round: Instant::now() + pause_after(began.elapsed()),
            last: Held::default(),
            had_closed: false,
        })
    }

    /// Adds the tmpfs that `process` has at `path`; all that is in it counts. Another process of the same
    /// sandbox has to be named where its first is closed to us.
    pub fn add_tmpfs(&mut self, process: Pid, path: &Path) -> Result<(), UsageError> {
        let root_path = format!("/proc/{}/root", process.as_raw_nonzero());
        // Following is meant here: the link is the kernel's, and leads to the process's root.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&root_path, flags, Mode::empty())
            .map_err(|errno| SysError::new("open", root_path, errno))?;
        let place = open_beneath(&root, path, OFlags::PATH | OFlags::DIRECTORY)?;
        let device = rustix::fs::fstat(&place)
            .map_err(|errno| SysError::new("fstat", path.display().to_string(), errno))?
            .st_dev;
        let mount = Mount { path: path.to_owned(), device, place };
        mount.held()?;
        if !self.mounts.iter().any(|known| known.device == device) {
            self.mounts.push(mount);
        }
        Ok(())
    }

    /// How long until [`Self::step`] has something to do; zero in the middle of a round.
    pub fn due_in(&self, now: Instant) -> Duration {
        match self.round {
            Some(_) => Duration::ZERO,
            None => self.next_round.saturating_duration_since(now),
        }
    }

    /// Goes on for about `budget`. What is held, when a round is complete; `None` in between. `tree` tells
    /// of files that were deleted and are still open. An error means that the limit can not be held any
    /// longer.
    pub fn step(
        &mut self,
        budget: Duration,
        tree: Option<&mut Tree>,
    ) -> Result<Option<Held>, UsageError> {
        let began = Instant::now();
        if self.due_in(began) > Duration::ZERO {
            return Ok(None);
        }
        let mut round = match self.round.take() {
            Some(round) => round,
            None => self.begin_round(tree)?,
        };
        let walked = round.walk.advance(&self.roots, Some(began + budget))?;
        round.spent += began.elapsed();
        let Some(walked) = walked else {
            self.round = Some(round);
            return Ok(None);
        };
        self.next_round = Instant::now() + pause_after(round.spent);
        let mut held = walked.plus(round.deleted).minus(self.baseline);
        for mount in &self.mounts {
            held = held.plus(mount.held()?);
        }
        // Programs close directories for a moment, tests above all. Not for two rounds, and what was
        // there stays counted meanwhile.
        if let Some(closed) = round.walk.closed {
            if self.had_closed {
                return Err(UsageError::Unreadable(closed));
            }
            held.bytes = held.bytes.max(self.last.bytes);
            held.inodes = held.inodes.max(self.last.inodes);
            self.had_closed = true;
        } else {
            self.had_closed = false;
        }
        self.last = held;
        Ok(Some(held))
    }

    /// What the run's own file systems hold, without walking anything.
    pub fn own_bytes(&self) -> Result<u64, UsageError> {
        self.mounts.iter().try_fold(0_u64, |sum, mount| Ok(sum.saturating_add(mount.held()?.bytes)))
    }

    /// A whole round at once, when nobody is left who could add to it.
    pub fn finish(&mut self) -> Result<Held, UsageError> {
        let mut walk = Walk::new(self.roots.len(), HashMap::new());
        let walked = walk.advance(&self.roots, None)?.unwrap_or_default();
        let own = self.mounts.iter().try_fold(Held::default(), |sum, mount| {
            Ok::<Held, UsageError>(sum.plus(mount.held()?))
        })?;
        Ok(walked.minus(self.baseline).plus(own))
    }

    /// Deleted files first: one that gets a name later is passed over by the walk, one that loses its name
    /// later is seen in the next round.
    fn begin_round(&self, tree: Option<&mut Tree>) -> Result<Round, UsageError> {
        let mut deleted = match tree {
            Some(tree) if !self.roots.is_empty() => {
                let held = tree.held_files()?;
                if held.was_cut {
                    return Err(UsageError::TooManyOpen);
                }
                held.deleted
            }
            _ => HashMap::new(),
        };
        deleted.retain(|file, _| self.roots.iter().any(|root| root.device == file.device));
        let held = Held {
            bytes: deleted.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            inodes: deleted.len() as u64,
        };
        let walk = Walk::new(self.roots.len(), deleted);
        Ok(Round { walk, deleted: held, spent: Duration::ZERO })
    }
}

impl Mount {
    fn held(&self) -> Result<Held, UsageError> {
        let stat = rustix::fs::fstatfs(&self.place)
            .map_err(|errno| SysError::new("fstatfs", self.path.display().to_string(), errno))?;
        // A tmpfs without a size counts nothing.
        if stat.f_blocks == 0 || stat.f_files == 0 {
            return Err(UsageError::Sizeless(self.path.clone()));
        }
        let block = u64::try_from(stat.f_bsize).unwrap_or(0);
        Ok(Held {
            bytes: stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(block),
            inodes: stat.f_files.saturating_sub(stat.f_ffree),
        })
    }
}

fn pause_after(round: Duration) -> Duration {
    round.saturating_mul(PAUSE_FACTOR).max(SHORTEST_PAUSE)
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
