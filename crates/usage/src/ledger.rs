//! Keeps what processes used beyond their deaths. A parent that waits for a child takes the child's
//! account over, so the sum over the living stays whole; where nobody waits (`SIGCHLD` ignored, see wait(2))
//! the kernel drops it, and the ledger remembers what it saw last. Must never count anything twice.

use std::collections::HashMap;

/// Read and written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage, or to be sent.
    pub written_bytes: u64,
    /// Calls that read.
    pub reads: u64,
    /// Calls that wrote.
    pub writes: u64,
}

/// One process's numbers, or a sum of them. CPU time in clock ticks.
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

/// A process: its number may come back, its number and start time do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    pub(crate) start: u64,
}

/// What one process has used up to now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// Its own use and that of the children it waited for.
    pub(crate) total: Counters,
    /// The part in which waited-for children show. Where the kernel does not tell it apart (I/O), all.
    pub(crate) collected: Counters,
}

/// The accounts of the last sample, and what the dead left behind.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: HashMap<Identity, Account>,
    /// Left by processes that disappeared in the last sample: their parent may have been read just
    /// before it waited for them.
    owed: Counters,
    /// Left by processes that nobody waited for.
    lost: Counters,
    shown: Counters,
}

impl Ledger {
    /// The sum so far; never less than the last one. `now` holds every living process, each read after
    /// its ancestors: then a death during the sample is seen late, but not twice.
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

        // A process that was gone a sample ago has been reaped by now, if its parent waits.
        self.lost = self.lost.plus(self.owed.minus(collected));
        self.owed = left.minus(collected.minus(self.owed));
        self.accounts = now;
        self.shown = self.shown.max(living.plus(self.owed).plus(self.lost));
        self.shown
    }

    /// The last sum.
    pub(crate) fn shown(&self) -> Counters {
        self.shown
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
