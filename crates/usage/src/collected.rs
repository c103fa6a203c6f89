//! The I/O of everybody this process has waited for: what the kernel added to its account as they ended. The
//! last word on a run's I/O, short-lived processes and all, after its first process was waited for.

use std::os::fd::{AsFd, OwnedFd};

use crate::error::UsageError;
use crate::ledger::Io;
use crate::procfs::{Proc, form, parse_io};

/// This process's account, open. It has to be opened before the process makes itself undumpable: after that its own
/// files in `/proc` are root's.
#[derive(Debug)]
pub struct Collected {
    proc: Proc,
    pid: i32,
    /// The process with everything it collected.
    process: Option<OwnedFd>,
    /// Its only thread.
    thread: Option<OwnedFd>,
}

impl Collected {
    /// Opens the account of this process, which has one thread.
    pub fn open() -> Result<Self, UsageError> {
        let proc = Proc::open()?;
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let process = proc.file(pid, "io")?;
        let thread = proc.file(pid, &format!("task/{pid}/io"))?;
        Ok(Self { proc, pid, process, thread })
    }

    /// What children that were waited for have read and written; `None` if the kernel does not count.
    pub fn io(&mut self) -> Result<Option<Io>, UsageError> {
        let (Some(process), Some(thread)) = (&self.process, &self.thread) else { return Ok(None) };
        // The thread last: what it does meanwhile is then not taken for a child's.
        let mut read = |file: &OwnedFd| match self.proc.read(file.as_fd())? {
            Some(text) => parse_io(text).map(Some).ok_or_else(|| form(self.pid, "io", text)),
            None => Ok(None),
        };
        let (Some(all), Some(own)) = (read(process)?, read(thread)?) else { return Ok(None) };
        Ok(Some(Io {
            read_bytes: all.read_bytes.saturating_sub(own.read_bytes),
            written_bytes: all.written_bytes.saturating_sub(own.written_bytes),
            reads: all.reads.saturating_sub(own.reads),
            writes: all.writes.saturating_sub(own.writes),
        }))
    }
}

#[cfg(test)]
#[path = "collected_tests.rs"]
mod tests;
