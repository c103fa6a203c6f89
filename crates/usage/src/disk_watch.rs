//! Measures the space and inodes that a run holds (FS-6): in its own tmpfs mounts, and by how much the host trees that
//! it may write to have grown. Deleting files reduces the count. Must never block for long: trees are walked in slices.
//!
//! No round is skipped because nothing seemed to happen: blocks can be allocated without writing a byte (fallocate(2)),
//! and other processes also change the free space of a shared file system. Free space is still read between rounds. It
//! brings the next round forward, and it reveals what no walk finds: files in messages between sockets, or files moved
//! to a directory that was already walked. If the file systems lost *and* the processes wrote more than was found, the
//! lesser of the two counts. So what others write does not count by itself, but a run that writes and deletes much is
//! charged for others that fill the disk meanwhile. Space that is hidden and only allocated, not written, is not found.
//! Hidden space is also not found where free space is reported late ([`crate::space`]).
//!
//! What existed before the command is walked too, without delaying it: a small tree is counted before the command
//! starts, a large one while it runs. Changes meanwhile are recognised by timestamps, which a command cannot set back;
//! of these, as much counts as growth as the file systems have lost. Until that walk is complete, only free space is
//! known of the trees. Where free space is reported late, or timestamps come from another machine, the walk is
//! completed first.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use palisade_sys::beneath::open_beneath;
use palisade_sys::{Mode, OFlags, Pid, SysError};

use crate::disk_use::DiskUse;
use crate::error::{Result, UsageError};
use crate::space::Space;
use crate::tree::Tree;
use crate::walk::{Root, Walk};

/// The minimum pause between two rounds.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// A pause is this many times as long as the round before it: walking uses a twentieth of a core.
const PAUSE_FACTOR: u32 = 20;

/// The maximum pause, so that a large tree does not give the command more time.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How often free space is read, and the minimum pause before a round that it brings forward.
const GLANCE: Duration = Duration::from_millis(100);

/// The time limit of the first walk where the command waits for it.
const BASELINE_BUDGET: Duration = Duration::from_secs(10);

/// How many entries are counted before the command starts: a millisecond.
const ENTRIES_BEFORE_START: u32 = 256;

/// File timestamps come from a clock with at most this tick (`CONFIG_HZ=100`).
const TICK: Duration = Duration::from_millis(10);

/// The time limit of the last walk.
const FINISH_BUDGET: Duration = Duration::from_millis(500);

/// Where deleted files may exist that were not counted: for a report, not for a verdict. Programs also make themselves
/// undumpable for good reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Processes whose open files we may not inspect (`PR_SET_DUMPABLE`, see prctl(2)).
    pub processes: u64,
    /// Files that are only mapped, whose size only root may query.
    pub files: u64,
}

/// Everything that a run may fill.
#[derive(Debug)]
pub struct DiskWatch {
    roots: Vec<Root>,
    baseline: Baseline,
    mounts: Vec<Mount>,
    space: Space,
    limits: Option<DiskUse>,
    round: Option<Round>,
    next_round: Instant,
    /// The earliest time of the next round, whatever free space shows.
    earliest_round: Instant,
    next_glance: Instant,
    /// By how many bytes the trees had grown in the last round.
    grown: u64,
    /// The same including the tmpfs mounts.
    last: DiskUse,
    /// What free space shows beyond `grown`.
    unexplained: u64,
    written: u64,
    unseen: Unseen,
    had_closed: bool,
}

/// What the trees contained before the command.
#[derive(Debug)]
enum Baseline {
    Known(DiskUse),
    /// The walk that determines it.
    Walking(Box<Walk>),
}

/// A tmpfs, kept open so that it can be measured after the last process that saw it has ended.
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
    /// Must be called before the command starts: begins to count what exists. Does not follow links: pass resolved
    /// paths. [`UsageError::TooLarge`] if the trees have to be counted in full and that takes more than ten seconds.
    pub fn baseline(trees: &[PathBuf]) -> Result<Self> {
        Self::baseline_within(trees, ENTRIES_BEFORE_START, BASELINE_BUDGET)
    }

    fn baseline_within(trees: &[PathBuf], entries: u32, budget: Duration) -> Result<Self> {
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

    /// Reads free space between rounds from now on, to enforce these limits.
    pub fn watch(&mut self, bytes: Option<u64>, inodes: Option<u64>) {
        let limits =
            DiskUse { bytes: bytes.unwrap_or(u64::MAX), inodes: inodes.unwrap_or(u64::MAX) };
        self.limits = Some(limits).filter(|_| !self.roots.is_empty());
    }

    /// The maximum over all rounds.
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    /// How many of the held bytes have neither a name nor a descriptor, as far as known.
    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }

    /// Adds the tmpfs that `process` has mounted at `path`; everything in it counts. If we may not inspect the
    /// sandbox's first process, pass another one.
    pub fn add_tmpfs(&mut self, process: Pid, path: &Path) -> Result<()> {
        let root_path = format!("/proc/{}/root", process.as_raw_nonzero());
        // Following is intended here: the link is the kernel's, and leads to the process's root.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&root_path, flags, Mode::empty())
            .map_err(|errno| SysError::new("open", root_path, errno))?;
        let place = open_beneath(&root, path, OFlags::PATH | OFlags::DIRECTORY)?;
        self.add_file_system(place, path)
    }

    /// Adds a file system of the run's own by its root.
    pub fn add_file_system(&mut self, place: OwnedFd, path: &Path) -> Result<()> {
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

    /// The time until [`Self::step`] has something to do; zero within a round.
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

    /// Continues for about `budget`. Returns what is held when a round is complete or free space shows more, otherwise
    /// `None`. `tree` provides deleted files that are still in use, and the bytes written. After an error the limit can
    /// no longer be enforced.
    pub fn step(&mut self, budget: Duration, tree: Option<&mut Tree>) -> Result<Option<DiskUse>> {
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
        // Programs, above all tests, make directories inaccessible for a moment. That is tolerated for one round, in
        // which the previous count stays.
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

    /// Continues the walk that counts what existed before the command.
    fn go_on_with_baseline(&mut self, deadline: Instant) -> Result<Option<DiskUse>> {
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

    /// Reads free space if it is due. Returns whether it shows more than was reported before.
    fn glance(&mut self, now: Instant) -> Result<bool> {
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
            // No round covers the mounts yet.
            self.last = self.own()?;
        }
        self.unexplained = self.hidden().saturating_sub(self.grown);
        Ok(self.told().bytes > before.bytes || self.told().inodes > before.inodes)
    }

    /// The minimum that is held, wherever it is: the lesser of what the processes wrote and what is missing.
    fn hidden(&self) -> u64 {
        self.space.lost_for_a_while().min(self.written)
    }

    fn told(&self) -> DiskUse {
        DiskUse { bytes: self.last.bytes.saturating_add(self.unexplained), ..self.last }
    }

    /// What the run's own file systems hold, without a walk.
    pub fn own_bytes(&self) -> Result<u64> {
        Ok(self.own()?.bytes)
    }

    /// A complete round, after all processes have ended. Returns the last known value if it would take longer than half
    /// a second.
    pub fn finish(&mut self) -> Result<DiskUse> {
        self.finish_within(FINISH_BUDGET)
    }

    fn finish_within(&mut self, budget: Duration) -> Result<DiskUse> {
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
    fn own(&self) -> Result<DiskUse> {
        self.mounts.iter().try_fold(DiskUse::default(), |sum, mount| Ok(sum.plus(mount.held()?)))
    }

    /// Deleted files first: the walk skips one that gets a name later, and one that loses its name later is found in
    /// the next round.
    fn begin_round(&mut self, tree: Option<&mut Tree>) -> Result<Round> {
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
    fn held(&self) -> Result<DiskUse> {
        let stat = rustix::fs::fstatfs(&self.place)
            .map_err(|errno| SysError::new("fstatfs", self.path.display().to_string(), errno))?;
        // A tmpfs without a size limit does not count.
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

/// Counts a small tree now, and begins a large one. Where free space is reported late, completes the walk before
/// `deadline`.
fn first_walk(roots: &[Root], space: &Space, entries: u32, deadline: Instant) -> Result<Baseline> {
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
    // Otherwise, a tree that takes longer than that to walk would use a whole core.
    let longest = MAX_PAUSE.max(round.saturating_mul(2));
    round.saturating_mul(PAUSE_FACTOR).clamp(MIN_PAUSE, longest)
}

/// Other processes that write much bring rounds forward too: this takes half a core at most, as long as that is
/// possible.
fn early_pause_after(round: Duration) -> Duration {
    round.clamp(GLANCE, MAX_PAUSE)
}

#[cfg(test)]
#[path = "disk_watch_tests.rs"]
mod tests;
