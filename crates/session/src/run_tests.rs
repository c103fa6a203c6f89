use super::{Times, conclude, describe};
use crate::incidents::Incidents;
use crate::reporting::tests::plan_without_namespaces;
use crate::supervise::{Ended, Killed};
use palisade_launch::{Ending, Usage};
use palisade_record::{Outcome, RunReport, SignalForwarded, Versions};
use std::time::Duration;

fn concluded(ended: &Ended) -> (Outcome, i32, Option<i32>) {
    let versions = Versions { palisade: "0".to_owned(), kernel: "0".to_owned() };
    let mut report = RunReport::begin("s", &["true"], versions);
    let times = Times { setup: Duration::from_millis(2), wall: Duration::from_millis(5) };
    conclude(&mut report, ended, times);
    assert_eq!(report.usage.as_ref().unwrap().wall_us, 5000);
    (report.outcome, report.exit_code, report.signal)
}

fn ended(ending: Option<Ending>, killed: Option<Killed>) -> Ended {
    Ended {
        ending,
        killed,
        forwarded: Vec::new(),
        forwarded_beyond: 0,
        usage: Usage::default(),
        incidents: Incidents::default(),
        touched: crate::gate::Touched::default(),
    }
}

/// Proves: LIFE-3 own-exit-codes
#[test]
fn exit_codes_follow_the_convention() {
    let table = [
        (ended(Some(Ending::Code(7)), None), (Outcome::Completed, 7, None)),
        (ended(Some(Ending::Signal(11)), None), (Outcome::Signalled, 139, Some(11))),
        (ended(None, Some(Killed::Timeout)), (Outcome::Timeout, 124, Some(9))),
        (ended(None, Some(Killed::Asked)), (Outcome::Killed, 137, Some(9))),
        (ended(None, None), (Outcome::Killed, 137, Some(9))),
        // It ended in its own way when it was told that its time was over.
        (ended(Some(Ending::Code(0)), Some(Killed::Timeout)), (Outcome::Timeout, 124, None)),
        (ended(Some(Ending::Signal(15)), Some(Killed::Timeout)), (Outcome::Timeout, 124, Some(15))),
    ];
    for (ended, expected) in table {
        assert_eq!(concluded(&ended), expected, "{ended:?}");
    }
}

/// Proves: PROC-3 logged
#[test]
fn an_end_by_a_signal_that_we_passed_on_was_asked_for() {
    let mut by_request = ended(Some(Ending::Signal(15)), None);
    let name = "SIGTERM".to_owned();
    by_request.forwarded.push(SignalForwarded { signal: 15, name, fatal: true });
    assert_eq!(concluded(&by_request), (Outcome::Killed, 143, Some(15)));
}

/// Proves: AUD-2 command-entry
#[test]
fn a_declared_tool_is_recorded_by_its_own_name() {
    let plan = plan_without_namespaces();
    assert_eq!(describe(&plan, Some("bash"), "/project".into()).tool, "bash");
    assert_eq!(describe(&plan, None, "/project".into()).tool, "program");
}
