//! How a run ended, in the words of the report (RES-4, LIFE-3). Pure: everything it needs was seen before.

use crate::error::{OWN_FAILURE, SIGNAL_BASE, SupervisorError, TIMED_OUT};
use crate::supervisor::{ExitState, Killed};
use palisade_launch::ExitCause;
use palisade_plan::limit::LimitKind;
use palisade_record::Outcome;
use palisade_sys::proc::sig::{SIGKILL, SIGPIPE};

/// What is told of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    pub outcome: Outcome,
    pub exit_code: i32,
    pub signal: Option<i32>,
    /// The limit that ended the run.
    pub ended_by: Option<LimitKind>,
}

pub fn conclude(ended: &ExitState) -> Conclusion {
    // A limit goes before whatever the command made of it.
    if let Some(what) = ended_by(ended) {
        let signal = match ended.ending {
            None => Some(SIGKILL),
            Some(ExitCause::Signal(signal)) => Some(signal),
            Some(ExitCause::Code(_)) => None,
        };
        let exit_code = match what {
            LimitKind::WallTime => i32::from(TIMED_OUT),
            _ => SIGNAL_BASE + SIGKILL,
        };
        return Conclusion { outcome: outcome_of(what), exit_code, signal, ended_by: Some(what) };
    }
    if let Some(Killed::Expired(_)) = ended.killed {
        let (outcome, exit_code) = (Outcome::Timeout, i32::from(TIMED_OUT));
        return Conclusion { outcome, exit_code, signal: None, ended_by: None };
    }
    // Whatever it ended with, perhaps before we could end it: a caller must not take it for a success.
    if ended.escape.action().ends() {
        let (outcome, exit_code) = (Outcome::Killed, SIGNAL_BASE + SIGKILL);
        return Conclusion { outcome, exit_code, signal: Some(SIGKILL), ended_by: None };
    }
    let asked_for =
        |signal: i32| ended.forwarded.iter().any(|forwarded| forwarded.signal == signal);
    let (outcome, exit_code, signal) = match ended.ending {
        // Hit, a limit is told by the code too: a caller that looks at nothing else must not take this for a success.
        Some(ExitCause::Code(0)) if let Some(outcome) = failed(ended) => {
            (outcome, SIGNAL_BASE + SIGKILL, None)
        }
        Some(ExitCause::Code(0)) => undelivered(ended).unwrap_or((completed(ended), 0, None)),
        Some(ExitCause::Code(code)) => (failed(ended).unwrap_or(completed(ended)), code, None),
        Some(ExitCause::Signal(signal)) if asked_for(signal) => {
            (Outcome::Killed, SIGNAL_BASE + signal, Some(signal))
        }
        Some(ExitCause::Signal(signal)) => {
            let outcome = failed(ended).unwrap_or(Outcome::Signalled);
            (outcome, SIGNAL_BASE + signal, Some(signal))
        }
        None => (Outcome::Killed, SIGNAL_BASE + SIGKILL, Some(SIGKILL)),
    };
    Conclusion { outcome, exit_code, signal, ended_by: None }
}

/// The limit for which the supervisor or the kernel ended everything.
fn ended_by(ended: &ExitState) -> Option<LimitKind> {
    match ended.killed {
        Some(Killed::Timeout) => Some(LimitKind::WallTime),
        Some(Killed::Limit(what)) => Some(what),
        // Whoever was killed for want of memory, the run was not what it should have been.
        _ if ended.tally.has_reached(LimitKind::Memory) => Some(LimitKind::Memory),
        Some(Killed::Asked | Killed::Escape | Killed::Expired(_)) | None => None,
    }
}

/// The limit for which the command is not known to have started.
pub fn not_started_for(error: &SupervisorError) -> Option<LimitKind> {
    match error {
        SupervisorError::TimedOut => Some(LimitKind::WallTime),
        SupervisorError::OutOfMemory => Some(LimitKind::Memory),
        _ => None,
    }
}

/// How a run ended that ended for this limit.
pub fn outcome_of(what: LimitKind) -> Outcome {
    match what {
        LimitKind::WallTime => Outcome::Timeout,
        LimitKind::Memory | LimitKind::Swap => Outcome::OutOfMemory,
        LimitKind::CpuTime => Outcome::CpuTime,
        LimitKind::Processes | LimitKind::Threads => Outcome::TooManyProcesses,
        LimitKind::Disk | LimitKind::Inodes => Outcome::DiskFull,
        LimitKind::Output => Outcome::OutputCapped,
        LimitKind::MemoryHigh
        | LimitKind::Cpus
        | LimitKind::CpuSet
        | LimitKind::OpenFiles
        | LimitKind::FileSize
        | LimitKind::IoBandwidth
        | LimitKind::IoOperations => Outcome::Killed,
    }
}

/// The limit by which a command that failed may well have failed.
fn failed(ended: &ExitState) -> Option<Outcome> {
    [LimitKind::Disk, LimitKind::Inodes, LimitKind::Processes, LimitKind::Threads]
        .into_iter()
        .find(|what| ended.tally.has_reached(*what))
        .map(outcome_of)
}

/// What becomes of a command that says that all is well, though not all of its output reached its reader. Without us
/// between the two it would have met that error itself.
fn undelivered(ended: &ExitState) -> Option<(Outcome, i32, Option<i32>)> {
    let lost = ended.output.lost.first()?;
    Some(match lost.reader_is_gone() {
        true => (Outcome::Signalled, SIGNAL_BASE + SIGPIPE, Some(SIGPIPE)),
        false => (Outcome::Failed, i32::from(OWN_FAILURE), None),
    })
}

fn completed(ended: &ExitState) -> Outcome {
    if ended.output.capped.is_empty() { Outcome::Completed } else { outcome_of(LimitKind::Output) }
}

#[cfg(test)]
#[path = "conclusion_tests.rs"]
mod tests;
