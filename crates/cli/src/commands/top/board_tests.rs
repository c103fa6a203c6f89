use super::{Board, Row, Wanted};
use jiff::Timestamp;
use palisade_session::AppDirs;
use palisade_session::runs::{Announced, AnnouncedLimit, Io, Reading};
use std::time::{Duration, Instant};

pub(crate) fn announced(limits: &[(&str, u64)]) -> Announced {
    let limit = |(name, value): &(&str, u64)| AnnouncedLimit {
        name: (*name).to_owned(),
        value: *value,
        holder: "cgroup-v2".to_owned(),
        grip: "hard".to_owned(),
    };
    Announced {
        session: "0199c0de-0000-7000-8000-0000deadbeef".to_owned(),
        init: 4321,
        spawner: None,
        command: "make all".to_owned(),
        started_at: Timestamp::from_second(1_000).unwrap(),
        cgroups: Vec::new(),
        limits: limits.iter().map(limit).collect(),
    }
}

/// A row as it is after a second of half a processor's work.
pub(crate) fn row(limits: &[(&str, u64)]) -> Row {
    let begun = Instant::now();
    let reading = |after: u64, cpu: u64, bytes: u64| Reading {
        at: begun + Duration::from_secs(after),
        cpu: Duration::from_millis(cpu),
        memory_bytes: 90 << 20,
        peak_memory_bytes: 95 << 20,
        processes: 3,
        threads: 7,
        io: Some(Io { read_bytes: bytes, written_bytes: 2 * bytes, reads: 10, writes: 20 }),
    };
    let (last, now) = (reading(0, 1_000, 0), reading(2, 2_000, 4096));
    let wall = Timestamp::from_second(1_065).unwrap();
    Row::of(announced(limits), wall, Some(&last), &now)
}

/// Proves: RES-3 live
#[test]
fn use_is_told_for_the_time_between_two_looks() {
    let row = row(&[]);
    let usage = row.usage.unwrap();
    assert_eq!(usage.cpu_percent, Some(50.0));
    assert_eq!((usage.cpu_ms, row.age_ms), (2_000, 65_000));
    let io = usage.io.unwrap();
    assert_eq!(io.read_bytes_per_second, Some(2048));
    assert_eq!(io.written_bytes_per_second, Some(4096));
}

/// Proves: RES-3 live, RES-5 monitoring
#[test]
fn a_limit_shows_what_is_used_of_it_and_when_it_is_near() {
    let limits = [
        ("memory", 100 << 20),
        ("cpu-time", 60_000),
        ("pids", 20),
        ("timeout", 70_000),
        ("disk", 1),
    ];
    let row = row(&limits);
    let told: Vec<(&str, Option<u64>, bool)> = row
        .limits
        .iter()
        .map(|limit| (limit.limit.name.as_str(), limit.used, limit.is_near))
        .collect();
    assert_eq!(
        told,
        [
            ("memory", Some(90 << 20), true),
            ("cpu-time", Some(2_000), false),
            ("pids", Some(6), false),
            ("timeout", Some(65_000), true),
            ("disk", None, false),
        ]
    );
    assert_eq!(row.near().collect::<Vec<_>>(), [("memory", 90), ("timeout", 92)]);
}

#[test]
fn the_document_has_plain_fields_and_no_rates_at_first() {
    let json = serde_json::to_value(row(&[("memory", 1 << 30)])).unwrap();
    assert_eq!(json["memoryBytes"], 90 << 20);
    assert_eq!(json["readBytesPerSecond"], 2048);
    assert_eq!(json["limits"][0]["name"], "memory");
    assert_eq!(json["limits"][0]["isNear"], false);
    assert_eq!(json["startedAt"], "1970-01-01T00:16:40Z");
}

#[test]
fn nothing_runs_where_nothing_was_started() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = |name: &str| directory.path().join(name);
    let places = AppDirs {
        organisation: nowhere("etc"),
        user: nowhere("config"),
        state: nowhere("state"),
        runtime: nowhere("run"),
    };
    let mut board = Board::new(places, Wanted::All);
    board.refresh().unwrap();
    assert_eq!(board.rows(), []);
    assert!(!nowhere("run").exists(), "looking makes nothing");
}
