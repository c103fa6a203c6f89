//! Signals as data: which ones the supervisor takes for itself, and what each one asks for.
//!
//! No handler is ever installed; a signal is read from a descriptor at a time of our choosing.

use crate::error::Result;
use palisade_sys::proc::{SigInfo, block_signals, is_ignored, read_signalfd, signalfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Two deliveries of one wish: `timeout(1)` signals its child and then its whole group.
const SAME_WISH: Duration = Duration::from_millis(200);

/// What an arrived signal asks the supervisor to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Pass it on; the command decides what it means.
    Forward(Signal),
    /// Pass it on, and end the sandbox if the command does not.
    End(Signal),
    /// Somebody has asked twice: end it now.
    EndAtOnce(Signal),
    /// The window changed its size.
    Resize,
    /// The job goes on after a stop.
    Continue,
}

/// The supervisor's own signals, blocked and waiting to be read.
#[derive(Debug)]
pub struct Signals {
    waiting: OwnedFd,
    first_end: Option<Instant>,
    is_end_asked: bool,
}

impl Signals {
    const TAKEN: [Signal; 12] = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::POWER,
        Signal::WINCH,
        Signal::TSTP,
        Signal::CONT,
        Signal::CHILD,
    ];

    /// To be called before the launch, so that no signal falls between; the launcher gives the
    /// command a clean mask.
    pub fn take() -> Result<Self> {
        let numbers: Vec<i32> = Self::TAKEN
            .map(Signal::as_raw)
            .into_iter()
            // What the caller made us ignore (nohup, a shell's `&`) the command ignores as well.
            .filter(|signal| !is_ignored(*signal))
            .collect();
        block_signals(&numbers)?;
        Ok(Self { waiting: signalfd(&numbers)?, first_end: None, is_end_asked: false })
    }

    pub(crate) fn waiting(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }

    /// Whether the run was asked to end, at any time and by more than one Ctrl-C, which is the command's to answer.
    pub(crate) fn is_end_asked(&self) -> bool {
        self.is_end_asked
    }

    /// The next wish, or `None` when nothing is waiting.
    pub(crate) fn next(&mut self) -> Result<Option<Wish>> {
        while let Some(info) = read_signalfd(&self.waiting)? {
            let wish = self.meaning(info, Instant::now());
            if wish.is_some() {
                return Ok(wish);
            }
        }
        Ok(None)
    }

    fn meaning(&mut self, info: SigInfo, now: Instant) -> Option<Wish> {
        let signal = Self::TAKEN.into_iter().find(|signal| signal.as_raw() == info.signo)?;
        Some(match signal {
            Signal::WINCH => Wish::Resize,
            Signal::CONT => Wish::Continue,
            // The end of our pid 1 shows on its pidfd.
            Signal::CHILD => return None,
            Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                let first = *self.first_end.get_or_insert(now);
                let insists = matches!(signal, Signal::INT | Signal::TERM)
                    && now.duration_since(first) >= SAME_WISH;
                self.is_end_asked |= insists || signal != Signal::INT;
                if insists { Wish::EndAtOnce(signal) } else { Wish::End(signal) }
            }
            other => Wish::Forward(other),
        })
    }
}

/// The conventional name, for records.
pub(crate) fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        Signal::HUP => "SIGHUP",
        Signal::QUIT => "SIGQUIT",
        Signal::USR1 => "SIGUSR1",
        Signal::USR2 => "SIGUSR2",
        Signal::TSTP => "SIGTSTP",
        Signal::CONT => "SIGCONT",
        Signal::ALARM => "SIGALRM",
        Signal::POWER => "SIGPWR",
        _ => "signal",
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, SAME_WISH, SigInfo, Signal, Signals, Wish};

    fn signals() -> Signals {
        let (waiting, _) = rustix::pipe::pipe().unwrap();
        Signals { waiting, first_end: None, is_end_asked: false }
    }

    fn info(signal: Signal) -> SigInfo {
        SigInfo { signo: signal.as_raw(), pid: None, uid: 0, code: 0 }
    }

    /// Proves: PROC-3 fatal
    #[test]
    fn asking_twice_ends_at_once_and_an_echo_does_not_count() {
        let mut signals = signals();
        let start = Instant::now();
        assert_eq!(signals.meaning(info(Signal::TERM), start), Some(Wish::End(Signal::TERM)));
        let echo = start + SAME_WISH / 2;
        assert_eq!(signals.meaning(info(Signal::TERM), echo), Some(Wish::End(Signal::TERM)));
        let again = start + Duration::from_secs(1);
        assert_eq!(signals.meaning(info(Signal::INT), again), Some(Wish::EndAtOnce(Signal::INT)));
    }

    /// Proves: RES-5 time
    #[test]
    fn that_an_end_was_asked_for_is_remembered() {
        let (start, soon) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        for (wishes, expected) in [
            (&[(Signal::USR1, start)][..], false),
            (&[(Signal::INT, start)], false),
            (&[(Signal::INT, start), (Signal::INT, soon)], true),
            (&[(Signal::TERM, start)], true),
            (&[(Signal::HUP, start), (Signal::CONT, soon)], true),
        ] {
            let mut signals = signals();
            for (signal, when) in wishes {
                signals.meaning(info(*signal), *when);
            }
            assert_eq!(signals.is_end_asked(), expected, "{wishes:?}");
        }
    }

    #[test]
    fn a_user_signal_is_only_passed_on() {
        let mut signals = signals();
        let now = Instant::now();
        assert_eq!(signals.meaning(info(Signal::USR1), now), Some(Wish::Forward(Signal::USR1)));
        assert_eq!(signals.meaning(info(Signal::CHILD), now), None);
        assert!(signals.first_end.is_none());
    }
}
