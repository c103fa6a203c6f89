use super::*;

fn event(path: &str, decision: Decision) -> AccessDecided {
    AccessDecided {
        path: path.to_owned(),
        access: "read".to_owned(),
        decision,
        scope: "file".to_owned(),
        lifetime: "session".to_owned(),
        source: "rule".to_owned(),
        rule: None,
        op: "openat".to_owned(),
        pids: vec![1],
        executable: "/bin/cat".to_owned(),
        question: None,
        latency_us: 1,
    }
}

fn recorded(records: &mut AccessRecords, path: &str, decision: Decision, now: Instant) -> bool {
    records.admit(event(path, decision), false, now).is_some()
}

/// Proves: AUD-2 first-grants, AUD-2 separate-budgets, AUD-2 sums
#[test]
fn a_flood_of_denials_or_grants_hides_no_first_grant() {
    let now = Instant::now();
    let mut records = AccessRecords::new(Excess::Summed);
    for number in 0..3 * BURST {
        recorded(&mut records, &format!("/denied/{number}"), Decision::Denied, now);
        assert!(recorded(&mut records, &format!("/granted/{number}"), Decision::Allowed, now));
    }
    for _ in 0..3 * BURST {
        recorded(&mut records, "/granted/again", Decision::Allowed, now);
    }
    assert!(recorded(&mut records, "/wanted", Decision::Allowed, now));
    let sums: Vec<(u64, Decision)> = records
        .take_all()
        .into_iter()
        .map(|kind| match kind {
            EventKind::EventsSummed(sum) => (sum.count, sum.decision),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sums, [(2 * BURST - 1, Decision::Allowed), (2 * BURST, Decision::Denied)]);
}

/// Proves: AUD-2 first-grants
#[test]
fn an_answer_of_a_person_is_always_recorded() {
    let now = Instant::now();
    let mut records = AccessRecords::new(Excess::Summed);
    while recorded(&mut records, "/denied", Decision::Denied, now) {}
    assert!(records.admit(event("/denied", Decision::Denied), true, now).is_some());
}

#[test]
fn without_the_layer_one_budget_serves_everything() {
    let now = Instant::now();
    let mut records = AccessRecords::new(Excess::Dropped);
    while recorded(&mut records, "/denied", Decision::Denied, now) {}
    assert!(!recorded(&mut records, "/wanted", Decision::Allowed, now));
    assert!(records.take_all().is_empty());
}
