//! Sockets that killed sessions left behind: told from live ones by the kernel, and removed.

use crate::sessions::SUFFIX;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Removes what is left behind among the first `most` sockets of the directory. Only tidies up: what cannot be seen or
/// removed stays.
pub fn sweep(directory: &Path, most: usize) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let is_socket = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| name.ends_with(SUFFIX))
            && entry.file_type().is_ok_and(|kind| kind.is_socket())
    };
    for entry in entries.flatten().filter(is_socket).take(most) {
        remove_if_dead(&entry.path());
    }
}

/// Names of sessions are never used twice: a socket that is dead stays so.
pub(crate) fn remove_if_dead(path: &Path) {
    if is_dead(path) {
        let _ = fs::remove_file(path);
    }
}

/// Whether no process has the socket. Asked with a datagram socket, which a session's cannot accept: it is refused where
/// nobody is, has the wrong type where somebody is (unix(7): EPROTOTYPE), and nobody is woken for it. A session that has
/// bound its socket and does not listen yet is there.
fn is_dead(path: &Path) -> bool {
    let ask = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = rustix::fs::open(parent, directory, Mode::empty())?;
        // An address has room for 107 bytes, and a home directory may be longer than that.
        let address = Path::new("/proc/self/fd").join(held.as_raw_fd().to_string()).join(name);
        rustix::net::connect(&socket, &SocketAddrUnix::new(&address)?)
    };
    ask() == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
#[path = "leftover_tests.rs"]
mod tests;
