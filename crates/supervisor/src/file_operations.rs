//! Operations on files for the audit log, where the policy asks for them (AUD-2). A flood of them must neither fill the log nor
//! slow anything down: they have a budget, and the rest is counted.

use crate::log_budget::{Excess, LogBudget, Omitted, SumKey};
use palisade_broker::FileOperation as Told;
use palisade_record::{EventKind, FileOperation};
use std::time::{Duration, Instant};

/// This many are recorded at once, or after a quiet time, and one more after each `REFILL`.
const MAX_LOGGED: u64 = 2000;
const REFILL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct FileOperations {
    budget: LogBudget,
}

impl FileOperations {
    pub(crate) fn new(excess: Excess) -> Self {
        Self { budget: LogBudget::new(MAX_LOGGED, REFILL, excess) }
    }

    pub(crate) fn hear(&mut self, told: Told, log: &mut dyn FnMut(EventKind)) {
        let now = Instant::now();
        let path = text(&told.path);
        if told.missed > 0 {
            self.omit(told.missed, None, now);
        }
        if !self.budget.take(now) {
            return self.omit(1, Some(path), now);
        }
        log(EventKind::FileOperation(Box::new(FileOperation {
            op: told.call,
            path,
            pid: Some(told.pid),
            executable: Some(text(&told.executable)),
        })));
    }

    fn omit(&mut self, count: u64, path: Option<String>, now: Instant) {
        let key = SumKey { what: "file-operation", is_allowed: true, source: None };
        self.budget.add_up(Omitted { key, path, count, was_asked: false }, now);
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.budget.due()
    }

    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<EventKind> {
        self.budget.take_due(now)
    }

    pub(crate) fn take_sums(&mut self) -> Vec<EventKind> {
        self.budget.take_all()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Excess, FileOperations, MAX_LOGGED, Told};
    use palisade_record::EventKind;

    /// Proves: AUD-2 file-operations
    #[test]
    fn a_flood_is_counted() {
        let mut operations = FileOperations::new(Excess::Summed);
        let mut logged = Vec::new();
        for number in 0..10_000 {
            let told = Told {
                call: "openat".to_owned(),
                path: format!("/p/{number}").into_bytes(),
                pid: 7,
                executable: b"/bin/sh".to_vec(),
                missed: u64::from(number == 5000) * 11,
            };
            operations.hear(told, &mut |kind| logged.push(kind));
        }
        assert!(logged.len() as u64 >= MAX_LOGGED && logged.len() < 5000, "{}", logged.len());
        let sums = operations.take_sums();
        let [EventKind::EventsSummed(sum)] = sums.as_slice() else { panic!("{sums:?}") };
        assert_eq!(sum.count + logged.len() as u64, 10_011);
    }
}
