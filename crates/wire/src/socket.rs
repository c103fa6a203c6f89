//! Messages over a SEQPACKET socket, which keeps their bounds: one packet is one message. See unix(7).
//! Must never make more system calls than one for each message: pid 1 and the command's process use it under filters.

use crate::codec::{WireMessage, decode, encode};
use crate::error::WireError;
use palisade_sys::fdpass::{
    self, next_length, recv_with_fds, send_with_fds, try_next_length, try_recv_with_fds,
};
use palisade_sys::{Errno, SysError};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A message, and the descriptors that came with it, in the order in which they were sent.
#[derive(Debug)]
pub struct Received<T> {
    pub message: T,
    pub descriptors: Vec<OwnedFd>,
}

/// Sends a message with copies of `descriptors`, and waits for room.
pub fn send<T: WireMessage>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    let packet = encode(message)?;
    send_with_fds(socket, &packet, descriptors)
        .map_err(|error| WireError::from_call(error, T::MAX_BYTES))
}

/// Sends what [`encode`] returned, if there is room now. Encoded by the caller, who can keep it until there is.
pub fn try_send(socket: impl AsFd, packet: &[u8]) -> Result<(), WireError> {
    fdpass::try_send(socket, packet).map_err(|error| match error.errno {
        Errno::AGAIN => WireError::NoRoom,
        _ => WireError::from_call(error, packet.len()),
    })
}

/// Waits for the next message. `buffer` has room for [`WireMessage::MAX_BYTES`].
pub fn receive<T: WireMessage>(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> Result<Received<T>, WireError> {
    let buffer = limited::<T>(buffer);
    let received = recv_with_fds(socket, buffer);
    unpack(received, buffer)
}

/// As [`receive`], for a message that may hold secrets: nothing of it stays in `buffer`.
pub fn receive_secret<T: WireMessage>(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> Result<Received<T>, WireError> {
    let buffer = limited::<T>(buffer);
    let received = recv_with_fds(socket, buffer);
    let used = received.as_ref().map_or(buffer.len(), |(length, _)| *length);
    let message = unpack(received, buffer);
    // No more than was written: in a process that forks, each page that is touched is a page to copy.
    buffer[..used].fill(0);
    message
}

/// The next message, if one is there now.
pub fn try_receive<T: WireMessage>(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> Result<Option<Received<T>>, WireError> {
    let buffer = limited::<T>(buffer);
    match try_recv_with_fds(socket, buffer) {
        Err(error) if error.errno == Errno::AGAIN => Ok(None),
        received => unpack(received, buffer).map(Some),
    }
}

/// As [`receive`], with a buffer that is made as long as the message, by one more call: for processes that live for a moment,
/// where each page that is touched costs more than that.
pub fn receive_growing<T: WireMessage>(
    socket: impl AsFd,
    buffer: &mut Vec<u8>,
) -> Result<Received<T>, WireError> {
    let length = next_length(&socket).map_err(|error| WireError::from_call(error, T::MAX_BYTES))?;
    grow::<T>(buffer, length);
    receive(socket, buffer)
}

/// The same, if a message is there now.
pub fn try_receive_growing<T: WireMessage>(
    socket: impl AsFd,
    buffer: &mut Vec<u8>,
) -> Result<Option<Received<T>>, WireError> {
    match try_next_length(&socket) {
        Err(error) if error.errno == Errno::AGAIN => return Ok(None),
        Err(error) => return Err(WireError::from_call(error, T::MAX_BYTES)),
        Ok(length) => grow::<T>(buffer, length),
    }
    try_receive(socket, buffer)
}

/// A message that exceeds its limit is cut, and so an error.
fn grow<T: WireMessage>(buffer: &mut Vec<u8>, length: usize) {
    // Into nothing, the end would look like a message that is cut.
    let wanted = length.clamp(1, T::MAX_BYTES);
    if buffer.len() < wanted {
        buffer.resize(wanted, 0);
    }
}

fn limited<T: WireMessage>(buffer: &mut [u8]) -> &mut [u8] {
    let limit = buffer.len().min(T::MAX_BYTES);
    &mut buffer[..limit]
}

fn unpack<T: WireMessage>(
    received: Result<(usize, Vec<OwnedFd>), SysError>,
    buffer: &[u8],
) -> Result<Received<T>, WireError> {
    match received {
        Ok((0, _)) => Err(WireError::Closed),
        Ok((length, descriptors)) => {
            Ok(Received { message: decode(&buffer[..length])?, descriptors })
        }
        Err(error) => Err(WireError::from_call(error, buffer.len())),
    }
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
