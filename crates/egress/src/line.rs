//! A packet socket to another process of the sandbox.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram as StdDatagram;
use tokio::net::UnixDatagram;

/// Sends and receives whole packets. The socket is SEQPACKET. It differs from a connected datagram socket only
/// in reporting the end, as a packet of zero bytes.
pub(crate) type Line = UnixDatagram;

pub(crate) fn line(fd: OwnedFd) -> io::Result<Line> {
    let socket = StdDatagram::from(fd);
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}
