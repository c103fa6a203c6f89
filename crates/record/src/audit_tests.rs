use super::{Appended, AuditLog, Recovery};
use crate::error::RecordError;
use crate::event::{Event, EventKind, SignalForwarded};
use crate::head::{Head, Position};
use crate::reading::{read, read_on};
use crate::state::State;
use crate::verify::verify;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

/// A log and its head in directories of their own.
pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    pub(crate) log: PathBuf,
    pub(crate) head: PathBuf,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("state/audit.jsonl");
        let head = directory.path().join("apart/audit.head");
        Fixture { directory, log, head }
    }

    /// With this many records, in batches of three.
    pub(crate) fn with_records(count: usize) -> Fixture {
        let fixture = Fixture::new();
        let mut log = fixture.open();
        for batch in events("b-1", count).chunks(3) {
            log.append_batch(batch).unwrap();
        }
        fixture
    }

    pub(crate) fn open(&self) -> AuditLog {
        AuditLog::open(&self.log, &self.head).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.log).unwrap().lines().map(str::to_owned).collect()
    }
}

pub(crate) fn events(sandbox_id: &str, count: usize) -> Vec<Event> {
    let signal = || SignalForwarded { signal: 15, name: "SIGTERM".to_owned(), fatal: true };
    (0..count)
        .map(|_| Event::new(sandbox_id, State::Monitoring, EventKind::SignalForwarded(signal())))
        .collect()
}

/// Proves: AUD-1 one-line, AUD-1 hash-chain
#[test]
fn each_record_is_a_line_that_names_the_one_before() {
    let fixture = Fixture::new();
    let appended = fixture.open().append_batch(&events("b-1", 3)).unwrap();
    assert_eq!(appended, Appended { records: 3, recovery: Recovery::None });
    fixture.open().append_batch(&events("b-2", 2)).unwrap();

    let records: Vec<_> = read(&fixture.log, None).unwrap().map(Result::unwrap).collect();
    assert_eq!(fixture.lines().len(), 5);
    assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    for pair in records.windows(2) {
        assert_eq!(pair[1].prev, pair[0].hash);
    }
    let verified = verify(&fixture.log, &fixture.head).unwrap();
    assert_eq!((verified.records, verified.head), (5, records[4].hash));
}

#[test]
fn files_and_directories_are_the_owners_alone() {
    let fixture = Fixture::with_records(1);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&fixture.log), mode(&fixture.head)), (0o600, 0o600));
    assert_eq!(mode(fixture.log.parent().unwrap()), 0o700);
}

/// Proves: AUD-2 escaped-text
#[test]
fn text_from_inside_cannot_forge_a_record() {
    let fixture = Fixture::new();
    let nasty = "x\"}\n{\"eventId\":\"forged\"}\n\u{2028}\u{9b}2J";
    let mut log = fixture.open();
    log.append_batch(&events(nasty, 1)).unwrap();
    let written = fs::read_to_string(&fixture.log).unwrap();
    assert_eq!(written.lines().count(), 1);
    assert!(written.trim_end().chars().all(|c| c.is_ascii() && !c.is_ascii_control()), "{written}");
    let record = read(&fixture.log, Some(nasty)).unwrap().next().unwrap().unwrap();
    assert_eq!(record.event.sandbox_id, nasty);
}

/// Proves: AUD-1 concurrent
#[test]
fn two_writers_at_once_make_one_chain() {
    let fixture = Fixture::new();
    fixture.open();
    thread::scope(|scope| {
        for writer in ["b-1", "b-2"] {
            let fixture = &fixture;
            scope.spawn(move || {
                for _ in 0..100 {
                    // Each opens anew, as each process does.
                    fixture.open().append_batch(&events(writer, 2)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                verify(&fixture.log, &fixture.head).unwrap();
            }
        });
    });
    assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 400);
    assert_eq!(read(&fixture.log, Some("b-1")).unwrap().count(), 200);
}

#[test]
fn reading_on_begins_after_what_is_there() {
    let fixture = Fixture::with_records(50);
    let sequence = |records: &mut crate::reading::Records| {
        records.map(|record| record.unwrap().seq).collect::<Vec<_>>()
    };
    let mut records = read_on(&fixture.log, None).unwrap();
    assert_eq!(sequence(&mut records), [0; 0]);
    fixture.open().append_batch(&events("b-1", 2)).unwrap();
    assert_eq!(sequence(&mut records), [51, 52]);
    // A line that is only half there is not skipped: it is the next one.
    let text = fs::read_to_string(&fixture.log).unwrap();
    let half = text.trim_end().rfind('\n').unwrap() + 40;
    fs::write(&fixture.log, &text[..half]).unwrap();
    let mut records = read_on(&fixture.log, None).unwrap();
    assert_eq!(sequence(&mut records), [0; 0]);
    fs::write(&fixture.log, &text).unwrap();
    assert_eq!(sequence(&mut records), [52]);
}

/// Proves: AUD-1 concurrent
#[test]
fn two_may_begin_the_same_log_at_once() {
    for _ in 0..50 {
        let fixture = Fixture::new();
        let together = Barrier::new(2);
        thread::scope(|scope| {
            for writer in ["b-1", "b-2"] {
                let (fixture, together) = (&fixture, &together);
                scope.spawn(move || {
                    together.wait();
                    fixture.open().append_batch(&events(writer, 1)).unwrap();
                });
            }
        });
        assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 2);
    }
}

/// Proves: AUD-1 no-follow
#[test]
fn a_link_in_the_place_of_a_file_is_refused() {
    for which in ["log", "head"] {
        let fixture = Fixture::new();
        let victim = fixture.directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let place = if which == "log" { &fixture.log } else { &fixture.head };
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(&victim, place).unwrap();
        let refused = AuditLog::open(&fixture.log, &fixture.head).unwrap_err();
        assert!(matches!(refused, RecordError::SymbolicLink(_)), "{refused}");

        fs::remove_file(place).unwrap();
        fs::hard_link(&victim, place).unwrap();
        let refused = AuditLog::open(&fixture.log, &fixture.head).unwrap_err();
        assert!(matches!(refused, RecordError::HardLinks { links: 2, .. }), "{refused}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }
}

/// Proves: AUD-1 append-only
#[test]
fn nothing_is_added_to_a_log_that_is_not_what_its_head_says() {
    let refused = |tamper: fn(&Fixture)| {
        let fixture = Fixture::with_records(4);
        let mut open = fixture.open();
        tamper(&fixture);
        let still_open = open.append_batch(&events("b-2", 1)).is_err();
        let anew = AuditLog::open(&fixture.log, &fixture.head)
            .and_then(|mut log| log.append_batch(&events("b-2", 1)));
        (still_open, anew.unwrap_err())
    };

    let (still_open, anew) = refused(|fixture| fs::remove_file(&fixture.log).unwrap());
    assert!(still_open && matches!(anew, RecordError::LogMissing { .. }), "{anew}");

    let (still_open, anew) = refused(|fixture| fs::remove_file(&fixture.head).unwrap());
    assert!(still_open && matches!(anew, RecordError::HeadMissing { .. }), "{anew}");

    let (still_open, anew) = refused(|fixture| {
        let log = OpenOptions::new().write(true).open(&fixture.log).unwrap();
        log.set_len(log.metadata().unwrap().len() - 1).unwrap();
    });
    assert!(still_open && matches!(anew, RecordError::LengthDisagrees { .. }), "{anew}");

    let (still_open, anew) = refused(|fixture| {
        let line = fixture.lines()[3].clone() + "\n";
        let mut log = OpenOptions::new().append(true).open(&fixture.log).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    });
    assert!(still_open && matches!(anew, RecordError::LengthDisagrees { .. }), "{anew}");

    let (still_open, anew) = refused(|fixture| {
        let mut lines = fixture.lines();
        lines.swap(2, 3);
        fs::write(&fixture.log, lines.join("\n") + "\n").unwrap();
    });
    assert!(still_open && matches!(anew, RecordError::LastRecordDisagrees(_)), "{anew}");

    let (still_open, anew) = refused(|fixture| {
        fs::write(&fixture.head, fs::read_to_string(&fixture.head).unwrap().replace(' ', "\n"))
            .unwrap();
    });
    assert!(still_open && matches!(anew, RecordError::HeadMalformed { .. }), "{anew}");
}

/// The log and head as a writer leaves them that is killed after `written` bytes of its batch.
fn killed_after(written: usize) -> (Fixture, usize) {
    let fixture = Fixture::with_records(3);
    let read_head = || {
        let file = fs::File::open(&fixture.head).unwrap();
        Head::read(&file, &fixture.head).unwrap().unwrap()
    };
    let before: Position = read_head().committed;
    fixture.open().append_batch(&events("b-2", 2)).unwrap();
    let after: Position = read_head().committed;
    let head = OpenOptions::new().write(true).open(&fixture.head).unwrap();
    Head::start().settled(before).announcing(after).write(&head, &fixture.head).unwrap();
    let batch = usize::try_from(after.bytes - before.bytes).unwrap();
    let log = OpenOptions::new().write(true).open(&fixture.log).unwrap();
    log.set_len(before.bytes + written.min(batch) as u64).unwrap();
    (fixture, batch)
}

/// Proves: AUD-1 crash
#[test]
fn a_batch_cut_short_by_a_crash_is_cut_off_and_a_whole_one_stays() {
    let (_, batch) = killed_after(0);
    for written in [0, 1, batch / 2, batch - 1, batch] {
        let (fixture, batch) = killed_after(written);
        let whole = written == batch;
        let verified = verify(&fixture.log, &fixture.head).unwrap();
        assert_eq!(verified.records, if whole { 5 } else { 3 });
        assert_eq!(verified.unacknowledged_bytes, if whole { 0 } else { written as u64 });

        let appended = fixture.open().append_batch(&events("b-3", 1)).unwrap();
        let (records, recovery) = match written {
            0 => (4, Recovery::None),
            _ if whole => (6, Recovery::Adopted { records: 2 }),
            _ => (4, Recovery::Discarded { bytes: written as u64 }),
        };
        assert_eq!(appended, Appended { records, recovery });
        let verified = verify(&fixture.log, &fixture.head).unwrap();
        assert_eq!((verified.records, verified.unacknowledged_bytes), (records, 0));
    }
}

/// Proves: AUD-1 crash
#[test]
fn only_the_announced_batch_is_adopted_after_a_crash() {
    let (fixture, batch) = killed_after(usize::MAX);
    let forged = fs::read_to_string(&fixture.log).unwrap().replace("b-2", "b-9");
    fs::write(&fixture.log, forged).unwrap();
    let verified = verify(&fixture.log, &fixture.head).unwrap();
    assert_eq!((verified.records, verified.unacknowledged_bytes), (3, batch as u64));
    let appended = fixture.open().append_batch(&[]).unwrap();
    assert_eq!(appended.recovery, Recovery::Discarded { bytes: batch as u64 });
}

#[test]
fn an_empty_batch_writes_nothing() {
    let fixture = Fixture::new();
    let appended = fixture.open().append_batch(&[]).unwrap();
    assert_eq!(appended, Appended { records: 0, recovery: Recovery::None });
    assert_eq!(fs::metadata(&fixture.head).unwrap().len(), 0);
    assert_eq!(verify(&fixture.log, &fixture.head).unwrap().records, 0);
}

/// A process that was stopped while it holds the lock does not keep the others waiting for ever.
///
/// Proves: AUD-1 concurrent
#[test]
fn a_lock_that_is_not_released_is_an_error() {
    let fixture = Fixture::new();
    let mut log = fixture.open();
    log.append_batch(&events("b-1", 1)).unwrap();
    let held = fs::File::open(&fixture.head).unwrap();
    held.lock().unwrap();
    let error = log.append_batch(&events("b-1", 1)).unwrap_err();
    assert!(matches!(error, RecordError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("fuser"), "{error}");
    held.unlock().unwrap();
    log.append_batch(&events("b-1", 1)).unwrap();
}
