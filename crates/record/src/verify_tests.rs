use super::{LogFault, verify};
use crate::audit::tests::{Fixture, events};
use crate::error::RecordError;
use crate::reading::{read, sandboxes};
use proptest::prelude::*;
use std::fs;

type Change = Box<dyn FnOnce(&mut Vec<String>)>;

/// The line and the kind of fault after the log's lines were changed.
fn fault_after(change: impl FnOnce(&mut Vec<String>)) -> String {
    let fixture = Fixture::with_records(6);
    let mut lines = fixture.lines();
    change(&mut lines);
    fs::write(&fixture.log, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
    let error = verify(&fixture.log, &fixture.head).unwrap_err();
    format!("{:?} {:?}", error.line, error.what)
}

/// Proves: NET-7 shown
#[test]
fn records_that_are_written_later_are_read_by_asking_again() {
    let fixture = Fixture::with_records(3);
    let whole = fs::read(&fixture.log).unwrap();
    let lines = fixture.lines();
    let cut = lines[0].len() + lines[1].len() / 2;
    fs::write(&fixture.log, &whole[..cut]).unwrap();
    let mut records = read(&fixture.log, None).unwrap();
    assert_eq!(records.by_ref().map(Result::unwrap).count(), 1);
    assert!(records.next().is_none());
    fs::write(&fixture.log, &whole).unwrap();
    let rest: Vec<u64> = records.by_ref().map(|record| record.unwrap().seq).collect();
    assert_eq!(rest, [2, 3]);
    assert!(records.next().is_none());
}

/// Proves: AUD-1 verify
#[test]
fn every_kind_of_change_is_named_with_its_line() {
    let foreign = || Fixture::with_records(2).lines()[1].clone();
    let table: Vec<(&str, Change)> = vec![
        ("Some(3) Edited", Box::new(|lines| lines[2] = lines[2].replace("SIGTERM", "SIGKILL"))),
        ("Some(3) ChainBroken", Box::new(|lines| drop(lines.remove(2)))),
        ("Some(3) ChainBroken", Box::new(|lines| lines.swap(2, 3))),
        ("Some(1) ChainBroken", Box::new(|lines| drop(lines.remove(0)))),
        ("Some(3) ChainBroken", Box::new(|lines| lines.insert(2, lines[4].clone()))),
        ("Some(2) ChainBroken", Box::new(move |lines| lines[1] = foreign())),
        ("Some(4) Malformed", Box::new(|lines| lines.insert(3, String::new()))),
        ("Some(6) TailCut { missing: 1 }", Box::new(|lines| drop(lines.pop()))),
        ("Some(1) TailCut { missing: 6 }", Box::new(Vec::clear)),
        ("Some(7) TailAdded", Box::new(|lines| lines.push(lines[5].clone()))),
    ];
    for (expected, change) in table {
        assert_eq!(fault_after(change), expected);
    }
}

/// Proves: AUD-1 head-apart
#[test]
fn a_rewritten_end_does_not_fit_the_head() {
    let fixture = Fixture::with_records(6);
    // Sound in itself, and as long: only the head tells.
    let other = Fixture::with_records(6);
    fs::copy(&other.log, &fixture.log).unwrap();
    let error = verify(&fixture.log, &fixture.head).unwrap_err();
    assert!(matches!((error.line, error.what), (Some(6), LogFault::HeadDisagrees)));
}

/// Proves: AUD-1 verify
#[test]
fn a_missing_file_is_a_fault() {
    let fixture = Fixture::with_records(2);
    fs::rename(&fixture.log, fixture.log.with_extension("away")).unwrap();
    let error = verify(&fixture.log, &fixture.head).unwrap_err();
    assert!(matches!((error.line, error.what), (None, LogFault::LogMissing)));

    let fixture = Fixture::with_records(2);
    fs::remove_file(&fixture.head).unwrap();
    let error = verify(&fixture.log, &fixture.head).unwrap_err();
    assert_eq!(error.to_string(), "the head of the audit log is missing or empty");

    let fixture = Fixture::with_records(2);
    fs::write(&fixture.head, "").unwrap();
    let error = verify(&fixture.log, &fixture.head).unwrap_err();
    assert!(matches!(error.what, LogFault::HeadMissing));
}

#[test]
fn reading_can_be_narrowed_to_one_sandbox() {
    let fixture = Fixture::with_records(3);
    fixture.open().append_batch(&events("b-2", 2)).unwrap();
    let ids = |wanted| {
        let records = read(&fixture.log, wanted).unwrap();
        records.map(|record| record.unwrap().seq).collect::<Vec<_>>()
    };
    assert_eq!(ids(None), [1, 2, 3, 4, 5]);
    assert_eq!(ids(Some("b-2")), [4, 5]);
    assert_eq!(ids(Some("b-3")), [0; 0]);
    assert!(sandboxes(&fixture.log).unwrap().contains("b-2"));
    assert_eq!(sandboxes(&fixture.log).unwrap().len(), 2);
}

#[test]
fn reading_names_the_line_that_is_no_record() {
    let fixture = Fixture::with_records(2);
    let log = fs::read_to_string(&fixture.log).unwrap();
    fs::write(&fixture.log, format!("{log}{{}}\n{{\"unfinished")).unwrap();
    let results: Vec<_> = read(&fixture.log, None).unwrap().collect();
    assert_eq!(results.len(), 3);
    assert!(matches!(results[2], Err(RecordError::NotARecord { line: 3, .. })));
    assert!(matches!(sandboxes(&fixture.log), Err(RecordError::NotARecord { line: 3, .. })));
    let narrowed: Vec<_> = read(&fixture.log, Some("nobody")).unwrap().collect();
    assert!(matches!(narrowed[..], [Err(RecordError::NotARecord { line: 3, .. })]));
}

proptest! {
    /// Proves: AUD-1 hash-chain
    #[test]
    fn any_changed_byte_is_detected(at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let fixture = Fixture::with_records(4);
        let mut bytes = fs::read(&fixture.log).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        fs::write(&fixture.log, bytes).unwrap();
        prop_assert!(verify(&fixture.log, &fixture.head).is_err());
    }

    /// Proves: AUD-1 head-apart
    #[test]
    fn any_cut_is_detected(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let fixture = Fixture::with_records(4);
        let mut bytes = fs::read(&fixture.log).unwrap();
        let mut ends = [from.index(bytes.len()), to.index(bytes.len() + 1)];
        ends.sort_unstable();
        prop_assume!(ends[0] < ends[1]);
        bytes.drain(ends[0]..ends[1]);
        fs::write(&fixture.log, bytes).unwrap();
        prop_assert!(verify(&fixture.log, &fixture.head).is_err());
    }

    /// Proves: AUD-1 head-apart
    #[test]
    fn any_changed_byte_of_the_head_is_detected(
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let fixture = Fixture::with_records(4);
        let mut bytes = fs::read(&fixture.head).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        fs::write(&fixture.head, bytes).unwrap();
        prop_assert!(verify(&fixture.log, &fixture.head).is_err());
    }
}
