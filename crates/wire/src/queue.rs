//! Messages on their way to a socket, in order, for a process that must never wait for their receiver. What the receiver
//! has not read is kept up to a limit.

use crate::codec::{WireMessage, encode};
use crate::error::WireError;
use palisade_sys::fdpass::try_send_with_fds;
use palisade_sys::{Errno, SysError};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long to wait where no event tells that there is room again.
const RETRY: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Outgoing {
    packet: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

#[derive(Debug)]
pub struct SendQueue {
    waiting: VecDeque<Outgoing>,
    limit: usize,
    /// When to try again, after a refusal that has nothing to do with the socket.
    retry_at: Option<Instant>,
}

impl SendQueue {
    /// For so many messages that were not read.
    pub fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), limit, retry_at: None }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether [`Self::flush`] has something to do as soon as the socket has room.
    pub fn wants_room(&self) -> bool {
        !self.is_empty() && self.retry_at.is_none()
    }

    /// When [`Self::flush`] has something to do whatever happens at the socket.
    pub fn next_retry(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Sends a message, now or later. After an error nothing of it is sent.
    pub fn send<T: WireMessage>(
        &mut self,
        socket: impl AsFd,
        message: &T,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), WireError> {
        let outgoing = Outgoing { packet: encode(message)?, descriptors };
        if self.is_empty()
            && self.attempt(&outgoing, |packet, with| try_send_with_fds(&socket, packet, with))?
        {
            return Ok(());
        }
        if self.waiting.len() >= self.limit {
            return Err(WireError::NoRoom);
        }
        self.waiting.push_back(outgoing);
        Ok(())
    }

    /// Sends as much as there is room for. After an error the message that it is about is lost.
    pub fn flush(&mut self, socket: impl AsFd) -> Result<(), WireError> {
        self.flush_by(|packet, descriptors| try_send_with_fds(&socket, packet, descriptors))
    }

    fn flush_by(
        &mut self,
        mut send: impl FnMut(&[u8], &[BorrowedFd<'_>]) -> Result<(), SysError>,
    ) -> Result<(), WireError> {
        if self.retry_at.is_some_and(|retry_at| Instant::now() < retry_at) {
            return Ok(());
        }
        while let Some(outgoing) = self.waiting.pop_front() {
            if !self.attempt(&outgoing, &mut send)? {
                self.waiting.push_front(outgoing);
                break;
            }
        }
        Ok(())
    }

    /// Whether it was sent.
    fn attempt(
        &mut self,
        outgoing: &Outgoing,
        mut send: impl FnMut(&[u8], &[BorrowedFd<'_>]) -> Result<(), SysError>,
    ) -> Result<bool, WireError> {
        self.retry_at = None;
        let Outgoing { packet, descriptors } = outgoing;
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        match send(packet, &descriptors) {
            Ok(()) => Ok(true),
            Err(error) if error.errno == Errno::AGAIN => Ok(false),
            // unix(7): descriptors in flight count for all processes of a user, so that anybody's may use them up. Memory is
            // everybody's, too.
            Err(error)
                if matches!(error.errno, Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) =>
            {
                self.retry_at = Some(Instant::now() + RETRY);
                Ok(false)
            }
            Err(error) => Err(WireError::from_call(error, packet.len())),
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
