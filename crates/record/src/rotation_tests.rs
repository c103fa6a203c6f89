use super::*;
use crate::audit::AuditLog;
use crate::audit::tests::{Fixture, events};
use crate::reading::{read, sandboxes};
use crate::verify::{LogFault, verify};
use std::sync::Barrier;

/// Full after a few records.
const SMALL: Rotation = Rotation { full_at: 2000, kept: 3 };

fn open(fixture: &Fixture) -> AuditLog {
    fixture.open().rotating(SMALL)
}

fn numbered(count: usize, from: usize) -> Fixture {
    let fixture = Fixture::new();
    let mut log = open(&fixture);
    for number in from..from + count {
        log.append_batch(&events(&format!("run-{number}"), 1)).unwrap();
    }
    fixture
}

fn total(fixture: &Fixture) -> usize {
    read(&fixture.log, None).unwrap().map(Result::unwrap).count()
}

/// Proves: AUD-1 rotation, AUD-1 hash-chain
#[test]
fn the_chain_goes_on_over_files_and_the_oldest_go() {
    let fixture = numbered(10, 0);
    let files = numbers(&fixture.log);
    assert!(!files.is_empty() && files.len() <= 3, "{files:?}");
    let verified = verify(&fixture.log, &fixture.head).unwrap();
    assert_eq!(verified.records, 10);
    assert_eq!(total(&fixture), 10);
    let mut log = open(&fixture);
    for number in 10..60 {
        log.append_batch(&events(&format!("run-{number}"), 1)).unwrap();
    }
    let files = numbers(&fixture.log);
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[0] > 1, "{files:?}");
    let verified = verify(&fixture.log, &fixture.head).unwrap();
    assert_eq!(verified.records, 60);
    let kept = total(&fixture);
    assert!(kept < 60 && kept > 3, "{kept}");
    // The youngest, without a gap.
    let found = sandboxes(&fixture.log).unwrap();
    assert!((60 - kept..60).all(|number| found.contains(&format!("run-{number}"))));
    assert_eq!(found.len(), kept);
}

/// Proves: AUD-1 rotation, AUD-1 verify
#[test]
fn a_change_in_any_file_and_a_missing_one_show() {
    let fixture = numbered(12, 0);
    let oldest = path_of(&fixture.log, numbers(&fixture.log)[0]);
    let content = fs::read(&oldest).unwrap();
    let changed = String::from_utf8(content.clone()).unwrap().replacen("SIGTERM", "SIGKILL", 1);
    fs::write(&oldest, changed).unwrap();
    let fault = verify(&fixture.log, &fixture.head).unwrap_err();
    assert!(matches!(fault.what, LogFault::Edited), "{fault}");
    // A record less at the end of a file that is full.
    let cut = content[..content.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    fs::write(&oldest, &content[..=cut]).unwrap();
    let fault = verify(&fixture.log, &fixture.head).unwrap_err();
    assert!(matches!(fault.what, LogFault::ChainBroken), "{fault}");
    fs::remove_file(&oldest).unwrap();
    let fault = verify(&fixture.log, &fixture.head).unwrap_err();
    assert!(matches!(fault.what, LogFault::PartMissing(_)), "{fault}");
    fs::write(&oldest, content).unwrap();
    verify(&fixture.log, &fixture.head).unwrap();
}

/// Proves: AUD-1 rotation, AUD-1 crash
#[test]
fn a_rotation_that_was_interrupted_is_finished_by_the_next_writer() {
    for leaves_new_log in [false, true] {
        let fixture = numbered(12, 0);
        let next = numbers(&fixture.log).last().unwrap() + 1;
        // Open since before the crash.
        let mut other = open(&fixture);
        fs::rename(&fixture.log, path_of(&fixture.log, next)).unwrap();
        if leaves_new_log {
            File::create(&fixture.log).unwrap();
        }
        assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 12);
        open(&fixture).append_batch(&events("after", 1)).unwrap();
        assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 13);
        other.append_batch(&events("other", 1)).unwrap();
        assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 14);
        assert_eq!(fs::read_to_string(&fixture.log).unwrap().lines().count(), 2);
    }
}

/// Proves: AUD-1 rotation
#[test]
fn several_writers_rotate_one_log() {
    let fixture = Fixture::new();
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (fixture, barrier) = (&fixture, &barrier);
            scope.spawn(move || {
                let roomy = Rotation { kept: 1000, ..SMALL };
                let mut log = fixture.open().rotating(roomy);
                barrier.wait();
                for _ in 0..50 {
                    log.append_batch(&events(&format!("w-{writer}"), 2)).unwrap();
                }
            });
        }
    });
    assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 400);
    assert_eq!(total(&fixture), 400);
    assert!(numbers(&fixture.log).len() > 10);
}

/// Proves: AUD-1 rotation
#[test]
fn who_reads_along_misses_nothing_of_a_log_that_is_put_aside() {
    let fixture = numbered(3, 0);
    let mut records = read(&fixture.log, None).unwrap();
    assert_eq!(records.by_ref().count(), 3);
    let mut log = fixture.open().rotating(Rotation { kept: 1000, ..SMALL });
    for number in 3..40 {
        log.append_batch(&events(&format!("run-{number}"), 1)).unwrap();
    }
    let seen: Vec<u64> = records.map(|record| record.unwrap().seq).collect();
    assert_eq!(seen, (4..=40).collect::<Vec<_>>());
}

/// A head is one block, whatever it says.
#[test]
fn the_largest_head_fits() {
    let most = Position { records: u64::MAX, bytes: u64::MAX, hash: Digest::of(b"") };
    let aside =
        PutAside { first: u64::MAX, last: u64::MAX, records: u64::MAX, hash: Digest::of(b"") };
    let head = Head::start().settled(most).announcing(most).with_put_aside(aside);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("head");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    head.write(&file, &path).unwrap();
    assert_eq!(Head::read(&file, &path).unwrap(), Some(head));
}
