//! A process that does one thing beside the sandbox, for as long as that takes, so that the supervisor waits for nothing. It
//! has no descriptor of the supervisor's and ends with it. A run goes on without it.

use crate::error::{During as _, LaunchError};
use crate::helper::{Helper, HelperKind};
use crate::parent::Running;
use palisade_sys::{At as _, proc};
use rustix::pipe::PipeFlags;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

const STEP: &str = "starting a worker";
/// Of the result, which is one write: so much is never divided (pipe(7)).
const MAX_RESULT: usize = 4096;
/// What the result begins with.
const DONE: u8 = b'+';
const FAILED: u8 = b'-';

/// The process, seen from the supervisor. Dropping it ends the process.
#[derive(Debug)]
pub struct Worker {
    _helper: Helper,
    result: OwnedFd,
}

impl Worker {
    /// Forks it. `work` must open what it needs by itself. The caller must be single-threaded.
    pub fn start(
        running: &Running,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<Self, LaunchError> {
        let (result, told) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).call("pipe2").during(STEP)?;
        let kept = vec![told.as_raw_fd()];
        let helper = running.helpers().start(HelperKind::Worker, STEP, kept, |_| {
            let mut text = match work() {
                Ok(()) => vec![DONE],
                Err(why) => [&[FAILED], why.as_bytes()].concat(),
            };
            text.truncate(MAX_RESULT);
            // Who does not hear it takes it for killed.
            let _ = rustix::io::write(&told, &text);
            proc::exit_now(0)
        })?;
        Ok(Self { _helper: helper, result })
    }

    /// Readable when it is done, or dead.
    pub fn watched(&self) -> BorrowedFd<'_> {
        self.result.as_fd()
    }

    /// What became of it. To be called when there is something to read.
    pub fn result(self) -> Result<(), String> {
        let mut text = [0; MAX_RESULT];
        let length = rustix::io::read(&self.result, &mut text).unwrap_or(0);
        match text[..length].split_first() {
            Some((&DONE, _)) => Ok(()),
            Some((_, why)) => Err(String::from_utf8_lossy(why).into_owned()),
            None => Err("its process was killed".to_owned()),
        }
    }
}
