//! The runs that are looked at, and what each used since the last look.

use super::Wanted;
use jiff::Timestamp;
use palisade_policy::limit::{LimitKind, UsageField};
use palisade_session::runs::{self, Announced, AnnouncedLimit, Meter, Reading};
use palisade_session::{AppDirs, SessionError};
use serde::Serialize;
use std::collections::BTreeMap;

/// From this share of a limit on it is near.
const NEAR_PERCENT: u64 = 80;

pub(super) struct Board {
    places: AppDirs,
    pub(super) wanted: Wanted,
    watched: BTreeMap<String, Watched>,
    rows: Vec<Row>,
}

struct Watched {
    meter: Meter,
    last: Option<Reading>,
}

impl Board {
    pub(super) fn new(places: AppDirs, wanted: Wanted) -> Self {
        Self { places, wanted, watched: BTreeMap::new(), rows: Vec::new() }
    }

    /// The oldest first.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Looks at every run once.
    pub(super) fn refresh(&mut self) -> Result<(), SessionError> {
        let mut running = runs::list(&self.places)?;
        if let Wanted::One(session) = &self.wanted {
            running.retain(|run| run.session == *session);
        }
        self.watched.retain(|session, _| running.iter().any(|run| run.session == *session));
        let wall = Timestamp::now();
        self.rows = running.into_iter().filter_map(|run| self.look(run, wall)).collect();
        Ok(())
    }

    /// None of a run that has just ended; one that cannot be read is shown without numbers.
    fn look(&mut self, run: Announced, wall: Timestamp) -> Option<Row> {
        if !self.watched.contains_key(&run.session) {
            match Meter::of(&run) {
                Ok(meter) => {
                    self.watched.insert(run.session.clone(), Watched { meter: meter?, last: None });
                }
                Err(error) => return Some(Row::unread(run, wall, error.to_string())),
            }
        }
        let watched = self.watched.get_mut(&run.session)?;
        match watched.meter.read() {
            Ok(reading) => {
                let reading = reading?;
                let last = watched.last.replace(reading);
                Some(Row::of(run, wall, last.as_ref(), &reading))
            }
            Err(error) => Some(Row::unread(run, wall, error.to_string())),
        }
    }
}

/// One run, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) session: String,
    pub(super) command: String,
    pub(super) started_at: Timestamp,
    pub(super) age_ms: u64,
    /// The sandbox's pid 1 on the host.
    pub(super) init: u32,
    #[serde(flatten)]
    pub(super) usage: Option<Usage>,
    pub(super) limits: Vec<LimitNow>,
    /// Why there are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unread: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    /// Of one processor, since the last look.
    pub(super) cpu_percent: Option<f64>,
    pub(super) cpu_ms: u64,
    pub(super) memory_bytes: u64,
    pub(super) peak_memory_bytes: u64,
    pub(super) processes: u64,
    pub(super) threads: u64,
    #[serde(flatten)]
    pub(super) io: Option<IoNow>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IoNow {
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes_per_second: Option<u64>,
    pub(super) written_bytes_per_second: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LimitNow {
    #[serde(flatten)]
    pub(super) limit: AnnouncedLimit,
    /// In the limit's unit, where it can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<u64>,
    pub(super) is_near: bool,
}

impl Row {
    fn of(run: Announced, wall: Timestamp, last: Option<&Reading>, now: &Reading) -> Self {
        let usage = Usage::between(last, now);
        let mut row = Self::unread(run, wall, String::new());
        row.unread = None;
        for limit in &mut row.limits {
            limit.used = used(&limit.limit.name, &usage, row.age_ms);
            limit.is_near = limit.used.is_some_and(|used| {
                used.saturating_mul(100) >= limit.limit.value.saturating_mul(NEAR_PERCENT)
            });
        }
        row.usage = Some(usage);
        row
    }

    fn unread(run: Announced, wall: Timestamp, why: String) -> Self {
        let age = wall.duration_since(run.started_at).as_millis();
        let without_use = |limit| LimitNow { limit, used: None, is_near: false };
        Self {
            session: run.session,
            command: run.command,
            started_at: run.started_at,
            age_ms: u64::try_from(age).unwrap_or(0),
            init: run.init,
            usage: None,
            limits: run.limits.into_iter().map(without_use).collect(),
            unread: Some(why),
        }
    }

    /// The share of a limit that is used, of those that are near.
    pub(super) fn near(&self) -> impl Iterator<Item = (&str, u64)> {
        let near = self.limits.iter().filter(|limit| limit.is_near);
        near.map(|limit| {
            let used = limit.used.unwrap_or(0);
            (limit.limit.name.as_str(), used.saturating_mul(100) / limit.limit.value.max(1))
        })
    }

    pub(super) fn limit(&self, what: LimitKind) -> Option<u64> {
        let found = self.limits.iter().find(|limit| limit.limit.name == what.name());
        found.map(|limit| limit.limit.value)
    }
}

impl Usage {
    fn between(last: Option<&Reading>, now: &Reading) -> Self {
        let apart = last.map(|last| now.at.saturating_duration_since(last.at).as_secs_f64());
        let apart = apart.filter(|seconds| *seconds > 0.0);
        let cpu_percent = last.zip(apart).map(|(last, seconds)| {
            let used = now.cpu.saturating_sub(last.cpu).as_secs_f64();
            (used / seconds * 1000.0).round() / 10.0
        });
        let io = now.io.map(|io| {
            let before = last.and_then(|last| last.io).zip(apart);
            IoNow {
                read_bytes: io.read_bytes,
                written_bytes: io.written_bytes,
                reads: io.reads,
                writes: io.writes,
                read_bytes_per_second: before
                    .map(|(before, seconds)| rate(before.read_bytes, io.read_bytes, seconds)),
                written_bytes_per_second: before
                    .map(|(before, seconds)| rate(before.written_bytes, io.written_bytes, seconds)),
            }
        });
        Self {
            cpu_percent,
            cpu_ms: u64::try_from(now.cpu.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: now.memory_bytes,
            peak_memory_bytes: now.peak_memory_bytes,
            processes: now.processes,
            threads: now.threads,
            io,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "for people: a rate of more than 2^53 bytes a second may be a byte off"
)]
fn rate(before: u64, now: u64, seconds: f64) -> u64 {
    (now.saturating_sub(before) as f64 / seconds) as u64
}

/// Of a limit by its option's name, in the limit's unit.
fn used(limit: &str, usage: &Usage, age_ms: u64) -> Option<u64> {
    Some(match LimitKind::named(limit)?.usage()? {
        UsageField::Memory => usage.memory_bytes,
        UsageField::CpuTime => usage.cpu_ms,
        // Pid 1 is ours, not the command's.
        UsageField::Threads => usage.threads.saturating_sub(1),
        UsageField::Age => age_ms,
    })
}

#[cfg(test)]
#[path = "board_tests.rs"]
pub(super) mod tests;
