//! Whether a signal is pending for a thread whose call waits for an answer.
//!
//! The kernel lets only a fatal signal interrupt a notified call (`WAIT_KILLABLE_RECV`), because what the
//! broker performs must not happen twice. A question may take minutes, so there the broker interrupts: the call
//! returns ERESTARTSYS, the handler runs, and the call is made again or ends with EINTR, as the handler was set
//! up.
//!
//! This applies to signals that a process sends. Signals from timers, children and windows wait for the answer:
//! outside a sandbox no handler ever interrupts such a call, and a program with a timer could otherwise never
//! get an answer.

use palisade_sys::Errno;

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPPING: u64 = 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21;

/// SIGALRM, SIGCHLD, SIGCONT, SIGURG, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO.
const BY_THEMSELVES: u64 =
    1 << 13 | 1 << 16 | 1 << 17 | 1 << 22 | 1 << 25 | 1 << 26 | 1 << 27 | 1 << 28;

/// `ERESTARTSYS`. Only for a thread that will look at its signals before it is back in its program, which would
/// otherwise see this number.
const RESTART: i32 = 512;

/// The signal fields of a thread's `status` in `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    of_thread: u64,
    of_process: u64,
    /// Whether signals for the process go to this thread first: it is the first one, or the only one.
    is_first: bool,
}

impl Signals {
    /// Signals that would interrupt it. `None` if the text is malformed.
    pub(crate) fn of_status(text: &str) -> Option<Self> {
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mask = |name: &str| u64::from_str_radix(field(name)?, 16).ok();
        let (blocked, ignored, caught) = (mask("SigBlk:")?, mask("SigIgn:")?, mask("SigCgt:")?);
        let counts = !blocked & !BY_THEMSELVES & (caught | (STOPPING & !ignored));
        Some(Self {
            of_thread: mask("SigPnd:")? & counts,
            of_process: mask("ShdPnd:")? & counts,
            is_first: field("Tgid:")? == field("Pid:")? || field("Threads:")? == "1",
        })
    }

    pub(crate) fn interrupt(self) -> bool {
        self.of_thread != 0 || self.of_process != 0
    }

    /// What an interrupted call returns. A signal for the process is delivered to its first thread if that can
    /// take it (complete_signal()); any other thread may never check, and gets an errno that it may see.
    pub(crate) fn errno(self) -> Errno {
        if self.of_thread != 0 || self.is_first {
            Errno::from_raw_os_error(RESTART)
        } else {
            Errno::INTR
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RESTART, Signals};
    use palisade_sys::Errno;

    fn status(tgid: u32, pending: [u64; 2], [blocked, ignored, caught]: [u64; 3]) -> Signals {
        let [thread, process] = pending;
        Signals::of_status(&format!(
            "Name:\tx\nTgid:\t{tgid}\nPid:\t7\nThreads:\t3\nSigQ:\t0/1\nSigPnd:\t{thread:016x}\n\
             ShdPnd:\t{process:016x}\nSigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\n\
             SigCgt:\t{caught:016x}\nCapInh:\t0\n"
        ))
        .unwrap()
    }

    const INT: u64 = 1 << 1;
    const TSTP: u64 = 1 << 19;

    /// Proves: GATE-1 signals-by-themselves
    #[test]
    fn what_comes_by_itself_waits() {
        for number in [14, 17, 18, 23, 26, 27, 28, 29] {
            let signal = 1 << (number - 1);
            assert!(!status(7, [signal, signal], [0, 0, signal]).interrupt(), "{number}");
        }
    }

    /// Proves: GATE-1 signals
    #[test]
    fn only_what_would_run_a_handler_or_stop_interrupts() {
        assert!(status(7, [INT, 0], [0, 0, INT]).interrupt());
        assert!(status(7, [0, INT], [0, 0, INT]).interrupt());
        assert!(!status(7, [INT, INT], [INT, 0, INT]).interrupt(), "blocked");
        assert!(!status(7, [INT, INT], [0, 0, 0]).interrupt(), "no handler: it kills");
        assert!(status(7, [0, TSTP], [0, 0, 0]).interrupt());
        assert!(!status(7, [0, TSTP], [0, TSTP, 0]).interrupt(), "ignored");
        assert_eq!(Signals::of_status("Name:\tx\n"), None);
    }

    /// Proves: GATE-1 signals
    #[test]
    fn a_thread_that_might_not_look_at_its_signals_is_not_told_to_restart() {
        let restart = Errno::from_raw_os_error(RESTART);
        assert_eq!(restart.raw_os_error(), RESTART);
        assert_eq!(status(7, [0, INT], [0, 0, INT]).errno(), restart);
        assert_eq!(status(6, [INT, 0], [0, 0, INT]).errno(), restart);
        assert_eq!(status(6, [0, INT], [0, 0, INT]).errno(), Errno::INTR);
    }
}
