use super::*;

fn blocked(number: u32, suspicious: bool) -> BrokerMessage {
    BrokerMessage::Blocked(BlockedCall {
        number,
        arguments: [1, 2, 3, 4, 5, 6],
        pid: 7,
        executable: b"/usr/bin/x".to_vec(),
        errno: 1,
        suspicious,
    })
}

fn number_of(name: &str) -> u32 {
    table::number(Arch::native(), name).unwrap()
}

fn protected(path: &str) -> BrokerMessage {
    BrokerMessage::Protected(Protected {
        call: "openat".into(),
        path: path.into(),
        rule: ".envrc".into(),
        why: "run on entering".into(),
        pid: 7,
        executable: b"/bin/sh".to_vec(),
    })
}

/// Proves: SYS-2 logged, SYS-2 patterns
#[test]
fn a_refused_call_is_logged_whole_and_a_suspicious_one_alerts_once() {
    let mut incidents = Incidents::new(None, Excess::Summed);
    let mut logged = Vec::new();
    for _ in 0..3 {
        let verdict =
            incidents.hear(blocked(number_of("mount"), true), &mut |kind| logged.push(kind));
        assert_eq!(verdict, Verdict::GoOn);
    }
    let calls: Vec<_> = logged
        .iter()
        .filter_map(|kind| match kind {
            EventKind::SyscallBlocked(call) => Some(call),
            _ => None,
        })
        .collect();
    assert_eq!(calls.len(), 3);
    assert_eq!((calls[0].name.as_str(), calls[0].errno.as_str()), ("mount", "EPERM"));
    assert_eq!((calls[0].arguments, calls[0].pid), ([1, 2, 3, 4, 5, 6], 7));
    assert_eq!(logged.len(), 4, "one alert beside the three: {logged:?}");
}

/// Proves: SYS-2 repeated
#[test]
fn only_suspicious_calls_count_towards_the_end() {
    let mut incidents = Incidents { limit: Some(2), ..Incidents::new(None, Excess::Summed) };
    let mut alerts = Vec::new();
    for suspicious in [false, false, true, true, true] {
        incidents.hear(blocked(1, suspicious), &mut |kind| {
            if let EventKind::EscapeAttempt(attempt) = kind {
                alerts.push(attempt.id);
            }
        });
    }
    assert_eq!(alerts, ["syscall.suspicious", "syscall.too-many"], "each of them once");
}

/// Proves: AUD-2 sums
#[test]
fn a_flood_is_counted_and_not_kept() {
    let mut incidents = Incidents::new(None, Excess::Summed);
    let mut logged = 0;
    for round in 0..1000 {
        let mut log = |kind: EventKind| logged += u64::from(!is_alert(&kind));
        incidents.hear(protected(&format!("/p/{round}/.envrc")), &mut log);
        incidents.hear(blocked(1, false), &mut log);
    }
    let summed: u64 = incidents.take_sums().iter().map(count_of).sum();
    let mut report = RunReport::begin(
        "s",
        &["x"],
        palisade_record::Versions { palisade: String::new(), kernel: String::new() },
    );
    incidents.report(&mut report);
    // The first of each path is recorded beside the budget.
    let paths = u64::try_from(MAX_PATHS).unwrap();
    assert!((2 * MAX_LOGGED..=2 * MAX_LOGGED + paths + 9).contains(&logged), "{logged}");
    assert_eq!(logged + summed, 2000);
    assert_eq!(report.protected_writes.len(), MAX_PATHS);
    assert_eq!(report.blocked_calls[0].count, 1000);
    assert!(report.notes.iter().any(|note| note.starts_with("800 more")), "{:?}", report.notes);
}

/// Alerts have a bound of their own.
fn is_alert(kind: &EventKind) -> bool {
    matches!(kind, EventKind::EscapeAttempt(_))
}

fn count_of(kind: &EventKind) -> u64 {
    match kind {
        EventKind::EventsSummed(sum) => sum.count,
        other => panic!("{other:?}"),
    }
}

/// Proves: AUD-2 separate-budgets
#[test]
fn a_refusal_repeated_for_ever_hides_neither_another_name_nor_another_kind() {
    let mut incidents = Incidents::new(None, Excess::Summed);
    for _ in 0..2000 {
        incidents.hear(protected("/p/.envrc"), &mut |_| ());
        incidents.hear(blocked(1, false), &mut |_| ());
    }
    for message in [protected("/p/.git/config"), blocked(2, false)] {
        let mut logged = 0;
        incidents.hear(message, &mut |kind| logged += u64::from(!is_alert(&kind)));
        assert_eq!(logged, 1);
    }
}
