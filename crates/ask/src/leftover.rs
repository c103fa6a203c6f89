//! Removes the sockets of killed sessions. The kernel says which sockets are still in use.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub(crate) const SUFFIX: &str = ".sock";

/// Removes the dead ones among the first `most` sockets of the directory. Best effort: sockets that cannot be
/// examined or removed stay.
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

/// Session names are never reused, so a dead socket stays dead.
pub(crate) fn remove_if_dead(path: &Path) {
    if let Some((parent, name)) = path.parent().zip(path.file_name())
        && let Some(held) = open_own(parent)
    {
        remove_from(&held, name);
    }
}

/// Accepts only a directory that no other user can change. A user who can replace it by a link, or put a file
/// into it, could make us remove another file.
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

/// Whether no process has the socket. Connects with a datagram socket, which a session cannot accept. The error
/// is ECONNREFUSED if nobody has the socket, and EPROTOTYPE (unix(7)) if a process has it; the session does not
/// wake up. A session that has bound its socket but does not listen yet counts as alive.
fn is_dead(held: &OwnedFd, name: &OsStr) -> bool {
    let ask = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        // A socket address has room for 107 bytes, and the path may be longer.
        let address = Path::new("/proc/self/fd").join(held.as_raw_fd().to_string()).join(name);
        rustix::net::connect(&socket, &SocketAddrUnix::new(&address)?)
    };
    ask() == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
#[path = "leftover_tests.rs"]
mod tests;
