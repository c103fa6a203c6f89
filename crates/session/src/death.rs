//! Ends this process by the signal that killed the command.
//!
//! A shell learns only from the wait status that its loop or script was interrupted: a program that exits with 130 has
//! handled the Ctrl-C itself (<https://www.cons.org/cracauer/sigint.html>). `timeout(1)` does the same. Must be called
//! last, since it does not return.

use palisade_record::RunReport;
use palisade_supervisor::error::SIGNAL_BASE;
use palisade_sys::proc::sig::{SIGINT, SIGKILL, SIGQUIT};
use palisade_sys::proc::{
    foreground_group, kill, kill_own_group, own_group, reset_action, unblock_signals,
};
use rustix::process::DumpableBehavior;

/// Does not return if a signal killed the command. A shell still shows the status as 128 plus the signal's number.
pub fn die_like(report: &RunReport) {
    let Some(signal) = fatal(report) else { return };
    // A core file would be ours; the command's own was already written, if one was requested.
    if rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return;
    }
    reset_action(signal);
    if unblock_signals(&[signal]).is_err() {
        return;
    }
    // If anything fails here, the exit code still shows the signal. The kernel protects pid 1 of a container from its
    // own signals.
    if is_from_keyboard(report, signal) {
        let _ = kill_own_group(signal);
    }
    let _ = kill(rustix::process::getpid(), signal);
}

/// The signal that killed the command. Not SIGKILL: of us, that must only ever mean that no cleanup took place.
fn fatal(report: &RunReport) -> Option<i32> {
    let is_told = |signal: &i32| report.exit_code == SIGNAL_BASE + signal;
    report.signal.filter(is_told).filter(|signal| *signal != SIGKILL)
}

/// Whether the signal most likely came from a key. Keys go to the command's terminal, so the rest of our process group
/// (a script that runs us, other parts of a pipeline) did not get the signal, as it would have without us.
fn is_from_keyboard(report: &RunReport, signal: i32) -> bool {
    let was_sent = report.signals_forwarded.iter().any(|forwarded| forwarded.signal == signal);
    let terminal = rustix::stdio::stdin();
    matches!(signal, SIGINT | SIGQUIT)
        && !was_sent
        && rustix::termios::isatty(terminal)
        && foreground_group(terminal).is_ok_and(|group| group == own_group())
}

#[cfg(test)]
#[path = "death_tests.rs"]
mod tests;
