//! Which decisions about files are recorded one by one (AUD-2).
//!
//! What came into view has to be in the log, whatever else happened: the first grant of every path is recorded, and so
//! is every answer of a person. Repeated grants and denials have a budget each.

use crate::log_budget::{Excess, LogBudget, Omitted, SumKey};
use palisade_record::{AccessDecided, Decision, EventKind};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

/// So many decisions of each kind are recorded one by one, at first or after a quiet time, and one more after each `REFILL`.
const BURST: u64 = 1000;
const REFILL: Duration = Duration::from_millis(100);
/// Granted paths that are remembered. Of what is granted beyond that, every grant counts as the first.
const MAX_REMEMBERED: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct AccessRecords {
    excess: Excess,
    grants: LogBudget,
    denials: LogBudget,
    /// Hashes of what was granted, by path and access. The key is random: nobody can make two paths look alike.
    granted: HashSet<u64>,
    hasher: RandomState,
}

impl AccessRecords {
    pub(super) fn new(excess: Excess) -> Self {
        let budget = || LogBudget::new(BURST, REFILL, excess);
        Self {
            excess,
            grants: budget(),
            denials: budget(),
            granted: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// The event, if it is recorded by itself; otherwise it is counted.
    pub(super) fn admit(
        &mut self,
        event: AccessDecided,
        is_by_person: bool,
        now: Instant,
    ) -> Option<EventKind> {
        let is_allowed = event.decision == Decision::Allowed;
        let is_first = is_allowed && self.is_first_grant(&event);
        let budget = match is_allowed && self.excess == Excess::Summed {
            true => &mut self.grants,
            false => &mut self.denials,
        };
        if is_by_person || is_first || budget.take(now) {
            return Some(EventKind::AccessDecided(Box::new(event)));
        }
        let key = SumKey { what: "access", is_allowed, source: Some(event.source) };
        let was_asked = event.question.is_some();
        budget.add_up(Omitted { key, path: Some(event.path), count: 1, was_asked }, now);
        None
    }

    fn is_first_grant(&mut self, event: &AccessDecided) -> bool {
        if self.excess == Excess::Dropped {
            return false;
        }
        let hash = self.hasher.hash_one((&event.path, &event.access));
        self.granted.len() >= MAX_REMEMBERED || self.granted.insert(hash)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.grants.due().into_iter().chain(self.denials.due()).min()
    }

    pub(super) fn take_due(&mut self, now: Instant) -> Vec<EventKind> {
        let mut due = self.grants.take_due(now);
        due.extend(self.denials.take_due(now));
        due
    }

    /// All that was only counted so far.
    pub(super) fn take_all(&mut self) -> Vec<EventKind> {
        let mut all = self.grants.take_all();
        all.extend(self.denials.take_all());
        all
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
