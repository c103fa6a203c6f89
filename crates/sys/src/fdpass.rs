//! Passes open files between processes over a socket. See unix(7), SCM_RIGHTS. Must never lose descriptors
//! silently: a truncated message is an error.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::Pid;

use crate::error::{At, Result, SysError};

/// The maximum number of descriptors per message here; the kernel's own limit is 253.
pub const MAX_FDS: usize = 64;

const ANCILLARY_BYTES: usize = rustix::cmsg_space!(ScmRights(MAX_FDS));

/// Two connected sockets that preserve message boundaries, close-on-exec.
pub fn socketpair() -> Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .call("socketpair")
}

/// Sends one message with copies of `fds`. `bytes` must not be empty: the receiver would take such a message for the
/// end.
pub fn send_with_fds(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    send_with_flags(socket.as_fd(), bytes, fds, SendFlags::NOSIGNAL)
}

/// Like [`send_with_fds`], but fails with `EAGAIN` if there is no room for the message now.
pub fn try_send_with_fds(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    send_with_flags(socket.as_fd(), bytes, fds, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_with_flags(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<()> {
    let refused = |why: &str, errno| Err(SysError::new("sendmsg", why, errno));
    if bytes.is_empty() {
        return refused("empty message", Errno::INVAL);
    }
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fits = fds.len() <= MAX_FDS;
    if !fits || (!fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds))) {
        return refused("too many descriptors", Errno::TOOBIG);
    }
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)
    })
    .call("sendmsg")?;
    if sent == bytes.len() { Ok(()) } else { refused("cut message", Errno::MSGSIZE) }
}

/// Sends one message if there is room for it now, and fails with `EAGAIN` if not.
pub fn try_send(socket: impl AsFd, bytes: &[u8]) -> Result<()> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::send(socket, bytes, flags).map(drop).call("send")
}

/// Receives one message into `buffer`. Returns its length and its descriptors, close-on-exec. Zero bytes is the end:
/// the other side is closed.
pub fn recv_with_fds(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>)> {
    recv_with_flags(socket.as_fd(), buffer, RecvFlags::empty())
}

/// Like [`recv_with_fds`], but fails with `EAGAIN` if no message is waiting.
pub fn try_recv_with_fds(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>)> {
    recv_with_flags(socket.as_fd(), buffer, RecvFlags::DONTWAIT)
}

/// The length of the next message, which stays where it is. Waits for one; zero is the end.
pub fn next_length(socket: impl AsFd) -> Result<usize> {
    peek(socket.as_fd(), RecvFlags::empty())
}

/// Like [`next_length`], but fails with `EAGAIN` if no message is waiting.
pub fn try_next_length(socket: impl AsFd) -> Result<usize> {
    peek(socket.as_fd(), RecvFlags::DONTWAIT)
}

fn peek(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<usize> {
    let flags = flags | RecvFlags::PEEK | RecvFlags::TRUNC;
    let peek = || {
        rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut [0_u8; 0], flags))
            .map(|(_, length)| length)
    };
    match peek() {
        // As in `receive`.
        Err(Errno::CONNRESET) => peek(),
        peeked => peeked,
    }
    .call("recv")
}

fn recv_with_flags(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Vec<OwnedFd>)> {
    let mut fds = Vec::new();
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let bytes = receive(socket, buffer, flags, &mut space, |message| {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            fds.extend(sent);
        }
    })?;
    Ok((bytes, fds))
}

/// Makes later messages on this socket carry their sender's credentials. See unix(7), SCM_CREDENTIALS.
pub fn reveal_senders(socket: impl AsFd) -> Result<()> {
    rustix::net::sockopt::set_socket_passcred(socket.as_fd(), true).call("setsockopt SO_PASSCRED")
}

/// Receives one message together with its sender's pid in our pid namespace. The kernel vouches for it, and the sender
/// needs no call but write(2). Only after [`reveal_senders`].
pub fn recv_from_process(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Option<Pid>)> {
    let mut sender = None;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let bytes = receive(socket.as_fd(), buffer, RecvFlags::empty(), &mut space, |message| {
        if let RecvAncillaryMessage::ScmCredentials(credentials) = message {
            sender = Some(credentials.pid);
        }
    })?;
    Ok((bytes, sender))
}

/// Fails rather than returning a truncated message.
fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: RecvFlags,
    space: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(RecvAncillaryMessage<'_>),
) -> Result<usize> {
    let mut ancillary = RecvAncillaryBuffer::new(space);
    let mut receive = || {
        rustix::io::retry_on_intr(|| {
            rustix::net::recvmsg(
                socket,
                &mut [IoSliceMut::new(buffer)],
                &mut ancillary,
                flags | RecvFlags::CMSG_CLOEXEC,
            )
        })
    };
    // If the peer closed with messages unread, this error is reported once, before the messages that it sent.
    let received = match receive() {
        Err(Errno::CONNRESET) => receive(),
        received => received,
    }
    .call("recvmsg")?;
    ancillary.drain().for_each(&mut each);
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(SysError::new("recvmsg", "cut message", Errno::MSGSIZE));
    }
    // The descriptor limit was reached, or no descriptors were expected.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(SysError::new("recvmsg", "cut descriptors", Errno::MFILE));
    }
    Ok(received.bytes)
}

#[cfg(test)]
#[path = "fdpass_tests.rs"]
mod tests;
