use super::*;
use palisade_record::indicators::{BLOCKED_CALL, CONNECTION, PROTECTED_WRITE, SUSPICIOUS_CALL};

fn attempt(known: &indicators::KnownIndicator, what: &str) -> EventKind {
    EventKind::EscapeAttempt(known.attempt(what, Some(7)))
}

/// Proves: ESC-1 indicators
#[test]
fn a_severity_leads_to_its_action_and_the_hardest_counts() {
    let policy = Escape { on_high: Wanted::Kill, on_critical: Wanted::Quarantine, ..warning() };
    let mut watch = EscapeWatch::new(&policy);
    assert!(!watch.look(&mut vec![attempt(SUSPICIOUS_CALL, "mount")], 0));
    assert_eq!(watch.action(), EscapeAction::Warn);
    assert!(watch.look(&mut vec![attempt(CONNECTION, "a.example")], 0));
    assert_eq!(watch.action(), EscapeAction::Kill);
    assert!(!watch.look(&mut vec![attempt(BLOCKED_CALL, "setns")], 0), "it ends already");
    assert_eq!(watch.action(), EscapeAction::Quarantine);
    let (report, incident) = watch.end();
    assert_eq!(report.unwrap().indicators.len(), 3);
    assert_eq!(incident.unwrap().attempt.unwrap().id, "syscall.blocked");
}

/// Proves: ESC-1 strict
#[test]
fn strict_acts_on_the_first_whatever_its_severity() {
    let policy = Escape { on_low: Wanted::Ignore, strict: true, ..warning() };
    let mut watch = EscapeWatch::new(&policy);
    assert!(watch.look(&mut vec![attempt(indicators::PROCESS_LIMIT, "x")], 0));
    assert_eq!(watch.action(), EscapeAction::Quarantine);
}

#[test]
fn too_many_calls_end_the_run_at_any_setting_and_what_is_ignored_is_not_recorded() {
    let policy = Escape { on_high: Wanted::Ignore, on_medium: Wanted::Ignore, ..warning() };
    let mut watch = EscapeWatch::new(&policy);
    let mut events = vec![attempt(SUSPICIOUS_CALL, "mount"), attempt(TOO_MANY_CALLS, "100")];
    assert!(watch.look(&mut events, 0));
    assert_eq!(watch.action(), EscapeAction::Kill);
    assert_eq!(events.len(), 1, "{events:?}");
}

/// Proves: ESC-1 indicators
#[test]
fn a_flood_is_bounded_and_hides_nothing_that_is_worse() {
    let policy = Escape { on_critical: Wanted::Kill, ..warning() };
    let mut watch = EscapeWatch::new(&policy);
    let mut logged = 0;
    for round in 0..10_000 {
        let mut events = vec![attempt(PROTECTED_WRITE, &format!("/p/{round}"))];
        assert!(!watch.look(&mut events, 0));
        logged += events.len();
    }
    assert_eq!(logged, MAX_OF_EACH);
    assert!(watch.look(&mut vec![attempt(BLOCKED_CALL, "kexec_load")], 0));
    let (report, _) = watch.end();
    let report = report.unwrap();
    assert_eq!((report.indicators.len(), report.more), (MAX_OF_EACH + 1, 10_000 - 20));
}

#[test]
fn a_process_belongs_to_the_command_above_it() {
    let process = |pid, parent| SeenProcess {
        pid,
        parent,
        name: String::new(),
        state: String::new(),
        executable: None,
        call: None,
    };
    let processes = [process(1, 0), process(5, 1), process(6, 5), process(8, 9), process(9, 8)];
    let commands = [(CommandId(1), Some(5)), (CommandId(2), None)];
    assert_eq!(command_of(6, &processes, &commands), Some(CommandId(1)));
    assert_eq!(command_of(1, &processes, &commands), None);
    assert_eq!(command_of(8, &processes, &commands), None, "a circle ends");
}
