use super::conclude;
use crate::escape::{EscapeWatch, warning};
use crate::incidents::Incidents;
use crate::limits::Tally;
use crate::log_budget::Excess;
use crate::output::{Capped, Lost, Stream};
use crate::supervisor::{ExitState, Killed};
use palisade_launch::ExitCause;
use palisade_plan::limit::LimitKind;
use palisade_record::{Outcome, SignalForwarded};

fn concluded(ended: &ExitState) -> (Outcome, i32, Option<i32>) {
    let conclusion = conclude(ended);
    (conclusion.outcome, conclusion.exit_code, conclusion.signal)
}

fn ended(ending: Option<ExitCause>, killed: Option<Killed>) -> ExitState {
    ExitState {
        ending,
        killed,
        forwarded: Vec::new(),
        forwarded_beyond: 0,
        tally: Tally::default(),
        incidents: Incidents::new(None, Excess::Summed),
        escape: EscapeWatch::new(&warning()),
        touched: crate::gate::Touched::default(),
        private_home: None,
        network_counters: Vec::new(),
        egress_summary: None,
        unasked: None,
        notes: Vec::new(),
        output: crate::output::Delivered::default(),
    }
}

fn reached(ending: ExitCause, what: LimitKind) -> ExitState {
    let mut ended = ended(Some(ending), None);
    ended.tally.reached(what, None, None);
    ended
}

/// Proves: LIFE-3 own-exit-codes
#[test]
fn exit_codes_follow_the_convention() {
    let table = [
        (ended(Some(ExitCause::Code(7)), None), (Outcome::Completed, 7, None)),
        (ended(Some(ExitCause::Signal(11)), None), (Outcome::Signalled, 139, Some(11))),
        (ended(None, Some(Killed::Timeout)), (Outcome::Timeout, 124, Some(9))),
        (ended(None, Some(Killed::Asked)), (Outcome::Killed, 137, Some(9))),
        (ended(None, None), (Outcome::Killed, 137, Some(9))),
        // It ended in its own way when it was told that its time was over.
        (ended(Some(ExitCause::Code(0)), Some(Killed::Timeout)), (Outcome::Timeout, 124, None)),
        (
            ended(Some(ExitCause::Signal(15)), Some(Killed::Timeout)),
            (Outcome::Timeout, 124, Some(15)),
        ),
    ];
    for (ended, expected) in table {
        assert_eq!(concluded(&ended), expected, "{ended:?}");
    }
}

/// Proves: PROC-3 logged
#[test]
fn an_end_by_a_signal_that_we_passed_on_was_asked_for() {
    let mut by_request = ended(Some(ExitCause::Signal(15)), None);
    let name = "SIGTERM".to_owned();
    by_request.forwarded.push(SignalForwarded { signal: 15, name, fatal: true });
    assert_eq!(concluded(&by_request), (Outcome::Killed, 143, Some(15)));
}

/// Proves: RES-4 memory, RES-2 cpu-time
#[test]
fn a_limit_that_ended_the_run_is_its_outcome() {
    let by = |what| ended(None, Some(Killed::Limit(what)));
    let table = [
        (by(LimitKind::Memory), Outcome::OutOfMemory),
        (by(LimitKind::CpuTime), Outcome::CpuTime),
        (by(LimitKind::Threads), Outcome::TooManyProcesses),
        (by(LimitKind::Inodes), Outcome::DiskFull),
    ];
    for (ended, outcome) in table {
        assert_eq!(concluded(&ended), (outcome, 137, Some(9)), "{ended:?}");
    }
}

/// Proves: RES-4 memory
#[test]
fn out_of_memory_is_told_though_the_command_says_that_all_is_well() {
    let survived = reached(ExitCause::Code(0), LimitKind::Memory);
    assert_eq!(concluded(&survived), (Outcome::OutOfMemory, 137, None));
}

/// Proves: RES-4 fork, RES-4 disk
#[test]
fn a_limit_that_was_hit_explains_a_failure_and_leaves_no_success() {
    for (what, outcome) in
        [(LimitKind::Processes, Outcome::TooManyProcesses), (LimitKind::Disk, Outcome::DiskFull)]
    {
        assert_eq!(concluded(&reached(ExitCause::Code(2), what)), (outcome, 2, None));
        assert_eq!(concluded(&reached(ExitCause::Signal(6), what)), (outcome, 134, Some(6)));
        assert_eq!(concluded(&reached(ExitCause::Code(0), what)), (outcome, 137, None));
    }
}

/// Proves: RES-2 output
#[test]
fn output_that_was_cut_is_told_with_the_commands_own_code() {
    let mut capped = ended(Some(ExitCause::Code(3)), None);
    let (stream, limit) = (Stream::Stdout, 10);
    capped.output.capped.push(Capped { stream, limit, seen_bytes: 20, cut_bytes: 10 });
    assert_eq!(concluded(&capped), (Outcome::OutputCapped, 3, None));
}

/// Proves: RES-2 output, LIFE-3 own-exit-codes
#[test]
fn output_that_its_reader_did_not_get_leaves_no_success() {
    use rustix::io::Errno;
    let lost = |errno, code| {
        let mut lost = ended(Some(ExitCause::Code(code)), None);
        lost.output.lost.push(Lost { stream: Stream::Stdout, errno });
        concluded(&lost)
    };
    assert_eq!(lost(Errno::NOSPC, 0), (Outcome::Failed, 125, None));
    // As it would have ended had it written to that pipe itself.
    assert_eq!(lost(Errno::PIPE, 0), (Outcome::Signalled, 141, Some(13)));
    assert_eq!(lost(Errno::NOSPC, 3), (Outcome::Completed, 3, None));
}
