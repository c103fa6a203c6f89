//! One end of a control socket: messages with descriptors, never waiting on this side of it.
//!
//! A client that does not read must not hold up the supervisor: what it has not read is kept up to a limit, and beyond that
//! the connection is over.

use super::interface::{FromSupervisor, Request};
use palisade_sys::{Errno, SysError};
use palisade_wire::{Received, WireError, WireMessage as _};
use rustix::event::PollFlags;
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Messages for a client that does not read them.
const MAX_UNREAD: usize = 1024;

#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    unread: VecDeque<(FromSupervisor, Option<OwnedFd>)>,
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
    pub(crate) fn new(socket: OwnedFd) -> Result<Self, SysError> {
        let flags = rustix::fs::fcntl_getfl(&socket)
            .and_then(|flags| rustix::fs::fcntl_setfl(&socket, flags | OFlags::NONBLOCK));
        flags.map_err(|errno| SysError::new("fcntl", "the control socket", errno))?;
        Ok(Self { socket, unread: VecDeque::new(), buffer: vec![0; Request::MAX_BYTES] })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What to wait for at the socket.
    pub(crate) fn interest(&self) -> PollFlags {
        if self.unread.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
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

    /// Whether the client has read so much of what it was sent that there is room for what it may miss.
    pub(crate) fn is_keeping_up(&self) -> bool {
        self.unread.len() < MAX_UNREAD / 2
    }

    /// Sends, now or later. An error if the client is gone, or has left too much unread.
    pub(crate) fn send(
        &mut self,
        message: FromSupervisor,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), WireError> {
        if self.unread.len() >= MAX_UNREAD {
            return Err(WireError::NoRoom);
        }
        self.unread.push_back((message, descriptor));
        self.flush()
    }

    /// Sends as much as the socket has room for.
    pub(crate) fn flush(&mut self) -> Result<(), WireError> {
        while let Some((message, descriptor)) = self.unread.front() {
            let descriptor = descriptor.as_ref().map(AsFd::as_fd);
            match palisade_wire::send(&self.socket, message, descriptor.as_slice()) {
                Err(WireError::System(error)) if error.errno == Errno::AGAIN => return Ok(()),
                sent => sent?,
            }
            self.unread.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
