//! How this process ends before its work is done: by termination signals, which a program that has taken over the terminal must not miss, and with
//! its parent.
//!
//! Must never install a handler: signals are read from a descriptor at a time of our choosing.

use crate::error::Result;
use palisade_sys::creds;
use palisade_sys::proc::{block_signals, is_ignored, read_signalfd, signalfd};
use rustix::process::Signal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const TAKEN: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT];

/// From now on this process is killed when the one that started it ends, and the sandbox with it.
pub fn end_with_parent() -> Result<()> {
    if let Some(parent) = rustix::process::getppid() {
        creds::end_with_parent(parent)?;
    }
    Ok(())
}

/// Signals that would have ended this process, blocked until they are read.
#[derive(Debug)]
pub struct EndSignals(OwnedFd);

impl EndSignals {
    /// Must be called before the terminal is taken over. Signals that we inherited as ignored (nohup) stay ignored.
    pub fn take() -> Result<Self> {
        let taken = TAKEN.map(Signal::as_raw).into_iter().filter(|signal| !is_ignored(*signal));
        let taken: Vec<i32> = taken.collect();
        block_signals(&taken)?;
        Ok(Self(signalfd(&taken)?))
    }

    /// The exit code if a signal has arrived: 128 plus its number, as in a shell.
    pub fn wanted(&self) -> Result<Option<u8>> {
        let Some(info) = read_signalfd(&self.0)? else { return Ok(None) };
        Ok(Some(128 + u8::try_from(info.signo).unwrap_or_default()))
    }
}

impl AsFd for EndSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
