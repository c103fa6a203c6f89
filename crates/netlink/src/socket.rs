//! A netlink socket: acknowledged requests, and dumps. The kernel processes a request before send(2) returns,
//! so nothing here blocks.

use crate::attributes::{Answer, answers, native32};
use crate::message::Message;
use palisade_sys::{At as _, Errno, Result, SysError};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The kernel sends dumps in packets of at most 32 KiB (netlink(7)).
const MAX_PACKET_BYTES: usize = 32 * 1024;
/// A longer dump is an error, so that reading always ends.
const MAX_PACKETS: usize = 64;

/// Bound to the network namespace that it was created in, whichever process uses it.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

/// A message that the kernel refused: its index in the request, and the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) index: usize,
    pub(crate) errno: Errno,
}

impl Socket {
    /// For addresses, routes and links.
    pub fn route() -> Result<Self> {
        Self::open(None, "socket NETLINK_ROUTE")
    }

    /// For packet rules.
    pub fn netfilter() -> Result<Self> {
        Self::open(Some(netlink::NETFILTER), "socket NETLINK_NETFILTER")
    }

    fn open(protocol: Option<Protocol>, call: &'static str) -> Result<Self> {
        rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )
        .map(|fd| Self { fd })
        .call(call)
    }

    /// Sends all messages; the error names the first that was refused.
    pub(crate) fn request(&self, messages: Vec<Message>) -> Result<()> {
        let names: Vec<&'static str> = messages.iter().map(|message| message.what).collect();
        match self.try_each(messages)?.first() {
            None => Ok(()),
            Some(Refused { index, errno }) => {
                let what = names.get(*index).copied().unwrap_or("a request");
                Err(SysError::new("netlink", what, *errno))
            }
        }
    }

    /// Sends the messages in one packet and returns those that were refused. Only the last one requests an
    /// acknowledgement, which covers the others: the kernel processes them in order and always answers a
    /// failure.
    pub(crate) fn try_each(&self, messages: Vec<Message>) -> Result<Vec<Refused>> {
        let last = messages.iter().rposition(|message| message.answered).map_or(0, |at| at + 1);
        let mut packet = Vec::new();
        for (message, sequence) in messages.into_iter().zip(1_u32..) {
            let what = message.what;
            let bytes = message.finish(sequence, usize::try_from(sequence) == Ok(last));
            packet.extend(bytes.map_err(|errno| SysError::new("netlink", what, errno))?);
        }
        self.send(&packet)?;
        let mut refused = Vec::new();
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        loop {
            let length = match self.receive(&mut buffer) {
                // A request of several messages may stop at the first failure.
                Err(error) if error.errno == Errno::AGAIN && !refused.is_empty() => {
                    return Ok(refused);
                }
                received => received?,
            };
            for answer in answers(&buffer[..length]).filter(|answer| answer.kind == NLMSG_ERROR) {
                let sequence = usize::try_from(answer.sequence).unwrap_or(0);
                if let Some(errno) = failure(answer)? {
                    refused.push(Refused { index: sequence.saturating_sub(1), errno });
                }
                if sequence == last {
                    return Ok(refused);
                }
            }
        }
    }

    /// Calls `each` for every message of the answer.
    pub(crate) fn list(&self, message: Message, mut each: impl FnMut(&[u8])) -> Result<()> {
        let what = message.what;
        let refused = |errno| SysError::new("netlink", what, errno);
        self.send(&message.finish(1, false).map_err(refused)?)?;
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        for _ in 0..MAX_PACKETS {
            let length = self.receive(&mut buffer)?;
            for answer in answers(&buffer[..length]) {
                match answer.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return failure(answer)?.map_or(Ok(()), |e| Err(refused(e))),
                    _ => each(answer.body),
                }
            }
        }
        Err(refused(Errno::MSGSIZE))
    }

    fn send(&self, packet: &[u8]) -> Result<()> {
        rustix::net::send(&self.fd, packet, SendFlags::empty()).map(drop).call("send to netlink")
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        rustix::net::recv(&self.fd, buffer, RecvFlags::DONTWAIT)
            .map(|(length, _)| length)
            .call("receive from netlink")
    }
}

/// The errno of an answer, or `None` for an acknowledgement.
fn failure(answer: Answer<'_>) -> Result<Option<Errno>> {
    let Some(code) = native32(answer.body, 0) else {
        return Err(SysError::new("netlink", "an answer that does not parse", Errno::BADMSG));
    };
    let code = code.cast_signed();
    Ok((code != 0).then(|| Errno::from_raw_os_error(code.saturating_neg())))
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.fd
    }
}
