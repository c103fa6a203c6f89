//! Ending as the command did: of the same signal.
//!
//! Only the wait status tells a shell that its loop or script was interrupted: a program that exits with 130 has dealt with the
//! Ctrl-C itself (<https://www.cons.org/cracauer/sigint.html>). `timeout(1)` ends like this as well. To be called last: nothing comes after it.

use palisade_record::RunReport;
use palisade_supervisor::error::SIGNAL_BASE;
use palisade_sys::proc::sig::{SIGINT, SIGKILL, SIGQUIT};
use palisade_sys::proc::{
    foreground_group, kill, kill_own_group, own_group, reset_action, unblock_signals,
};
use rustix::process::DumpableBehavior;

/// Does not return if the command ended of a signal. A shell shows the status as 128 plus its number, as before.
pub fn die_like(report: &RunReport) {
    let Some(signal) = fatal(report) else { return };
    // A core would be ours, and the command's was written already if somebody wanted it.
    if rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return;
    }
    reset_action(signal);
    if unblock_signals(&[signal]).is_err() {
        return;
    }
    // Whatever fails here, the exit code says the same. As pid 1 of a container nothing happens: the kernel protects it.
    if is_from_keyboard(report, signal) {
        let _ = kill_own_group(signal);
    }
    let _ = kill(rustix::process::getpid(), signal);
}

/// The signal that ended the command. Not SIGKILL: who sees that of us must be able to tell that nobody is left who cleaned up.
fn fatal(report: &RunReport) -> Option<i32> {
    let is_told = |signal: &i32| report.exit_code == SIGNAL_BASE + signal;
    report.signal.filter(is_told).filter(|signal| *signal != SIGKILL)
}

/// Whether it was most likely a key. Keys went to the command's terminal, so that the others in our process group (a script that runs
/// us, the rest of a pipeline) have not heard of it, as they would have without us.
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
