//! The I/O of everybody this process has waited for: what the kernel added to its account as they ended, with
//! what those had collected themselves. The last word on a run's I/O, short-lived processes and all, once its first
//! process was waited for. Must never take this process's own I/O for a child's.

use std::os::fd::OwnedFd;

use crate::ledger::Io;
use crate::procfs::{Proc, parse_io};

/// Longer than the file is: seven numbers and their names.
const MAX_FILE_BYTES: usize = 1024;

/// This process's account, open, and what it said then. A process that makes itself undumpable must open it before
/// that: afterwards its own files in `/proc` are root's. Reading goes on working.
#[derive(Debug)]
pub struct Collected {
    account: Account,
    before: Io,
}

#[derive(Debug)]
struct Account {
    /// The process with everything it collected.
    process: OwnedFd,
    /// Its only thread.
    thread: OwnedFd,
}

impl Collected {
    /// Opens the account of this process, which has one thread; `None` if the kernel does not count.
    pub fn open() -> Option<Self> {
        let proc = Proc::open().ok()?;
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let process = proc.file(pid, "io").ok()??;
        let thread = proc.file(pid, &format!("task/{pid}/io")).ok()??;
        let account = Account { process, thread };
        let before = account.of_children()?;
        Some(Self { account, before })
    }

    /// What children have read and written that were waited for since.
    pub fn since(&self) -> Option<Io> {
        Some(less(self.account.of_children()?, self.before))
    }
}

impl Account {
    fn of_children(&self) -> Option<Io> {
        let all = read(&self.process)?;
        // The thread last: what it does meanwhile is then not taken for a child's.
        let own = read(&self.thread)?;
        Some(less(all, own))
    }
}

fn read(file: &OwnedFd) -> Option<Io> {
    let mut text = [0; MAX_FILE_BYTES];
    let length = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut text, 0)).ok()?;
    parse_io(text.get(..length)?)
}

fn less(all: Io, part: Io) -> Io {
    Io {
        read_bytes: all.read_bytes.saturating_sub(part.read_bytes),
        written_bytes: all.written_bytes.saturating_sub(part.written_bytes),
        reads: all.reads.saturating_sub(part.reads),
        writes: all.writes.saturating_sub(part.writes),
    }
}

#[cfg(test)]
#[path = "collected_tests.rs"]
mod tests;
