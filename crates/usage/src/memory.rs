//! One process's memory at low cost: `statm` at every look, `status` only if `statm` does not determine how much of the
//! shared pages is shared memory. Must never be too low, except for what moved between files and shared memory inside
//! one process without changing their sum.

use crate::procfs::{Resident, Statm};

/// How much shared pages may change before `status`, which costs three times as much, is read again.
const UNEXPLAINED_BYTES: u64 = 1 << 20;

/// What is known of a process's memory, with the last `status`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    anonymous: u64,
    shared: u64,
    explained: Option<Explained>,
}

#[derive(Clone, Copy, Debug)]
struct Explained {
    shared: u64,
    resident: Resident,
}

impl Memory {
    /// Records a new `statm`.
    pub(crate) fn note(&mut self, statm: Statm, page_size: u64) {
        self.anonymous = statm.resident.saturating_sub(statm.shared).saturating_mul(page_size);
        self.shared = statm.shared.saturating_mul(page_size);
    }

    /// Whether `status` should be read.
    pub(crate) fn needs_status(&self, host_has_swap: bool) -> bool {
        host_has_swap
            || self
                .explained
                .is_none_or(|known| self.shared.abs_diff(known.shared) > UNEXPLAINED_BYTES)
    }

    /// Records a new `status`.
    pub(crate) fn explain(&mut self, resident: Resident) {
        self.explained = Some(Explained { shared: self.shared, resident });
    }

    /// Whether this could be the same memory as another process's: equal in each kind, up to what other threads change
    /// between two looks.
    pub(crate) fn resembles(&self, other: &Self) -> bool {
        let close = |one: u64, another: u64| {
            one.abs_diff(another) <= UNEXPLAINED_BYTES.saturating_add(another / 100)
        };
        close(self.anonymous, other.anonymous) && close(self.shared, other.shared)
    }

    /// Memory that belongs to the process alone or to it and its relatives. File pages are not counted: the kernel can
    /// drop them. Unexplained growth counts as shared memory.
    pub(crate) fn bytes(&self) -> u64 {
        let shared = match self.explained {
            None => self.shared,
            Some(known) => {
                known.resident.swap
                    + known.resident.shmem
                    + self.shared.saturating_sub(known.shared)
            }
        };
        self.anonymous.saturating_add(shared)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
