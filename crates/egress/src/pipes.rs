//! A pool of pipes for splicing, lent to a connection only while bytes are in transit.
//!
//! A pipe that still contains bytes must never be lent again: they would end up in another connection.

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Size of a pipe. A larger one does not make transfers faster, and each user has a limited number of pages for
/// pipes (`/proc/sys/fs/pipe-user-pages-soft`).
pub(crate) const CAPACITY: usize = 256 * 1024;
/// Kept for reuse.
const MAX_SPARE: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

/// Empty, or holding bytes in transit between two sockets.
#[derive(Debug)]
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    holds: usize,
}

impl Pipe {
    pub(crate) fn lend() -> io::Result<Self> {
        if let Some(pipe) = SPARE.with_borrow_mut(Vec::pop) {
            return Ok(pipe);
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        match fcntl_setpipe_size(&writer, CAPACITY) {
            // Beyond the user's limit of pages a pipe stays small, but works.
            Ok(_) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(Self { reader, writer, holds: 0 })
    }

    /// Reads at most `most` bytes from a socket. Zero means end of stream.
    pub(crate) fn fill(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        let taken = splice(from, None, &self.writer, None, most.min(CAPACITY), flags())?;
        self.holds += taken;
        Ok(taken)
    }

    /// Writes its bytes, or a part of them, to a socket.
    pub(crate) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let given = splice(&self.reader, None, to, None, self.holds, flags())?;
        self.holds -= given.min(self.holds);
        Ok(given)
    }

    pub(crate) fn holds(&self) -> usize {
        self.holds
    }

    pub(crate) fn give_back(self) {
        SPARE.with_borrow_mut(|spare| {
            if self.holds == 0 && spare.len() < MAX_SPARE {
                spare.push(self);
            }
        });
    }
}

fn flags() -> SpliceFlags {
    SpliceFlags::MOVE | SpliceFlags::NONBLOCK
}
