//! The I/O of all children this process has waited for: the kernel adds it to the parent's account when they end, with
//! what they collected themselves. It is the final count of a run's I/O, including short-lived processes, once its
//! first process was waited for. Must never take this process's own I/O for a child's.

use std::os::fd::OwnedFd;

use crate::ledger::Io;
use crate::procfs::{Proc, parse_io};

/// Longer than the file: seven numbers and their names.
const MAX_FILE_BYTES: usize = 1024;

/// This process's account, kept open, and its initial value. A process that makes itself undumpable must open it
/// before: afterwards its own files in `/proc` belong to root. Reading continues to work.
#[derive(Debug)]
pub struct Collected {
    account: Account,
    before: Io,
}

#[derive(Debug)]
struct Account {
    /// The process including everything it collected.
    process: OwnedFd,
    /// Its only thread.
    thread: OwnedFd,
}

impl Collected {
    /// Opens the account of this process, which must have one thread; `None` if the kernel does not count I/O.
    pub fn open() -> Option<Self> {
        let proc = Proc::open().ok()?;
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let process = proc.file(pid, "io").ok()??;
        let thread = proc.file(pid, &format!("task/{pid}/io")).ok()??;
        let account = Account { process, thread };
        let before = account.of_children()?;
        Some(Self { account, before })
    }

    /// The I/O of children that were waited for since.
    pub fn since(&self) -> Option<Io> {
        Some(less(self.account.of_children()?, self.before))
    }
}

impl Account {
    fn of_children(&self) -> Option<Io> {
        let all = read(&self.process)?;
        // The thread last: its own I/O meanwhile is then not taken for a child's.
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
