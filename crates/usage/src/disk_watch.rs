//! The space and inodes a run holds at this moment (FS-6): in tmpfs mounts of its own, and by how much trees of
//! the host that it may write to have grown. Deleting gives back. Must never block for long: trees are
//! walked in turns.
//!
//! No round is skipped because nothing seemed to happen: blocks can be allocated without a byte written
//! (fallocate(2)), and the free space of a shared file system moves for others, too. It is looked at between
//! rounds all the same. It brings the next round forward, and it tells of what no walk finds: files in messages between
//! sockets, or moved to where the walk has been. Where the file systems lost *and* the processes wrote more
//! than was found, the lesser of the two counts. So nobody pays for what others write alone, but who writes
//! much and deletes it pays for others that fill the disk meanwhile. What is allocated without being written,
//! and hidden, is not found, nor is it where free space is not told at once ([`crate::space`]).
//!
//! What was there before the command is walked, too, and nobody waits for it: a small tree is counted before the
//! command starts, a large one while it runs. What changed meanwhile is known by its times, which a command cannot
//! set back; of that, as much is taken for growth as the file systems have lost. Until that walk is complete, free
//! space alone tells of trees. Where it is not told at once, or times are another machine's, the walk comes first.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use palisade_sys::beneath::open_beneath;
use palisade_sys::{Mode, OFlags, Pid, SysError};

use crate::disk_use::DiskUse;
use crate::error::UsageError;
use crate::space::Space;
use crate::tree::Tree;
use crate::walk::{Root, Walk};

/// The shortest pause between two rounds.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// A pause is this many times as long as the round before it: walking takes a twentieth of a core.
const PAUSE_FACTOR: u32 = 20;

/// But no longer than this: a large tree must not buy the command time.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How often free space is looked at, and the shortest pause before a round that it brings forward.
const GLANCE: Duration = Duration::from_millis(100);

/// How long the first walk may take where the command waits for it: nobody waits longer.
const BASELINE_BUDGET: Duration = Duration::from_secs(10);

/// So many entries are counted before the command starts: a millisecond.
const ENTRIES_BEFORE_START: u32 = 256;

/// Times of files come from a clock that ticks no slower than this (`CONFIG_HZ=100`).
const TICK: Duration = Duration::from_millis(10);

/// How long the last one may take.
const FINISH_BUDGET: Duration = Duration::from_millis(500);

/// Where deleted files may be that were not counted as such: for a report, not for a verdict. Programs
/// close themselves for good reasons, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Processes whose open files are closed to us (`PR_SET_DUMPABLE`, see prctl(2)).
    pub processes: u64,
    /// Files that are mapped only, whose size is told to nobody but root.
    pub files: u64,
}

/// Everything a run may fill.
#[derive(Debug)]
pub struct DiskWatch {
    roots: Vec<Root>,
    baseline: Baseline,
    mounts: Vec<Mount>,
    space: Space,
    limits: Option<DiskUse>,
    round: Option<Round>,
    next_round: Instant,
    /// Not before this, whatever free space says.
    earliest_round: Instant,
    next_glance: Instant,
    /// By how many bytes the last round found the trees grown.
    grown: u64,
    /// With what the mounts held.
    last: DiskUse,
    /// What free space tells beyond `grown`.
    unexplained: u64,
    written: u64,
    unseen: Unseen,
    had_closed: bool,
}

/// What the trees held before the command.
#[derive(Debug)]
enum Baseline {
    Known(DiskUse),
    /// The walk that will tell.
    Walking(Box<Walk>),
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
    deleted: DiskUse,
    spent: Duration,
}

impl DiskWatch {
    /// To be called before the command starts: begins to count what is there. Links are not followed: give resolved
    /// paths. [`UsageError::TooLarge`] if the trees have to be counted whole and that takes more than ten seconds.
    pub fn baseline(trees: &[PathBuf]) -> Result<Self, UsageError> {
        Self::baseline_within(trees, ENTRIES_BEFORE_START, BASELINE_BUDGET)
    }

    fn baseline_within(
        trees: &[PathBuf],
        entries: u32,
        budget: Duration,
    ) -> Result<Self, UsageError> {
        let began = Instant::now();
        let mut roots: Vec<Root> = Vec::new();
        for tree in trees {
            let root = Root::open(tree)?;
            if !roots.iter().any(|known| known.contains(&root)) {
                roots.retain(|known| !root.contains(known));
                roots.push(root);
            }
        }
        let space = Space::baseline(&roots)?;
        let baseline = first_walk(&roots, &space, entries, began + budget)?;
        let now = Instant::now();
        Ok(Self {
            roots,
            baseline,
            mounts: Vec::new(),
            space,
            limits: None,
            round: None,
            next_round: now + pause_after(now - began),
            earliest_round: now + early_pause_after(now - began),
            next_glance: now,
            grown: 0,
            last: DiskUse::default(),
            unexplained: 0,
            written: 0,
            unseen: Unseen::default(),
            had_closed: false,
        })
    }

    /// Looks at free space between rounds from now on, to hold these limits.
    pub fn watch(&mut self, bytes: Option<u64>, inodes: Option<u64>) {
        let limits =
            DiskUse { bytes: bytes.unwrap_or(u64::MAX), inodes: inodes.unwrap_or(u64::MAX) };
        self.limits = Some(limits).filter(|_| !self.roots.is_empty());
    }

    /// The most that any round could not look at.
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    /// How much of the bytes held no name and no descriptor leads to, as far as it is known.
    pub fn unexplained(&self) -> u64 {
        self.unexplained
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
        match (&self.round, &self.baseline) {
            (Some(_), _) | (_, Baseline::Walking(_)) => Duration::ZERO,
            (None, Baseline::Known(_)) => {
                let glance = self.limits.map(|_| self.next_glance);
                let next = glance.map_or(self.next_round, |glance| glance.min(self.next_round));
                next.saturating_duration_since(now)
            }
        }
    }

    /// Goes on for about `budget`. What is held, when a round is complete or free space tells of more; `None`
    /// in between. `tree` tells of files that were deleted and are still in use, and what was written. An error
    /// means that the limit cannot be held any longer.
    pub fn step(
        &mut self,
        budget: Duration,
        tree: Option<&mut Tree>,
    ) -> Result<Option<DiskUse>, UsageError> {
        let began = Instant::now();
        let written = tree.as_ref().and_then(|tree| tree.written_bytes());
        self.written = self.written.max(written.unwrap_or(0));
        if self.glance(began)? {
            return Ok(Some(self.told()));
        }
        let Baseline::Known(baseline) = self.baseline else {
            return self.go_on_with_baseline(began + budget);
        };
        if self.round.is_none() && began < self.next_round {
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
        let now = Instant::now();
        self.next_round = now + pause_after(round.spent);
        self.earliest_round = now + early_pause_after(round.spent);
        let mut held = walked.plus(round.deleted).minus(baseline);
        let mut grown = held.bytes;
        held = held.plus(self.own()?);
        // Programs close directories for a moment, tests above all. Not for two rounds, and what was
        // there stays counted meanwhile.
        if let Some(closed) = round.walk.closed {
            if self.had_closed {
                return Err(UsageError::Unreadable(closed));
            }
            grown = grown.max(self.grown);
            held.bytes = held.bytes.max(self.last.bytes);
            held.inodes = held.inodes.max(self.last.inodes);
            self.had_closed = true;
        } else {
            self.had_closed = false;
        }
        self.last = held;
        self.grown = grown;
        self.unexplained = self.hidden().saturating_sub(grown);
        Ok(Some(self.told()))
    }

    /// The walk that tells what was there before the command, while that runs.
    fn go_on_with_baseline(&mut self, deadline: Instant) -> Result<Option<DiskUse>, UsageError> {
        let Baseline::Walking(walk) = &mut self.baseline else { return Ok(None) };
        let Some(walked) = walk.advance(&self.roots, Some(deadline))? else { return Ok(None) };
        if let Some(closed) = walk.closed.take() {
            return Err(UsageError::Unreadable(closed));
        }
        let changed = walk.changed();
        self.space.look(&self.roots)?;
        let lost = self.space.lost();
        let grown = DiskUse {
            bytes: changed.bytes.min(lost.bytes),
            inodes: changed.inodes.min(lost.inodes),
        };
        self.baseline = Baseline::Known(walked.minus(grown));
        self.grown = grown.bytes;
        self.last = grown.plus(self.own()?);
        self.unexplained = self.hidden().saturating_sub(self.grown);
        Ok(Some(self.told()))
    }

    /// Looks at free space if it is time to. Whether it tells of more than was told before.
    fn glance(&mut self, now: Instant) -> Result<bool, UsageError> {
        let Some(limits) = self.limits.filter(|_| now >= self.next_glance) else {
            return Ok(false);
        };
        self.next_glance = now + GLANCE;
        self.space.look(&self.roots)?;
        let lost = self.space.lost_since_mark();
        let rest = limits.minus(self.told());
        if lost.bytes > rest.bytes || lost.inodes > rest.inodes {
            self.next_round = self.next_round.min(self.earliest_round);
        }
        let before = self.told();
        if matches!(self.baseline, Baseline::Walking(_)) {
            // No round tells of them yet.
            self.last = self.own()?;
        }
        self.unexplained = self.hidden().saturating_sub(self.grown);
        Ok(self.told().bytes > before.bytes || self.told().inodes > before.inodes)
    }

    /// What is held at least, wherever it is: the processes wrote so much, and so much is missing.
    fn hidden(&self) -> u64 {
        self.space.lost_for_a_while().min(self.written)
    }

    fn told(&self) -> DiskUse {
        DiskUse { bytes: self.last.bytes.saturating_add(self.unexplained), ..self.last }
    }

    /// What the run's own file systems hold, without walking anything.
    pub fn own_bytes(&self) -> Result<u64, UsageError> {
        Ok(self.own()?.bytes)
    }

    /// A whole round at once, when nobody is left who could add to it. What was known last, if that would
    /// take longer than half a second.
    pub fn finish(&mut self) -> Result<DiskUse, UsageError> {
        self.finish_within(FINISH_BUDGET)
    }

    fn finish_within(&mut self, budget: Duration) -> Result<DiskUse, UsageError> {
        let Baseline::Known(baseline) = self.baseline else {
            self.last = self.own()?;
            return Ok(self.told());
        };
        let mut walk = Walk::new(self.roots.len(), HashMap::new());
        let Some(walked) = walk.advance(&self.roots, Some(Instant::now() + budget))? else {
            return Ok(self.told());
        };
        Ok(walked.minus(baseline).plus(self.own()?))
    }

    /// What the run's own file systems hold.
    fn own(&self) -> Result<DiskUse, UsageError> {
        self.mounts.iter().try_fold(DiskUse::default(), |sum, mount| Ok(sum.plus(mount.held()?)))
    }

    /// Deleted files first: one that gets a name later is passed over by the walk, one that loses its name
    /// later is seen in the next round.
    fn begin_round(&mut self, tree: Option<&mut Tree>) -> Result<Round, UsageError> {
        if self.limits.is_some() {
            self.space.mark();
        }
        let mut deleted = match tree {
            Some(tree) if !self.roots.is_empty() => {
                let held = tree.nameless_files()?;
                if held.was_cut {
                    return Err(UsageError::TooManyOpen);
                }
                self.unseen.processes = self.unseen.processes.max(held.unread_processes);
                self.unseen.files = self.unseen.files.max(held.files_without_size);
                held.deleted
            }
            _ => HashMap::new(),
        };
        deleted.retain(|file, _| self.roots.iter().any(|root| root.device == file.device));
        let held = DiskUse {
            bytes: deleted.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            inodes: deleted.len() as u64,
        };
        let walk = Walk::new(self.roots.len(), deleted);
        Ok(Round { walk, deleted: held, spent: Duration::ZERO })
    }
}

impl Mount {
    fn held(&self) -> Result<DiskUse, UsageError> {
        let stat = rustix::fs::fstatfs(&self.place)
            .map_err(|errno| SysError::new("fstatfs", self.path.display().to_string(), errno))?;
        // A tmpfs without a size counts nothing.
        if stat.f_blocks == 0 || stat.f_files == 0 {
            return Err(UsageError::Sizeless(self.path.clone()));
        }
        let block = u64::try_from(stat.f_bsize).unwrap_or(0);
        Ok(DiskUse {
            bytes: stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(block),
            inodes: stat.f_files.saturating_sub(stat.f_ffree),
        })
    }
}

/// Counts a small tree now, and begins with a large one. Others are walked to the end before `deadline`.
fn first_walk(
    roots: &[Root],
    space: &Space,
    entries: u32,
    deadline: Instant,
) -> Result<Baseline, UsageError> {
    let mut walk = Walk::since(roots.len(), SystemTime::now() - TICK);
    let walked = match walk.advance_entries(roots, entries)? {
        None if space.is_prompt() => return Ok(Baseline::Walking(Box::new(walk))),
        None => walk.advance(roots, Some(deadline))?,
        walked => walked,
    };
    let Some(walked) = walked else {
        let root = walk.came_to(roots).map(|root| root.path.clone());
        return Err(UsageError::TooLarge(root.unwrap_or_default()));
    };
    match walk.closed {
        Some(closed) => Err(UsageError::Unreadable(closed)),
        None => Ok(Baseline::Known(walked)),
    }
}

fn pause_after(round: Duration) -> Duration {
    // A tree that takes longer than that to walk would take a whole core.
    let longest = MAX_PAUSE.max(round.saturating_mul(2));
    round.saturating_mul(PAUSE_FACTOR).clamp(MIN_PAUSE, longest)
}

/// Others who write much bring rounds forward, too: half a core at most, as long as that is possible.
fn early_pause_after(round: Duration) -> Duration {
    round.clamp(GLANCE, MAX_PAUSE)
}

#[cfg(test)]
#[path = "disk_watch_tests.rs"]
mod tests;
