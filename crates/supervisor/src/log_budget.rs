//! How many events of one kind are recorded one by one, and the sums of the rest (AUD-2).
//!
//! A flood of one kind must neither fill the audit log nor use up the room of another kind: whoever records several
//! kinds has a budget for each. What exceeds a budget is counted, and the count is recorded after a while.

use palisade_record::{Decision, EventKind, EventsSummed};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long after its first event a sum is recorded.
const SUM_AFTER: Duration = Duration::from_secs(1);
/// Each time later, up to this, for as long as the flood goes on.
const SUM_AFTER_AT_MOST: Duration = Duration::from_secs(60);

/// What becomes of events that exceed a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Excess {
    #[default]
    Summed,
    /// Only without the layer `audit-budgets`: they are not recorded at all, and no budget is ever filled again.
    Dropped,
}

impl Excess {
    pub(crate) fn of(plan: &palisade_plan::model::Plan) -> Self {
        if plan.sandbox.hardening.audit_budgets { Self::Summed } else { Self::Dropped }
    }
}

/// Which events are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SumKey {
    /// One of the words of [`EventsSummed::what`].
    pub(crate) what: &'static str,
    pub(crate) is_allowed: bool,
    pub(crate) source: Option<String>,
}

/// One event that exceeded its budget.
#[derive(Clone, Debug)]
pub(crate) struct Omitted {
    pub(crate) key: SumKey,
    pub(crate) path: Option<String>,
    pub(crate) count: u64,
    pub(crate) was_asked: bool,
}

#[derive(Debug)]
struct Sum {
    count: u64,
    questions: u64,
    first: Instant,
    last: Instant,
    last_path: Option<String>,
}

#[derive(Debug)]
pub(crate) struct LogBudget {
    burst: u64,
    /// One more is allowed after each of these.
    refill: Duration,
    excess: Excess,
    left: u64,
    filled: Option<Instant>,
    sums: BTreeMap<SumKey, Sum>,
    due: Option<Instant>,
    interval: Duration,
    flushed: Option<Instant>,
}

impl LogBudget {
    /// This many events at once, and one more after each `refill`.
    pub(crate) fn new(burst: u64, refill: Duration, excess: Excess) -> Self {
        Self {
            burst,
            refill,
            excess,
            left: burst,
            filled: None,
            sums: BTreeMap::new(),
            due: None,
            interval: SUM_AFTER,
            flushed: None,
        }
    }

    /// Whether one more event is recorded by itself.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let is_within = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_within
    }

    fn fill(&mut self, now: Instant) {
        let filled = *self.filled.get_or_insert(now);
        if self.excess == Excess::Dropped {
            return;
        }
        let passed = now.saturating_duration_since(filled).as_millis();
        let more = u64::try_from(passed / self.refill.as_millis().max(1)).unwrap_or(u64::MAX);
        if more == 0 {
            return;
        }
        self.left = self.left.saturating_add(more).min(self.burst);
        let used = u32::try_from(more).ok().and_then(|more| self.refill.checked_mul(more));
        self.filled = Some(used.map_or(now, |used| filled + used));
    }

    /// Counts an event that is not recorded by itself.
    pub(crate) fn add_up(&mut self, omitted: Omitted, now: Instant) {
        if self.excess == Excess::Dropped {
            return;
        }
        if self.due.is_none() {
            let goes_on = self.flushed.is_some_and(|flushed| now < flushed + self.interval);
            let longer = (self.interval * 2).min(SUM_AFTER_AT_MOST);
            self.interval = if goes_on { longer } else { SUM_AFTER };
            self.due = Some(now + self.interval);
        }
        let Omitted { key, path, count, was_asked } = omitted;
        let sum = self.sums.entry(key).or_insert_with(|| Sum {
            count: 0,
            questions: 0,
            first: now,
            last: now,
            last_path: None,
        });
        sum.count += count;
        sum.questions += u64::from(was_asked);
        sum.last = now;
        sum.last_path = path.or(sum.last_path.take());
    }

    /// When the next sums are to be recorded.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The sums whose time has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<EventKind> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.flushed = Some(now);
        self.take_all()
    }

    /// All sums: at the end of a run.
    pub(crate) fn take_all(&mut self) -> Vec<EventKind> {
        self.due = None;
        std::mem::take(&mut self.sums).into_iter().map(|(key, sum)| summed(key, sum)).collect()
    }
}

fn summed(key: SumKey, sum: Sum) -> EventKind {
    let duration = sum.last.saturating_duration_since(sum.first).as_millis();
    EventKind::EventsSummed(Box::new(EventsSummed {
        what: key.what.to_owned(),
        decision: if key.is_allowed { Decision::Allowed } else { Decision::Denied },
        source: key.source,
        count: sum.count,
        questions: sum.questions,
        last_path: sum.last_path,
        duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
    }))
}

#[cfg(test)]
#[path = "log_budget_tests.rs"]
mod tests;
