//! Looks at a tree as often as its limits require, and reports when one is exceeded. The caller stops the run. Must
//! never report memory that is merely shared: it counts exactly before it reports an excess.

use std::time::{Duration, Instant};

use palisade_sys::Pid;

use crate::decide::{Bounds, Exceeded, Observation, UsageVerdict, decide};
use crate::disk_use::HeldFiles;
use crate::effort::Effort;
use crate::error::Result;
use crate::tree::{Peaks, Sample, Tree};

/// The maximum age of the last look at descriptors while memory is limited.
const DESCRIPTORS_AGE: Duration = Duration::from_millis(50);

/// Looks at descriptors may take at most one part in this of a core.
const DESCRIPTORS_FACTOR: u32 = 50;

/// A tree, its limits, and when to look next.
#[derive(Debug)]
pub struct Watchdog {
    tree: Tree,
    bounds: Bounds,
    memfd_bytes: u64,
    memory_peak: u64,
    next_descriptors: Option<Instant>,
    /// Memory and CPU time at the last look, and how many consecutive looks had these values.
    unchanged: (u64, Duration, u32),
}

/// The result of one look.
#[derive(Clone, Copy, Debug)]
pub struct Looked {
    pub sample: Sample,
    /// Memory including memory files; shared pages are counted once if that made a difference.
    pub memory_bytes: u64,
    /// Whether the run is within its limits, and when to look again.
    pub verdict: UsageVerdict,
}

impl Watchdog {
    /// Watches the tree below `root`.
    pub fn new(root: Pid, bounds: Bounds) -> Result<Self> {
        let tree = Tree::new(root)?;
        Ok(Self {
            tree,
            bounds,
            memfd_bytes: 0,
            memory_peak: 0,
            next_descriptors: None,
            unchanged: (0, Duration::ZERO, 0),
        })
    }

    /// Looks once. `own_files` is what file systems in memory hold ([`crate::DiskWatch::own_bytes`]). A mapped file
    /// there counts twice, but not in an exact count. After any error but [`Gone`](crate::UsageError::Gone) the limits
    /// can no longer be enforced.
    pub fn look(&mut self, own_files: u64) -> Result<Looked> {
        let effort = Effort::begin();
        let sample = self.tree.sample()?;
        let mut seen = Observation {
            memory_bytes: sample.memory_bytes,
            doubtful_bytes: sample.borrowed_bytes,
            cpu_time: sample.cpu_user.saturating_add(sample.cpu_system),
            was_cut: sample.was_cut,
            idle_looks: 0,
        };
        if self.bounds.memory.is_some() {
            self.look_at_memory(&mut seen, own_files)?;
        }
        self.memory_peak = self.memory_peak.max(seen.memory_bytes);
        seen.idle_looks = self.idle_looks(&seen);
        let verdict = decide(&self.bounds, &seen, effort.spent());
        Ok(Looked { sample, memory_bytes: seen.memory_bytes, verdict })
    }

    fn idle_looks(&mut self, seen: &Observation) -> u32 {
        let (memory, cpu_time, looks) = self.unchanged;
        let is_same = (memory, cpu_time) == (seen.memory_bytes, seen.cpu_time);
        let looks = if is_same { looks.saturating_add(1) } else { 0 };
        self.unchanged = (seen.memory_bytes, seen.cpu_time, looks);
        looks
    }

    /// The highest values seen. Memory is that of [`Looked::memory_bytes`].
    pub fn peaks(&self) -> Peaks {
        Peaks { memory_bytes: self.memory_peak, ..self.tree.peaks() }
    }

    /// The tree, for details beyond a look.
    pub fn tree(&mut self) -> &mut Tree {
        &mut self.tree
    }

    fn look_at_memory(&mut self, seen: &mut Observation, own_files: u64) -> Result<()> {
        let cheap = seen.memory_bytes;
        let mut held = None;
        if self.next_descriptors.is_none_or(|due| Instant::now() >= due) {
            held = Some(self.look_at_descriptors(seen)?);
        }
        seen.memory_bytes = cheap.saturating_add(self.memfd_bytes).saturating_add(own_files);
        if is_over_memory(&self.bounds, seen) {
            let held = match held {
                Some(held) => held,
                None => self.look_at_descriptors(seen)?,
            };
            seen.memory_bytes = self.tree.exact(&held)?.memory_bytes.saturating_add(own_files);
        }
        Ok(())
    }

    fn look_at_descriptors(&mut self, seen: &mut Observation) -> Result<HeldFiles> {
        let effort = Effort::begin();
        let held = self.tree.held_files()?;
        self.memfd_bytes = held.memfd_bytes;
        seen.was_cut |= held.was_cut;
        let pause = effort.spent().saturating_mul(DESCRIPTORS_FACTOR).max(DESCRIPTORS_AGE);
        self.next_descriptors = Some(Instant::now() + pause);
        Ok(held)
    }
}

fn is_over_memory(bounds: &Bounds, seen: &Observation) -> bool {
    let without_pause = decide(bounds, seen, Duration::ZERO);
    matches!(without_pause, UsageVerdict::Over(Exceeded::Memory { .. }))
}

#[cfg(test)]
#[path = "watchdog_tests.rs"]
mod tests;
