//! Sockets that killed sessions left behind: told from live ones by the kernel, and removed.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub(crate) const SUFFIX: &str = ".sock";

/// Removes what is left behind among the first `most` sockets of the directory. Only tidies up: what cannot be seen or
/// removed stays.
pub fn sweep(directory: &Path, most: usize) {
    let Some(held) = open_own(directory) else { return };
    let Ok(entries) = Dir::read_from(&held) else { return };
    let is_ours = |name: &&OsString| name.as_encoded_bytes().ends_with(SUFFIX.as_bytes());
    let names: Vec<OsString> = entries
        .flatten()
        .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
        .collect();
    for name in names.iter().filter(is_ours).take(most) {
        remove_from(&held, name);
    }
}

/// Names of sessions are never used twice: a socket that is dead stays so.
pub(crate) fn remove_if_dead(path: &Path) {
    if let Some((parent, name)) = path.parent().zip(path.file_name())
        && let Some(held) = open_own(parent)
    {
        remove_from(&held, name);
    }
}

/// Only a directory that no other user can change: one who can put a link in its place, or a file into it, could have
/// another file removed in our name.
fn open_own(directory: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::open(directory, flags, Mode::empty()).ok()?;
    let found = rustix::fs::fstat(&held).ok()?;
    let is_own = found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & 0o022 == 0;
    is_own.then_some(held)
}

fn remove_from(directory: &OwnedFd, name: &OsStr) {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_socket =
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Socket);
    if is_socket && is_dead(directory, name) {
        let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
    }
}

/// Whether no process has the socket. Asked with a datagram socket, which a session's cannot accept: it is refused where
/// nobody is, has the wrong type where somebody is (unix(7): EPROTOTYPE), and nobody is woken for it. A session that has
/// bound its socket and does not listen yet is there.
fn is_dead(held: &OwnedFd, name: &OsStr) -> bool {
    let ask = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        // An address has room for 107 bytes, and a home directory may be longer than that.
        let address = Path::new("/proc/self/fd").join(held.as_raw_fd().to_string()).join(name);
        rustix::net::connect(&socket, &SocketAddrUnix::new(&address)?)
    };
    ask() == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
#[path = "leftover_tests.rs"]
mod tests;
