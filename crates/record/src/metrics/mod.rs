//! Counts what happens in runs (TEL-1): the six metrics, and clean-ups, decisions, outcomes, limits.
//!
//! Its input is the events of a run and its report. Results are added up over runs and written as Prometheus text.
//! Nothing must depend on these numbers, and none of them may name a path or a session.

mod file;
mod points;
mod table;
mod text;

pub use crate::malformed::Malformed;
pub use file::MetricsFile;
pub use points::{Data, Measure, Measured, Point};
use table::{Family, Shape};

use crate::decision::Decision;
use crate::event::EventKind;
use crate::report::RunReport;
use serde::Serialize;
use std::collections::BTreeMap;

/// The counts of one run or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    counters: BTreeMap<&'static str, Counter>,
    histograms: BTreeMap<&'static str, Histogram>,
}

/// By label values, in the order of the table.
type Counter = BTreeMap<Vec<String>, u64>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Histogram {
    /// The count of each bucket alone; the last one is for values above every bound.
    buckets: Vec<u64>,
    sum: u64,
}

impl Histogram {
    fn of(bounds: &[u64]) -> Self {
        Self { buckets: vec![0; bounds.len() + 1], sum: 0 }
    }
}

impl Metrics {
    /// Counts one event of a run.
    pub fn hear(&mut self, kind: &EventKind) {
        match kind {
            EventKind::SandboxCreated(created) => {
                self.count(&table::SANDBOXES_CREATED, &[&created.run.sandbox_level], 1);
            }
            EventKind::SandboxDestroyed(destroyed) => {
                self.count(&table::CLEANUPS, &["done"], 1);
                let lifetime = destroyed.duration_ms.saturating_mul(1000);
                self.observe(&table::SANDBOX_LIFETIME, lifetime);
            }
            EventKind::EscapeAttempt(attempt) => {
                let (indicator, severity) = (word(&attempt.indicator), word(&attempt.severity));
                self.count(&table::ESCAPE_ATTEMPTS, &[&indicator, &severity], 1);
            }
            EventKind::EscapeResponse(response) => {
                self.count(&table::ESCAPE_RESPONSES, &[response.action.word()], 1);
            }
            EventKind::Quarantined(_) => self.count(&table::QUARANTINED, &[], 1),
            EventKind::ResourceLimitExceeded(exceeded) => {
                self.count_once(&table::LIMITS_HIT, &[&exceeded.resource]);
            }
            EventKind::AccessDecided(decided) => {
                let decision = match decided.decision {
                    Decision::Allowed => "allowed",
                    Decision::Denied => "denied",
                };
                self.count(&table::DECISIONS, &[decision, source_of(&decided.source)], 1);
                if decided.question.is_some() {
                    self.count(&table::QUESTIONS, &[], 1);
                    self.observe(&table::QUESTION_WAIT, decided.latency_us);
                }
            }
            EventKind::EventsSummed(sum) if sum.what == "access" => {
                let source = source_of(sum.source.as_deref().unwrap_or_default());
                self.count(&table::DECISIONS, &[&word(&sum.decision), source], sum.count);
                if sum.questions > 0 {
                    self.count(&table::QUESTIONS, &[], sum.questions);
                }
            }
            EventKind::NetworkAttempt(attempt) => {
                self.count(&table::CONNECTIONS, &[&word(&attempt.action)], attempt.count);
            }
            EventKind::ConnectionClosed(closed) => {
                self.count(&table::NETWORK_BYTES, &["sent"], closed.sent);
                self.count(&table::NETWORK_BYTES, &["received"], closed.received);
            }
            EventKind::NameQueried(queried) => {
                let answer = queried.answer.to_lowercase();
                self.count(&table::NAME_QUERIES, &[&answer], queried.count);
                if queried.suspicion.is_some() {
                    self.count(&table::SUSPECTED_NAMES, &[], queried.count);
                }
            }
            EventKind::HostDecided(decided) => {
                let labels = [word(&decided.decision), decided.source.clone()];
                self.count(&table::HOST_DECISIONS, &[&labels[0], &labels[1]], 1);
                if decided.question.is_some() {
                    self.count(&table::QUESTIONS, &[], 1);
                    self.observe(&table::QUESTION_WAIT, decided.latency_us);
                }
            }
            EventKind::SandboxExecuted(executed) => {
                self.observe(&table::SETUP, executed.setup_us);
            }
            EventKind::SessionExecEnded(ended) if ended.failure.is_none() => {
                self.observe(&table::SESSION_COMMANDS, ended.duration_ms.saturating_mul(1000));
            }
            // The log may contain only some of these; the report counts all.
            EventKind::PolicyViolation(_)
            | EventKind::SyscallBlocked(_)
            | EventKind::EventsSummed(_) => {}
            EventKind::SessionExec(_)
            | EventKind::SessionExecEnded(_)
            | EventKind::SessionExtended(_)
            | EventKind::SessionClaimed(_)
            | EventKind::SessionEnding(_)
            | EventKind::ChangesApplied(_)
            | EventKind::ChangesHeld(_)
            | EventKind::ChangesDiscarded(_)
            | EventKind::FileOperation(_)
            | EventKind::SandboxEntered(_)
            | EventKind::SandboxValidated(_)
            | EventKind::SandboxExited(_)
            | EventKind::SandboxFailed(_)
            | EventKind::SignalForwarded(_)
            | EventKind::AccessRevoked(_)
            | EventKind::CheckpointMade(_)
            | EventKind::RolledBack(_)
            | EventKind::SessionForked(_)
            | EventKind::CacheWritesLost(_)
            | EventKind::Released(_)
            | EventKind::ApprovalRecorded(_) => {}
        }
    }

    /// Counts what is in the report of a run. All events of that run, and of no other, must have been counted before.
    pub fn conclude(&mut self, report: &RunReport) {
        self.count(&table::RUNS, &[&word(&report.outcome)], 1);
        if let Some(usage) = &report.usage {
            self.count(&table::CPU, &["user"], usage.cpu_user_us);
            self.count(&table::CPU, &["system"], usage.cpu_system_us);
            if let Some(peak) = usage.peak_memory_bytes {
                self.observe(&table::PEAK_MEMORY, peak);
            }
            for (family, direction, counted) in [
                (&table::IO_BYTES, "read", usage.read_bytes),
                (&table::IO_BYTES, "write", usage.written_bytes),
                (&table::IO_OPERATIONS, "read", usage.reads),
                (&table::IO_OPERATIONS, "write", usage.writes),
            ] {
                self.count(family, &[direction], counted.unwrap_or(0));
            }
        }
        for limit in report.limits.iter().filter(|limit| limit.reached.is_some()) {
            self.count_once(&table::LIMITS_HIT, &[&limit.key]);
        }
        for write in &report.protected_writes {
            self.count(&table::POLICY_VIOLATIONS, &["protected-write"], write.count);
        }
        for refused in &report.refused_executions {
            self.count(&table::POLICY_VIOLATIONS, &["execution"], refused.count);
        }
        for blocked in &report.blocked_calls {
            self.count(&table::BLOCKED_SYSCALLS, &[&blocked.name], blocked.count);
        }
        let unaccounted =
            self.total(&table::SANDBOXES_CREATED).saturating_sub(self.total(&table::CLEANUPS));
        if unaccounted > 0 {
            self.count(&table::CLEANUPS, &["failed"], unaccounted);
        }
    }

    /// Counts what a run put right of what killed supervisors of sessions left.
    pub fn swept(&mut self, marked: u64, removed: u64, failed: u64) {
        for (result, count) in [("marked", marked), ("removed", removed), ("failed", failed)] {
            self.count(&table::SESSIONS_SWEPT, &[result], count);
        }
    }

    /// Counts what could not be sent by OTLP.
    pub fn telemetry_lost(&mut self, queue_full: u64, not_sent: u64) {
        for (reason, count) in [("queue-full", queue_full), ("not-sent", not_sent)] {
            self.count(&table::TELEMETRY_LOST, &[reason], count);
        }
    }

    /// Adds the counts of another instance.
    pub fn add(&mut self, other: &Self) {
        for (name, counter) in &other.counters {
            let sum = self.counters.entry(name).or_default();
            for (labels, count) in counter {
                let value = sum.entry(labels.clone()).or_default();
                *value = value.saturating_add(*count);
            }
        }
        for (name, histogram) in &other.histograms {
            let Some(sum) = self.histograms.get_mut(name) else {
                self.histograms.insert(name, histogram.clone());
                continue;
            };
            sum.sum = sum.sum.saturating_add(histogram.sum);
            for (bucket, count) in sum.buckets.iter_mut().zip(&histogram.buckets) {
                *bucket = bucket.saturating_add(*count);
            }
        }
    }

    fn count(&mut self, family: &'static Family, labels: &[&str], by: u64) {
        let value = self.counter(family, labels);
        *value = value.saturating_add(by);
    }

    /// For what both events and report contain.
    fn count_once(&mut self, family: &'static Family, labels: &[&str]) {
        *self.counter(family, labels) = 1;
    }

    fn counter(&mut self, family: &'static Family, labels: &[&str]) -> &mut u64 {
        let values =
            family.labels.iter().zip(labels).map(|(label, value)| label.value(value)).collect();
        self.counters.entry(family.name).or_default().entry(values).or_default()
    }

    fn observe(&mut self, family: &'static Family, value: u64) {
        let Shape::Histogram(bounds) = &family.shape else { return };
        let histogram = self.histograms.entry(family.name).or_insert_with(|| Histogram::of(bounds));
        let bucket = bounds.partition_point(|bound| *bound < value);
        histogram.buckets[bucket] = histogram.buckets[bucket].saturating_add(1);
        histogram.sum = histogram.sum.saturating_add(value);
    }

    fn total(&self, family: &Family) -> u64 {
        let counter = self.counters.get(family.name).into_iter().flat_map(BTreeMap::values);
        counter.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// The word for it in events and reports, in lower case.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.to_lowercase(),
        _ => String::new(),
    }
}

/// One word per source, whichever process recorded it.
fn source_of(recorded: &str) -> &str {
    match recorded {
        "nobody" => "nobody-to-ask",
        "on_ask" => "on-ask",
        source => source,
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
