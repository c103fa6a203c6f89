//! One end of a control socket: messages with descriptors, never waiting on this side of it while a sandbox runs.
//!
//! A client that does not read must not hold up the supervisor: what it has not read is kept up to a limit, and beyond that
//! the connection is over. It outlives the supervisor, so that a slow client still gets what is left of it.

use super::interface::{FromSupervisor, Request};
use palisade_sys::proc::{self, PollFd};
use palisade_sys::{Errno, SysError};
use palisade_wire::{Received, SendQueue, WireError, WireMessage as _};
use rustix::event::PollFlags;
use rustix::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Messages for a client that does not read them.
const MAX_UNREAD: usize = 1024;

/// So many messages wait for a client that reads and is merely slower than a command writes.
const FEW_UNREAD: usize = 4;

/// How long a client may take to read what is left when the sandbox has ended.
pub(super) const LAST_READS: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    unread: SendQueue,
    buffer: Vec<u8>,
}

/// What came from the client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Request, Vec<OwnedFd>),
    /// A packet that is no request.
    Malformed(String),
    Nothing,
    Closed,
}

impl Connection {
    /// The socket is a SEQPACKET one. Whether it blocks does not matter.
    pub fn new(socket: OwnedFd) -> Self {
        let buffer = vec![0; Request::MAX_BYTES];
        Self { socket, unread: SendQueue::new(MAX_UNREAD), buffer }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What to wait for at the socket.
    pub(crate) fn interest(&self) -> PollFlags {
        if self.unread.wants_room() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// When there is something to [`flush`](Self::flush) whatever happens at the socket.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.unread.next_retry()
    }

    pub(crate) fn receive(&mut self) -> Incoming {
        match palisade_wire::try_receive(&self.socket, &mut self.buffer) {
            Ok(Some(Received { message, descriptors })) => Incoming::Request(message, descriptors),
            Ok(None) => Incoming::Nothing,
            Err(WireError::Closed) => Incoming::Closed,
            Err(error @ (WireError::Undecodable(_) | WireError::TooLong { .. })) => {
                Incoming::Malformed(error.to_string())
            }
            // More descriptors than there is room for.
            Err(WireError::System(error)) if error.errno == Errno::MFILE => {
                Incoming::Malformed(error.to_string())
            }
            Err(_) => Incoming::Closed,
        }
    }

    /// As [`Self::receive`], but waits for something. Only where nothing else has to be watched.
    pub(crate) fn wait_for_request(&mut self) -> Result<Incoming, WireError> {
        loop {
            self.wait(self.interest(), None)?;
            self.flush()?;
            match self.receive() {
                Incoming::Nothing => {}
                incoming => return Ok(incoming),
            }
        }
    }

    /// Whether the client has read so much of what it was sent that there is room for what it may miss.
    pub(crate) fn is_keeping_up(&self) -> bool {
        self.unread.len() < MAX_UNREAD / 2
    }

    /// Whether it has read nearly all that it was sent.
    pub(crate) fn is_reading(&self) -> bool {
        self.unread.len() < FEW_UNREAD
    }

    /// Sends, now or later. An error if the client is gone, or has left too much unread.
    pub(crate) fn send(
        &mut self,
        message: &FromSupervisor,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), WireError> {
        self.unread.send(&self.socket, message, Vec::from_iter(descriptor))
    }

    /// Sends as much as the socket has room for.
    pub(crate) fn flush(&mut self) -> Result<(), WireError> {
        self.unread.flush(&self.socket)
    }

    /// The last message, after what the client has not read yet. Waits for it to read, though not for ever.
    pub fn finish(&mut self, last: &FromSupervisor) -> Result<(), WireError> {
        self.finish_by(last, Instant::now() + LAST_READS)
    }

    /// The same, until a point in time.
    pub(super) fn finish_by(
        &mut self,
        last: &FromSupervisor,
        deadline: Instant,
    ) -> Result<(), WireError> {
        self.flush_until(deadline)?;
        self.send(last, None)?;
        self.flush_until(deadline)
    }

    /// Whether the other end is closed, though there may be something left to read.
    pub(crate) fn is_hung_up(&self) -> bool {
        let mut watched = [PollFd::new(&self.socket, PollFlags::empty())];
        let is_over =
            |watched: &PollFd<'_>| watched.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        // What cannot be polled has nobody at its other end.
        proc::poll(&mut watched, Some(Duration::ZERO)).is_err() || is_over(&watched[0])
    }

    /// Nothing more is sent or received. What the client was sent it can still read.
    pub(crate) fn close(&mut self) {
        self.unread = SendQueue::new(MAX_UNREAD);
        // It fails where the other end is gone already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    fn flush_until(&mut self, deadline: Instant) -> Result<(), WireError> {
        self.flush()?;
        while !self.unread.is_empty() && Instant::now() < deadline {
            self.wait(self.interest() - PollFlags::IN, self.next_retry().or(Some(deadline)))?;
            self.flush()?;
        }
        Ok(())
    }

    fn wait(&self, events: PollFlags, until: Option<Instant>) -> Result<(), WireError> {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut watched = [PollFd::new(&self.socket, events)];
        proc::poll(&mut watched, timeout).map(drop).map_err(WireError::System)
    }
}

/// Whether this descriptor can be a control socket.
pub fn is_seqpacket(socket: impl AsFd) -> Result<bool, SysError> {
    match rustix::net::sockopt::socket_type(socket) {
        Ok(kind) => Ok(kind == rustix::net::SocketType::SEQPACKET),
        Err(Errno::NOTSOCK) => Ok(false),
        Err(errno) => Err(SysError::new("getsockopt", "SO_TYPE", errno)),
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
