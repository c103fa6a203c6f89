use super::{Checkpoint, CheckpointReason, MAX_AUTOMATIC, MAX_REVIEWED, to_drop};
use jiff::Timestamp;

fn checkpoint(number: u32, disk_bytes: u64) -> Checkpoint {
    Checkpoint {
        number,
        created_at: Timestamp::now(),
        reason: CheckpointReason::BeforeCommand,
        message: None,
        entries: 1,
        bytes: u64::MAX,
        disk_bytes,
        until_restart_of: None,
    }
}

/// Proves: LIFE-5 checkpoint
#[test]
fn the_oldest_go_when_they_are_too_many_or_too_large() {
    let all: Vec<Checkpoint> = (1..=5).map(|number| checkpoint(number, 10)).collect();
    let last = checkpoint(6, 10);
    assert_eq!(to_drop(&all, &last, None, u64::MAX), [0; 0]);
    assert_eq!(to_drop(&all, &last, None, 60), [0; 0]);
    assert_eq!(to_drop(&all, &last, None, 59), [1]);
    assert_eq!(to_drop(&all, &last, None, 25), [1, 2, 3, 4]);
    assert_eq!(to_drop(&all, &last, Some(1), 25), [2, 3, 4, 5], "one that is needed stays");
    assert_eq!(to_drop(&all, &last, None, 0), [1, 2, 3, 4, 5], "the last one stays");
    let asked = Checkpoint { reason: CheckpointReason::Asked, ..checkpoint(6, 1000) };
    assert_eq!(to_drop(&all, &asked, None, 50), [0; 0], "somebody wanted it");
    let many: Vec<Checkpoint> =
        (1..).map(|number| checkpoint(number, 0)).take(MAX_AUTOMATIC).collect();
    assert_eq!(to_drop(&many, &last, None, u64::MAX), [1]);
    assert_eq!(to_drop(&many, &last, Some(1), u64::MAX), [2]);
    assert_eq!(to_drop(&many, &asked, None, u64::MAX), [0; 0]);
    let endless: Vec<Checkpoint> = (1..4).map(|number| checkpoint(number, u64::MAX)).collect();
    assert_eq!(to_drop(&endless, &last, None, u64::MAX - 1), [1, 2, 3]);
}

/// Proves: LIFE-5 checkpoint
#[test]
fn of_those_that_are_asked_about_the_last_few_are_kept() {
    let about =
        |number| Checkpoint { reason: CheckpointReason::ForReview, ..checkpoint(number, 10) };
    let mut all = vec![checkpoint(1, 10)];
    all.extend((2..).map(about).take(MAX_REVIEWED - 1));
    assert_eq!(to_drop(&all, &about(20), None, u64::MAX), [0; 0]);
    all.push(about(10));
    assert_eq!(to_drop(&all, &about(20), None, u64::MAX), [2]);
    assert_eq!(to_drop(&all, &about(20), Some(2), u64::MAX), [3]);
    assert_eq!(to_drop(&all, &checkpoint(20, 10), None, u64::MAX), [0; 0]);
    assert_eq!(to_drop(&all, &about(20), None, 50), [1, 2], "the disk counts, too");
}
