//! The connection to the kernel: a descriptor of `/dev/fuse` that another process has mounted. Never blocks on a read.

use crate::error::ProtocolError;
use crate::fields::Writer;
use crate::ids::Unique;
use crate::reply::Reply;
use crate::request::Request;
use palisade_sys::{At as _, Errno, Result, SysError};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The header of a request, and `struct fuse_write_in`.
const WRITE_HEAD: usize = 40 + 40;
/// What the kernel requires of a buffer at least (`FUSE_MIN_READ_BUFFER`).
const MIN_BUFFER: usize = 8192;
/// `struct fuse_out_header`.
const REPLY_HEAD: usize = 16;

/// Room for one request.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// For requests of a connection with that largest write. Into a smaller one the kernel reads nothing (`EINVAL`).
    pub fn new(max_write: u32) -> Self {
        let data = usize::try_from(max_write).unwrap_or(usize::MAX);
        Self(vec![0; data.saturating_add(WRITE_HEAD).max(MIN_BUFFER)])
    }
}

/// A descriptor of `/dev/fuse`.
#[derive(Debug)]
pub struct Connection(OwnedFd);

/// What came from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    Request(Request<'a>),
    /// Not a request as the protocol has it. Answer `EIO` if it has a number.
    Malformed(ProtocolError),
    /// There is nothing now: wait until the descriptor is readable.
    Nothing,
    /// A request was withdrawn while it was read: read again.
    Withdrawn,
    /// The file system was unmounted everywhere. Nothing will come any more.
    Closed,
    /// The connection was aborted, while the file system is still mounted: every call on it fails from now on. Only
    /// told apart from [`Self::Closed`] if [`crate::InitFlags::ABORT_ERROR`] was agreed.
    Aborted,
}

/// What became of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Delivery {
    Delivered,
    /// Nobody waits for it: the connection is closed, or it was answered before. A look-up or an open file in it does
    /// not count.
    Gone,
}

impl Connection {
    /// Takes over a descriptor that is mounted, or will be before the first read. Whoever opened the device must have
    /// been in the user namespace that it is mounted from; otherwise the kernel refuses the mount (`EINVAL`).
    pub fn new(device: OwnedFd) -> Result<Self> {
        let flags = fcntl_getfl(&device).call("fcntl F_GETFL")?;
        fcntl_setfl(&device, flags | OFlags::NONBLOCK).call("fcntl F_SETFL")?;
        Ok(Self(device))
    }

    /// The next request, if there is one. An error is final: the descriptor is not a mounted `/dev/fuse`, or the buffer
    /// is too small.
    pub fn receive<'a>(&self, buffer: &'a mut Buffer) -> Result<Received<'a>> {
        match rustix::io::read(&self.0, &mut buffer.0[..]) {
            // At the end of a file, which the device does not have.
            Ok(0) => Ok(Received::Closed),
            Ok(length) => Ok(match Request::parse(&buffer.0[..length]) {
                Ok(request) => Received::Request(request),
                Err(error) => Received::Malformed(error),
            }),
            Err(Errno::AGAIN) => Ok(Received::Nothing),
            Err(Errno::NOENT | Errno::INTR) => Ok(Received::Withdrawn),
            Err(Errno::NODEV) => Ok(Received::Closed),
            Err(Errno::CONNABORTED) => Ok(Received::Aborted),
            Err(errno) => Err(SysError::new("read", DEVICE, errno)),
        }
    }

    /// Answers a request, now or as late as need be. Does not wait for anyone.
    pub fn reply(&self, request: Unique, reply: &Reply<'_>) -> Result<Delivery> {
        match self.send(request, reply.error_field(), reply.payload()) {
            Ok(()) => Ok(Delivery::Delivered),
            Err(error) if error.errno == Errno::NOENT => Ok(Delivery::Gone),
            Err(error) => Err(error),
        }
    }

    /// A message is written at once or not at all.
    fn send(&self, unique: Unique, error: i32, payload: &[u8]) -> Result<()> {
        let length = REPLY_HEAD + payload.len();
        let Ok(stated) = u32::try_from(length) else {
            return Err(SysError::new("writev", DEVICE, Errno::MSGSIZE));
        };
        let head = Writer::with_capacity(REPLY_HEAD).u32(stated).i32(error).u64(unique.0).finish();
        let parts = [IoSlice::new(&head), IoSlice::new(payload)];
        match rustix::io::writev(&self.0, &parts) {
            Ok(written) if written == length => Ok(()),
            Ok(_) => Err(SysError::new("writev", DEVICE, Errno::IO)),
            Err(errno) => Err(SysError::new("writev", DEVICE, errno)),
        }
    }
}

const DEVICE: &str = "/dev/fuse";

/// For poll(2): readable when there is a request; `POLLERR` when the connection is closed.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
