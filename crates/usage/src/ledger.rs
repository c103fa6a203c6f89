//! Keeps the usage of processes after their end. A parent that waits for a child takes over the child's account, so the
//! sum over living processes stays complete. Where no parent waits (`SIGCHLD` ignored, see wait(2)) the kernel drops
//! the account, and the ledger keeps the last value seen. Must never count anything twice.

use std::collections::HashMap;

/// Cumulative I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage, or still to be written.
    pub written_bytes: u64,
    /// Read calls.
    pub reads: u64,
    /// Write calls.
    pub writes: u64,
}

/// The counters of one process, or a sum of them. CPU time is in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) user: u64,
    pub(crate) system: u64,
    pub(crate) io: Io,
}

impl Counters {
    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user: join(self.user, other.user),
            system: join(self.system, other.system),
            io: Io {
                read_bytes: join(self.io.read_bytes, other.io.read_bytes),
                written_bytes: join(self.io.written_bytes, other.io.written_bytes),
                reads: join(self.io.reads, other.io.reads),
                writes: join(self.io.writes, other.io.writes),
            },
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }
}

/// Identifies a process: its pid may be reused, but not with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    pub(crate) start: u64,
}

/// The usage of one process so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// Its own usage and that of the children it waited for.
    pub(crate) total: Counters,
    /// The part that includes waited-for children. Where the kernel does not separate it (I/O), everything.
    pub(crate) collected: Counters,
}

/// The accounts of the last sample, and those of ended processes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: HashMap<Identity, Account>,
    /// Of processes that disappeared in the last sample: their parent may have been read just before it waited for
    /// them.
    owed: Counters,
    /// Of processes that no parent waited for.
    lost: Counters,
    shown: Counters,
}

impl Ledger {
    /// The sum so far; never less than the last one. `now` contains every living process, each read after its
    /// ancestors: an end during the sample is then counted late, but not twice.
    pub(crate) fn settle(&mut self, now: HashMap<Identity, Account>) -> Counters {
        let mut living = Counters::default();
        let mut collected = Counters::default();
        for (identity, account) in &now {
            living = living.plus(account.total);
            if let Some(before) = self.accounts.get(identity) {
                collected = collected.plus(account.collected.minus(before.collected));
            }
        }
        let gone = self.accounts.iter().filter(|(identity, _)| !now.contains_key(identity));
        let left = gone.fold(Counters::default(), |sum, (_, account)| sum.plus(account.total));

        // A process that disappeared a sample ago has been reaped by now, if its parent waits at all.
        self.lost = self.lost.plus(self.owed.minus(collected));
        self.owed = left.minus(collected.minus(self.owed));
        self.accounts = now;
        self.shown = self.shown.max(living.plus(self.owed).plus(self.lost));
        self.shown
    }

    pub(crate) fn shown(&self) -> Counters {
        self.shown
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
