use super::*;
use std::process::Command;

const COMMAND: CommandId = CommandId(1);

/// What is heard of a process that reports so and closes its end.
fn heard(reports: &[StartReport]) -> SpawnerEvent {
    let (ours, theirs) = socketpair().unwrap();
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let mut forkling = Forkling::new(COMMAND, Pid::from_child(&child), ours);
    assert_eq!(forkling.hear(), None);
    for report in reports {
        palisade_wire::send(&theirs, report, &[]).unwrap();
    }
    drop(theirs);
    // Other tests fork, and hold a copy of our end for a moment.
    let heard = loop {
        match forkling.hear() {
            Some(heard) => break heard,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert_eq!(forkling.hear(), None, "each thing is said once");
    if matches!(heard, SpawnerEvent::Started { .. }) {
        child.kill().unwrap();
    }
    // What did not start was killed.
    child.wait().unwrap();
    heard
}

#[test]
fn a_process_that_ends_before_its_exec_has_not_started() {
    let failed = || StartReport::Failed(LaunchError::new(STEP, "exec: no"));
    let executing = StartReport::Executing;
    assert!(matches!(heard(&[StartReport::Executing]), SpawnerEvent::Started { .. }));
    for (reports, why) in [
        (&[][..], "ended before"),
        (&[failed()], "exec: no"),
        (&[executing.clone(), failed()], "exec: no"),
        (&[executing.clone(), executing], "twice"),
    ] {
        let heard = heard(reports);
        let SpawnerEvent::NotStarted { error, .. } = &heard else { panic!("{heard:?}") };
        assert!(error.detail.contains(why), "{error}");
    }
}
