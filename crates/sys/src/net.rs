//! The loopback interface of a network namespace, and TCP on it.
//! Must never talk to an address other than 127.0.0.1.

#![expect(unsafe_code, reason = "interface flags are set by an ioctl on a C union")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::LinkNameSpaceType;

use crate::error::{At, Result, check, errno_of};

/// Loopback answers at once or not at all; a dropped packet must not block the caller.
const CONNECT_LIMIT: Duration = Duration::from_millis(500);

/// Brings `lo` up in our network namespace; the kernel then assigns it 127.0.0.1 and ::1.
pub fn loopback_up() -> Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .call("socket")?;
    // SAFETY: all zeroes is a valid ifreq: it is a name and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    let fd = socket.as_raw_fd();
    // SAFETY: the request names the interface, and the kernel writes within one ifreq.
    let read = unsafe { libc::ioctl(fd, libc::SIOCGIFFLAGS as _, &raw mut request) };
    check(read.into()).call("ioctl SIOCGIFFLAGS lo")?;
    // SAFETY: the call above filled this field of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | UP;
    // SAFETY: the kernel only reads the request, whose flags were set just above.
    let written = unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS as _, &raw const request) };
    check(written.into()).map(drop).call("ioctl SIOCSIFFLAGS lo")
}

/// `IFF_UP`, which libc types wider than its field.
const UP: libc::c_short = 1;

/// A listening socket on a free port of 127.0.0.1, and that port.
pub fn tcp_listener_loopback() -> Result<(OwnedFd, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).call("bind 127.0.0.1")?;
    let port = listener.local_addr().call("getsockname")?.port();
    Ok((OwnedFd::from(listener), port))
}

/// Tries to connect to a port of 127.0.0.1 and closes the connection. Waits 500 ms at most.
pub fn tcp_connect_loopback(port: u16) -> std::result::Result<(), Errno> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, CONNECT_LIMIT).map(drop).map_err(|error| {
        match error.kind() {
            std::io::ErrorKind::TimedOut => Errno::TIMEDOUT,
            _ => errno_of(&error),
        }
    })
}

/// The network namespace that a socket belongs to. Needs `CAP_NET_ADMIN` over it. See netdevice(7), SIOCGSKNS.
pub fn namespace_of(socket: impl AsFd) -> Result<OwnedFd> {
    descriptor_by_ioctl(socket.as_fd(), SIOCGSKNS, "ioctl SIOCGSKNS")
}

/// The user namespace that owns another namespace. See ioctl_nsfs(2).
pub fn owner_of(namespace: impl AsFd) -> Result<OwnedFd> {
    descriptor_by_ioctl(namespace.as_fd(), NS_GET_USERNS, "ioctl NS_GET_USERNS")
}

/// Moves this single-threaded process into a network namespace.
pub fn enter(namespace: impl AsFd) -> Result<()> {
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .call("setns")
}

const SIOCGSKNS: libc::c_ulong = 0x894c;
const NS_GET_USERNS: libc::c_ulong = 0xb701;

/// For requests that take no argument and return a descriptor.
fn descriptor_by_ioctl(
    fd: BorrowedFd<'_>,
    request: libc::c_ulong,
    call: &'static str,
) -> Result<OwnedFd> {
    // SAFETY: both requests take no argument and write no memory.
    let made = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, 0) };
    check(made.into()).call(call)?;
    // SAFETY: a success is a new descriptor that nobody else owns.
    let made = unsafe { OwnedFd::from_raw_fd(made) };
    // The kernel already does this for both. A descriptor that leaked into the command would be a way out of the
    // sandbox.
    rustix::io::fcntl_setfd(&made, FdFlags::CLOEXEC).call("fcntl F_SETFD")?;
    Ok(made)
}

#[cfg(test)]
#[path = "net_tests.rs"]
mod tests;
