//! The processes of a sandbox: its first process and all descendants, found and read from outside. Orphans are
//! reparented to the first process, so no process leaves the tree. Must never miss a process it has seen, even if it
//! was reparented, nor walk endlessly through a fork bomb.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::AsFd;
use std::time::Duration;

use palisade_sys::{Errno, Pid};
use rustix::process::Resource;

use crate::error::{Result, UsageError};
use crate::ledger::{Account, Identity, Io, Ledger};
use crate::process::{Manner, Process, find_children};
use crate::procfs::{self, Proc};

/// The maximum number of processes in a sample.
const MAX_PROCESSES: usize = 4096;

/// The maximum number of files kept open between samples; never more than a quarter of our limit.
const MAX_HELD_OPEN: u64 = 256;

/// Open files per process.
const HELD_A_PROCESS: u64 = 4;

/// How often the new parents of orphans are read again within one sample.
const MAX_REPEATS: u32 = 3;

/// For how many looks a new process may count as sharing its parent's memory. The kernel does not show it: a child of
/// vfork(2) has its parent's numbers until it calls exec, and would seem to double a large program with every command
/// it starts.
const BORROWING_LOOKS: u32 = 3;

/// Smaller processes are not considered: it hardly matters for one, and many could add up.
const BORROWING_BYTES: u64 = 16 << 20;

/// The usage of a tree up to a point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// User CPU time, of living and ended processes. The kernel reports it in ticks of 10 ms, so the last tick of a
    /// living process is missing.
    pub cpu_user: Duration,
    /// System CPU time.
    pub cpu_system: Duration,
    /// Anonymous, shared and swapped-out memory, summed over processes: pages that several share count for each, so
    /// this is never too low. [`Tree::exact`] costs more and counts them once.
    pub memory_bytes: u64,
    /// What appears to be a parent's memory in a child that has not called exec yet. Not part of `memory_bytes`, and
    /// present for a few samples at most.
    pub borrowed_bytes: u64,
    /// Processes, including zombies.
    pub processes: u64,
    /// Threads of all of them.
    pub threads: u64,
    /// Cumulative I/O; `None` if the kernel does not count it, or we may inspect no process.
    pub io: Option<Io>,
    /// There were more processes than a sample covers: all numbers are too low.
    pub was_cut: bool,
}

/// The highest values seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// See [`Sample::memory_bytes`].
    pub memory_bytes: u64,
    /// See [`Sample::processes`].
    pub processes: u64,
    /// See [`Sample::threads`].
    pub threads: u64,
}

/// A tree of processes that is sampled repeatedly.
#[derive(Debug)]
pub struct Tree {
    pub(crate) proc: Proc,
    root: i32,
    root_start: u64,
    pub(crate) known: HashMap<i32, Process>,
    finding: Finding,
    ledger: Ledger,
    peaks: Peaks,
    samples: u64,
    host_has_swap: bool,
    max_processes: usize,
    /// The number of processes whose files are kept open.
    max_held: usize,
    written_bytes: Option<u64>,
}

/// How children are found.
#[derive(Debug)]
enum Finding {
    /// By the list of each thread (`CONFIG_PROC_CHILDREN`).
    Lists,
    /// By reading every process of the host once per sample.
    Parents(HashMap<i32, Vec<i32>>),
}

/// One walk over the tree, before it is summed up.
#[derive(Debug, Default)]
struct Round {
    accounts: HashMap<Identity, Account>,
    sample: Sample,
    pending: Vec<i32>,
    /// Last known parents of processes that ended during the walk.
    bereft: BTreeSet<i32>,
    has_io: bool,
}

impl Tree {
    /// The tree below `root`, which must be alive. Pids are those of the host.
    pub fn new(root: Pid) -> Result<Self> {
        let mut proc = Proc::open()?;
        let pid = root.as_raw_nonzero().get();
        let file = proc.file(pid, "stat")?.ok_or(UsageError::Gone(pid))?;
        let text = proc.read(file.as_fd())?.ok_or(UsageError::Gone(pid))?;
        let root_start = procfs::stat(pid, text)?.start;
        let has_lists = proc.file(pid, &format!("task/{pid}/children"))?.is_some();
        Ok(Self {
            proc,
            root: pid,
            root_start,
            known: HashMap::new(),
            finding: if has_lists { Finding::Lists } else { Finding::Parents(HashMap::new()) },
            ledger: Ledger::default(),
            peaks: Peaks::default(),
            samples: 0,
            host_has_swap: rustix::system::sysinfo().totalswap > 0,
            max_processes: MAX_PROCESSES,
            max_held: processes_to_hold(),
            written_bytes: None,
        })
    }

    /// The highest values of all samples.
    pub fn peaks(&self) -> Peaks {
        self.peaks
    }

    pub(crate) fn root(&self) -> i32 {
        self.root
    }

    /// The bytes written to storage at the last sample with I/O counts.
    pub(crate) fn written_bytes(&self) -> Option<u64> {
        self.written_bytes
    }

    /// Reads every process once. [`UsageError::Gone`] if the first one has ended.
    pub fn sample(&mut self) -> Result<Sample> {
        self.with_room_to_open(Self::sample_once)
    }

    /// Repeats `work` with no files kept open if the descriptor limit was reached. The rest of this process needs
    /// descriptors too, and a limit must not fail because of an optimisation.
    pub(crate) fn with_room_to_open<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<T> {
        match work(self) {
            Err(UsageError::Sys(error))
                if matches!(error.errno, Errno::MFILE | Errno::NFILE) && self.max_held > 0 =>
            {
                self.max_held = 0;
                self.known.values_mut().for_each(Process::let_go);
                work(self)
            }
            done => done,
        }
    }

    fn sample_once(&mut self) -> Result<Sample> {
        self.samples += 1;
        if matches!(self.finding, Finding::Parents(_)) {
            let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
            for (pid, parent) in self.proc.parents()? {
                children.entry(parent).or_default().push(pid);
            }
            self.finding = Finding::Parents(children);
        }
        let mut round = Round { pending: vec![self.root], ..Round::default() };
        self.walk(&mut round)?;
        if self.known.get(&self.root).is_none_or(|root| {
            root.seen != self.samples || root.start != self.root_start || root.has_ended
        }) {
            return Err(UsageError::Gone(self.root));
        }
        // Processes that were reparented unnoticed are still there.
        round.pending.extend(self.unseen());
        self.walk(&mut round)?;
        for _ in 0..MAX_REPEATS {
            let heirs = self.heirs(&std::mem::take(&mut round.bereft));
            if heirs.is_empty() || round.sample.was_cut {
                break;
            }
            for heir in heirs {
                let children = self.children_of(heir)?;
                round.pending.extend(children);
            }
            self.walk(&mut round)?;
        }
        // A truncated sample does not show whether the others still exist.
        if !round.sample.was_cut {
            self.known.retain(|_, known| known.seen == self.samples);
        }
        Ok(self.sum_up(round))
    }

    fn sum_up(&mut self, round: Round) -> Sample {
        let Round { accounts, mut sample, has_io, .. } = round;
        let counters =
            if sample.was_cut { self.ledger.shown() } else { self.ledger.settle(accounts) };
        sample.cpu_user = of_ticks(counters.user);
        sample.cpu_system = of_ticks(counters.system);
        sample.io = has_io.then_some(counters.io);
        self.written_bytes = sample.io.map(|io| io.written_bytes).or(self.written_bytes);
        self.peaks.memory_bytes = self.peaks.memory_bytes.max(sample.memory_bytes);
        self.peaks.processes = self.peaks.processes.max(sample.processes);
        self.peaks.threads = self.peaks.threads.max(sample.threads);
        sample
    }

    fn unseen(&self) -> Vec<i32> {
        let mut unseen: Vec<(u64, i32)> = self
            .known
            .iter()
            .filter(|(_, known)| known.seen != self.samples)
            .map(|(pid, known)| (known.start, *pid))
            .collect();
        // The walk takes from the end, and ancestors must be read before descendants.
        unseen.sort_unstable_by(|a, b| b.cmp(a));
        unseen.into_iter().map(|(_, pid)| pid).collect()
    }

    /// The processes that may have become parents of orphans: the ancestors of the ended process (a subreaper is one,
    /// and so is the first process).
    fn heirs(&self, bereft: &BTreeSet<i32>) -> BTreeSet<i32> {
        let mut heirs = BTreeSet::new();
        for pid in bereft {
            let mut pid = *pid;
            while let Some(known) = self.known.get(&pid) {
                if !heirs.insert(pid) {
                    break;
                }
                pid = known.parent;
            }
        }
        heirs
    }

    /// Reads parents before children: see [`Ledger::settle`].
    fn walk(&mut self, round: &mut Round) -> Result<()> {
        while let Some(pid) = round.pending.pop() {
            if self.known.get(&pid).is_some_and(|known| known.seen == self.samples) {
                continue;
            }
            if round.accounts.len() >= self.max_processes {
                round.sample.was_cut = true;
                round.pending.clear();
                break;
            }
            self.visit(pid, round)?;
        }
        Ok(())
    }

    fn visit(&mut self, pid: i32, round: &mut Round) -> Result<()> {
        let before = self.known.remove(&pid);
        let last_parent = before.as_ref().map(|known| known.parent);
        let manner = Manner {
            has_children_lists: matches!(self.finding, Finding::Lists),
            host_has_swap: self.host_has_swap,
            may_hold_files: round.accounts.len() < self.max_held,
            sample: self.samples,
        };
        let Some(read) = Process::read(&mut self.proc, pid, before, manner)? else {
            round.bereft.extend(last_parent.into_iter().chain([self.root]));
            return Ok(());
        };
        let mut process = read.process;
        let bytes = process.memory.bytes();
        process.borrows = process.looks <= BORROWING_LOOKS
            && bytes >= BORROWING_BYTES
            && self
                .known
                .get(&process.parent)
                .is_some_and(|parent| process.memory.resembles(&parent.memory));
        let sum = match process.borrows {
            true => &mut round.sample.borrowed_bytes,
            false => &mut round.sample.memory_bytes,
        };
        *sum = sum.saturating_add(bytes);
        round.sample.processes += 1;
        round.sample.threads += process.threads;
        round.has_io |= read.has_io;
        round.accounts.insert(Identity { pid, start: process.start }, read.account);
        self.known.insert(pid, process);
        match &self.finding {
            Finding::Lists => round.pending.extend(read.children),
            Finding::Parents(children) => {
                round.pending.extend(children.get(&pid).into_iter().flatten());
            }
        }
        Ok(())
    }

    fn children_of(&mut self, pid: i32) -> Result<Vec<i32>> {
        match (&self.finding, self.known.get(&pid)) {
            (Finding::Lists, Some(known)) => {
                find_children(&mut self.proc, pid, known.threads, None)
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn processes_to_hold() -> usize {
    let may_open = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let files = (may_open / 4).min(MAX_HELD_OPEN);
    usize::try_from(files / HELD_A_PROCESS).unwrap_or(0)
}

fn of_ticks(ticks: u64) -> Duration {
    let second = rustix::param::clock_ticks_per_second().max(1);
    let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(second);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
