//! The free space of the file systems with watched trees: one call each, however large the trees. Other processes
//! change it too, so it must never count alone. But it shows what was written and hidden from every other measurement.

use palisade_sys::SysError;

use crate::disk_use::DiskUse;
use crate::error::Result;
use crate::walk::Root;

/// File systems that account for deleted files at once. Others (btrfs, ZFS) do so seconds later, or never if a snapshot
/// keeps them: deleting would not reduce the count. The behaviour of overlays is unknown. See statfs(2).
const PROMPT: [u64; 2] = [0xef53, 0x5846_5342];

/// The free space of the file systems below some trees.
#[derive(Debug)]
pub(crate) struct Space {
    systems: Vec<System>,
    /// What was lost at the previous look.
    lost_before: u64,
    lost: u64,
}

#[derive(Debug)]
struct System {
    /// The index of one of its trees.
    root: usize,
    device: u64,
    is_prompt: bool,
    at_baseline: DiskUse,
    at_round: DiskUse,
    now: DiskUse,
}

impl Space {
    /// Records the present free space.
    pub(crate) fn baseline(roots: &[Root]) -> Result<Self> {
        let mut systems: Vec<System> = Vec::new();
        for (number, root) in roots.iter().enumerate() {
            if systems.iter().any(|known| known.device == root.device) {
                continue;
            }
            let kind = rustix::fs::fstatfs(&root.directory).map_err(|errno| failed(root, errno))?;
            let is_prompt = u64::try_from(kind.f_type).is_ok_and(|kind| PROMPT.contains(&kind));
            let free = free(root)?;
            systems.push(System {
                root: number,
                device: root.device,
                is_prompt,
                at_baseline: free,
                at_round: free,
                now: free,
            });
        }
        Ok(Self { systems, lost_before: 0, lost: 0 })
    }

    /// Reads the free space again.
    pub(crate) fn look(&mut self, roots: &[Root]) -> Result<()> {
        for system in &mut self.systems {
            if let Some(root) = roots.get(system.root) {
                system.now = free(root)?;
            }
        }
        let prompt = self.systems.iter().filter(|system| system.is_prompt);
        let lost = prompt.map(|system| system.at_baseline.minus(system.now).bytes);
        self.lost_before = self.lost;
        self.lost = lost.fold(0, u64::saturating_add);
        Ok(())
    }

    /// Whether all of them report free space at once.
    pub(crate) fn is_prompt(&self) -> bool {
        self.systems.iter().all(|system| system.is_prompt)
    }

    /// How much less was free at the last look than at the baseline.
    pub(crate) fn lost(&self) -> DiskUse {
        let lost = self.systems.iter().map(|system| system.at_baseline.minus(system.now));
        lost.fold(DiskUse::default(), DiskUse::plus)
    }

    /// Marks the beginning of a round, which will find what exists now.
    pub(crate) fn mark(&mut self) {
        for system in &mut self.systems {
            system.at_round = system.now;
        }
    }

    /// How much less is free than at the beginning of the last round.
    pub(crate) fn lost_since_mark(&self) -> DiskUse {
        let lost = self.systems.iter().map(|system| system.at_round.minus(system.now));
        lost.fold(DiskUse::default(), DiskUse::plus)
    }

    /// How many bytes less are free than at the baseline, according to two consecutive looks: releasing a large file
    /// takes time.
    pub(crate) fn lost_for_a_while(&self) -> u64 {
        self.lost.min(self.lost_before)
    }
}

fn free(root: &Root) -> Result<DiskUse> {
    let stat = rustix::fs::fstatvfs(&root.directory).map_err(|errno| failed(root, errno))?;
    Ok(DiskUse { bytes: stat.f_bfree.saturating_mul(stat.f_frsize), inodes: stat.f_ffree })
}

fn failed(root: &Root, errno: palisade_sys::Errno) -> SysError {
    SysError::new("fstatfs", root.path.display().to_string(), errno)
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
