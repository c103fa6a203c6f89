//! What a run used and which of its limits it reached, added up from whoever counted. Pure.

use crate::control::interface::Event;
use palisade_launch::{GroupUsage, Hits, RunUsage};
use palisade_plan::limit::{CgroupHome, Holder, LimitKind};
use palisade_plan::model::Plan;
use palisade_record::{LimitReport, RunReport};
use palisade_usage::{Io, Looked, Peaks};
use std::collections::BTreeMap;
use std::time::Duration;

/// Pid 1 is ours.
const OWN_TASKS: u64 = 1;

/// How a limit was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    usage: Option<u64>,
    times: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Tally {
    counted_by: &'static str,
    user: Duration,
    system: Duration,
    memory: Option<u64>,
    memory_peak: Option<u64>,
    tasks: Option<u64>,
    tasks_peak: Option<u64>,
    io: Option<Io>,
    reached: BTreeMap<LimitKind, Reached>,
    /// Those of them that nobody was told of yet.
    untold: Vec<LimitKind>,
    /// What a reader of the numbers should know.
    notes: Vec<String>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counted_by: "processes",
            user: Duration::ZERO,
            system: Duration::ZERO,
            memory: None,
            memory_peak: None,
            tasks: None,
            // The command itself.
            tasks_peak: Some(1),
            io: None,
            reached: BTreeMap::new(),
            untold: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Tally {
    /// What one look at the processes saw.
    pub(crate) fn saw(&mut self, looked: &Looked, peaks: Peaks) {
        let sample = &looked.sample;
        self.user = self.user.max(sample.cpu_user);
        self.system = self.system.max(sample.cpu_system);
        self.memory = Some(looked.memory_bytes);
        self.memory_peak = self.memory_peak.max(Some(peaks.memory_bytes));
        self.tasks = Some(sample.threads.saturating_sub(OWN_TASKS));
        self.tasks_peak = self.tasks_peak.max(Some(peaks.threads.saturating_sub(OWN_TASKS)));
        self.io = sample.io.or(self.io);
    }

    /// Threads at the last look.
    pub(crate) fn tasks(&self) -> Option<u64> {
        self.tasks
    }

    /// What pid 1 was told at its end, of itself and everybody it waited for.
    pub(crate) fn processes(&mut self, usage: &RunUsage) {
        // Who was killed with pid 1 was waited for by nobody, and seen at the last look.
        self.user = self.user.max(usage.user);
        self.system = self.system.max(usage.system);
        self.memory_peak = self.memory_peak.max(Some(usage.max_rss_bytes));
    }

    /// What everybody who was waited for read and wrote, the shortest-lived included.
    pub(crate) fn collected(&mut self, io: Io) {
        let seen = self.io.unwrap_or_default();
        self.io = Some(Io {
            read_bytes: io.read_bytes.max(seen.read_bytes),
            written_bytes: io.written_bytes.max(seen.written_bytes),
            reads: io.reads.max(seen.reads),
            writes: io.writes.max(seen.writes),
        });
    }

    /// What the control group counted goes before what was seen from outside.
    pub(crate) fn group(&mut self, plan: &Plan, usage: GroupUsage, hits: Hits) {
        self.counted_by = match plan.sandbox.group.as_ref().map(|group| &group.home) {
            Some(CgroupHome::V2 { .. }) => Holder::CgroupV2.name(),
            _ => Holder::CgroupV1.name(),
        };
        self.user = usage.cpu_user.unwrap_or(self.user);
        self.system = usage.cpu_system.unwrap_or(self.system);
        self.memory = usage.memory.or(self.memory);
        self.memory_peak = usage.memory_peak.or(self.memory_peak);
        let tasks_peak = usage.tasks_peak.map(|peak| peak.saturating_sub(OWN_TASKS));
        self.tasks_peak = tasks_peak.or(self.tasks_peak);
        let seen = self.io.unwrap_or_default();
        if usage.read_bytes.is_some() || usage.written_bytes.is_some() {
            self.io = Some(Io {
                read_bytes: usage.read_bytes.unwrap_or(seen.read_bytes),
                written_bytes: usage.written_bytes.unwrap_or(seen.written_bytes),
                reads: usage.read_operations.unwrap_or(seen.reads),
                writes: usage.write_operations.unwrap_or(seen.writes),
            });
        }
        self.forks_refused(plan, tasks_peak, &hits);
        let asked = |what| plan.supervision.limits.iter().any(|limit| limit.what == what);
        if hits.oom_kills > 0 {
            self.reached(LimitKind::Memory, usage.memory_peak, Some(hits.oom_kills));
        }
        if let Some(periods) = hits.throttled_periods.filter(|periods| *periods > 0)
            && asked(LimitKind::Cpus)
        {
            self.reached(LimitKind::Cpus, None, Some(periods));
        }
    }

    /// What a group refused to start.
    pub(super) fn forks_refused(&mut self, plan: &Plan, peak: Option<u64>, hits: &Hits) {
        let Some(refused) = hits.forks_refused.filter(|refused| *refused > 0) else { return };
        let asked = |what| plan.supervision.limits.iter().any(|limit| limit.what == what);
        for what in [LimitKind::Processes, LimitKind::Threads] {
            if asked(what) {
                self.reached(what, peak, Some(refused));
            }
        }
    }

    /// Told with the most that was seen: a look at the very limit may come before one that finds more.
    pub fn reached(&mut self, what: LimitKind, usage: Option<u64>, times: Option<u64>) {
        // A share of the CPUs that is used up is no event: it happens many times a second.
        if !self.has_reached(what) && what != LimitKind::Cpus {
            self.untold.push(what);
        }
        let reached = self.reached.entry(what).or_default();
        reached.usage = reached.usage.max(usage);
        reached.times = reached.times.max(times);
    }

    /// The limits that were reached since the last time.
    pub(crate) fn take_untold(&mut self) -> Vec<Event> {
        let untold = std::mem::take(&mut self.untold).into_iter();
        untold.map(|what| Event::LimitReached { limit: what.name().to_owned() }).collect()
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub fn has_reached(&self, what: LimitKind) -> bool {
        self.reached.contains_key(&what)
    }

    /// Fills in what the report says of usage and limits. `ended_by` is the one that ended the run.
    pub fn report(&self, report: &mut RunReport, plan: &Plan, ended_by: Option<LimitKind>) {
        report.notes.extend(self.notes.iter().cloned());
        report.limits = plan
            .supervision
            .limits
            .iter()
            .map(|limit| LimitReport {
                name: limit.what.name().to_owned(),
                key: limit.what.key().to_owned(),
                value: limit.value,
                holder: limit.holder.name().to_owned(),
                grip: limit.grip.name().to_owned(),
                overshoot: limit.overshoot.to_owned(),
                reached: self.told(limit.what, ended_by == Some(limit.what)),
            })
            .collect();
    }

    /// A clock tells of its limit only by ending the run.
    fn told(&self, what: LimitKind, ended_the_run: bool) -> Option<palisade_record::Reached> {
        let reached = self.reached.get(&what).copied();
        let Reached { usage, times } = reached.or(ended_the_run.then(Reached::default))?;
        Some(palisade_record::Reached { usage, times, ended_the_run })
    }

    pub fn usage(&self, setup_us: u64, wall_us: u64) -> palisade_record::ReportedUsage {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        palisade_record::ReportedUsage {
            setup_us,
            wall_us,
            cpu_user_us: micros(self.user),
            cpu_system_us: micros(self.system),
            counted_by: self.counted_by.to_owned(),
            peak_memory_bytes: self.memory_peak,
            memory_bytes: self.memory,
            peak_processes: self.tasks_peak,
            read_bytes: self.io.map(|io| io.read_bytes),
            written_bytes: self.io.map(|io| io.written_bytes),
            reads: self.io.map(|io| io.reads),
            writes: self.io.map(|io| io.writes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, LimitKind, Tally};

    #[test]
    fn a_limit_is_told_with_the_most_that_was_seen() {
        let mut tally = Tally::default();
        tally.reached(LimitKind::Inodes, Some(60), None);
        tally.reached(LimitKind::Inodes, Some(73), None);
        let told = tally.told(LimitKind::Inodes, true).unwrap();
        assert_eq!((told.usage, told.ended_the_run), (Some(73), true));
        // Not counted then, it is what was known before.
        tally.reached(LimitKind::Inodes, None, None);
        assert_eq!(tally.told(LimitKind::Inodes, true).unwrap().usage, Some(73));
    }

    #[test]
    fn a_limit_is_an_event_once() {
        let mut tally = Tally::default();
        tally.reached(LimitKind::Inodes, Some(60), None);
        tally.reached(LimitKind::Inodes, Some(61), None);
        tally.reached(LimitKind::Cpus, None, Some(9));
        assert_eq!(tally.take_untold(), [Event::LimitReached { limit: "inodes".to_owned() }]);
        tally.reached(LimitKind::Inodes, Some(62), None);
        assert_eq!(tally.take_untold(), []);
    }
}
