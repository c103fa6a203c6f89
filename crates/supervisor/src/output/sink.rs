//! Where the caller wants the command's output: written to without ever waiting for its reader.
//!
//! The flags of the caller's own descriptor are left alone, since others share them.

use crate::error::Result;
use palisade_sys::At as _;
use palisade_sys::proc::poll;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::time::Duration;

/// A pipe that is ready for writing takes so much without waiting (`PIPE_BUF`, pipe(7)).
const AT_ONCE: usize = 4096;

#[derive(Debug)]
pub(super) struct Sink {
    fd: OwnedFd,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// An opening of our own that does not wait, or a file, which nobody waits for.
    Freely,
    /// A pipe that cannot be opened again, because another user made it: no more than it has room for.
    AsThereIsRoom,
    Socket,
}

impl Sink {
    pub(super) fn of(caller: BorrowedFd<'_>) -> Result<Self> {
        let again = || rustix::io::fcntl_dupfd_cloexec(caller, 3).call("fcntl");
        let found = rustix::fs::fstat(caller).call("fstat")?;
        let (fd, way) = match FileType::from_raw_mode(found.st_mode) {
            FileType::Fifo => {
                let path = format!("/proc/self/fd/{}", caller.as_raw_fd());
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                match rustix::fs::open(path, flags, Mode::empty()) {
                    Ok(own) => (own, Way::Freely),
                    Err(_) => (again()?, Way::AsThereIsRoom),
                }
            }
            FileType::Socket => (again()?, Way::Socket),
            _ => (again()?, Way::Freely),
        };
        Ok(Self { fd, way })
    }

    pub(super) fn write(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        match self.way {
            Way::Freely => rustix::io::write(&self.fd, bytes),
            Way::AsThereIsRoom => {
                let mut ready = [PollFd::new(&self.fd, PollFlags::OUT)];
                match poll(&mut ready, Some(Duration::ZERO)) {
                    Ok(1..) => rustix::io::write(&self.fd, &bytes[..bytes.len().min(AT_ONCE)]),
                    Ok(0) => Err(Errno::AGAIN),
                    Err(error) => Err(error.errno),
                }
            }
            Way::Socket => {
                rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
        }
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
