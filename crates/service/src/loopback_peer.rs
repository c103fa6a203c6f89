//! Whose process is at the other end of a TCP connection over loopback. A UNIX socket says it (`SO_PEERCRED`); for TCP it is in the kernel's
//! table of sockets (proc_pid_net(5)), and the processes that have a socket are found by its inode (proc_pid_fd(5)).
//!
//! Must never guess: a connection that is not in the table belongs to nobody, and a socket that no process is seen to have is not outside.

use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use rustix::net::getpeername;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

pub(crate) const TABLE: &str = "/proc/self/net/tcp";
/// The id that stands for every user whom our user namespace does not have.
const OVERFLOW_UID: &str = "/proc/sys/kernel/overflowuid";
/// The table may change while it is read, and a line be missed.
const ATTEMPTS: usize = 3;
/// Of `st`. Sockets in other states may have another owner in the table: one that waits for its end (TIME_WAIT) shows 0.
const ESTABLISHED: &str = "01";
// Columns, from the first one.
const LOCAL: usize = 1;
const REMOTE: usize = 2;
const STATE: usize = 3;
const UID: usize = 7;
const INODE: usize = 9;

/// Who has the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerOwner {
    pub(crate) uid: u32,
    /// Whether every process that has it is in our user namespace. One in a sandbox is not: with the host's network it reaches our port, and
    /// an ordinary user's sandbox has that user's id.
    pub(crate) is_outside: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SocketEntry {
    uid: u32,
    inode: u64,
}

/// Whether it can be said who connects.
pub(crate) fn check() -> io::Result<()> {
    let mut head = String::new();
    BufReader::new(File::open(TABLE)?).read_line(&mut head)?;
    Ok(())
}

/// Whether this is still connected to there. A connection that its other end has reset is not, and its port may be another socket's.
pub(crate) fn is_connected(ours: impl AsFd, theirs: SocketAddrV4) -> bool {
    getpeername(ours)
        .is_ok_and(|now| now.is_some_and(|now| SocketAddrV4::try_from(now) == Ok(theirs)))
}

/// Whose socket is `theirs`, connected to `ours`. While our end is connected ([`is_connected`], afterwards), no other socket can have these two
/// addresses. Reads files: for a thread that may block.
pub(crate) fn owner(theirs: SocketAddrV4, ours: SocketAddrV4) -> io::Result<Option<PeerOwner>> {
    for _ in 0..ATTEMPTS {
        let found = entry_in(BufReader::new(File::open(TABLE)?), theirs, ours)?;
        if let Some(SocketEntry { uid, inode }) = found {
            if uid.to_string() == fs::read_to_string(OVERFLOW_UID)?.trim() {
                return Ok(None);
            }
            return Ok(Some(PeerOwner { uid, is_outside: is_held_outside(inode)? }));
        }
    }
    Ok(None)
}

/// Whether the processes that have this socket open, as far as they can be seen, share our user namespace. None that can be seen is a no.
fn is_held_outside(inode: u64) -> io::Result<bool> {
    let socket = format!("socket:[{inode}]");
    let own = fs::read_link("/proc/self/ns/user")?;
    let mut is_held = false;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        // It stays that of one process, also if another one gets its id. One that has ended has nothing open.
        let Ok(process) = open_directory(CWD, &entry.path()) else { continue };
        if !has_open(&process, socket.as_bytes()) {
            continue;
        }
        // Asked after the socket was seen there: no process can enter our namespace from one below it.
        if link(&process, "ns/user") != Some(own.as_os_str().as_encoded_bytes().to_vec()) {
            return Ok(false);
        }
        is_held = true;
    }
    Ok(is_held)
}

/// Whether a descriptor of this process leads there. Those of a process that we may not trace are not seen.
fn has_open(process: &OwnedFd, target: &[u8]) -> bool {
    let Ok(descriptors) = open_directory(process, Path::new("fd")) else { return false };
    let Ok(names) = Dir::read_from(&descriptors) else { return false };
    names.flatten().any(|name| link(&descriptors, name.file_name()).as_deref() == Some(target))
}

fn open_directory(at: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

fn link(at: &OwnedFd, name: impl rustix::path::Arg) -> Option<Vec<u8>> {
    readlinkat(at, name, Vec::new()).ok().map(CString::into_bytes)
}

fn entry_in(
    table: impl BufRead,
    theirs: SocketAddrV4,
    ours: SocketAddrV4,
) -> io::Result<Option<SocketEntry>> {
    let (local, remote) = (written(theirs), written(ours));
    for line in table.lines() {
        let line = line?;
        let columns: Vec<&str> = line.split_ascii_whitespace().take(INODE + 1).collect();
        let column = |at: usize| columns.get(at).copied();
        if column(LOCAL) == Some(&local)
            && column(REMOTE) == Some(&remote)
            && column(STATE) == Some(ESTABLISHED)
        {
            let uid = column(UID).and_then(|uid| uid.parse().ok());
            let inode = column(INODE).and_then(|inode| inode.parse().ok());
            return Ok(uid.zip(inode).map(|(uid, inode)| SocketEntry { uid, inode }));
        }
    }
    Ok(None)
}

/// As the kernel writes an address: four bytes as a number of this machine, and the port.
fn written(address: SocketAddrV4) -> String {
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}

#[cfg(test)]
mod tests {
    use super::{PeerOwner, SocketEntry, check, entry_in, is_connected, is_held_outside, owner};
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
    use std::time::Duration;

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => panic!("{address}"),
        }
    }

    #[test]
    fn the_owner_of_a_connection_is_found_and_nobody_else() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ours = v4(listener.local_addr().unwrap());
        let client = TcpStream::connect(ours).unwrap();
        let (server, theirs) = listener.accept().unwrap();
        let theirs = v4(theirs);
        let uid = rustix::process::geteuid().as_raw();
        let here = Some(PeerOwner { uid, is_outside: true });
        assert_eq!(owner(theirs, ours).unwrap(), here);
        let other = SocketAddrV4::new(*theirs.ip(), theirs.port() ^ 1);
        assert_ne!(owner(other, ours).unwrap(), here, "nobody is at that port");
        // Half of the connection is closed: the peer has no established socket any more.
        drop(client);
        assert_eq!(owner(theirs, ours).unwrap(), None);
        drop(server);
    }

    #[test]
    fn a_connection_that_was_reset_is_none() {
        check().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, theirs) = listener.accept().unwrap();
        assert!(is_connected(&server, v4(theirs)));
        assert!(!is_connected(&server, SocketAddrV4::new(Ipv4Addr::LOCALHOST, theirs.port() ^ 1)));
        rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        assert!(!is_connected(&server, v4(theirs)));
    }

    #[test]
    fn a_socket_that_no_process_is_seen_to_have_is_not_outside() {
        // Inodes of sockets begin at 1.
        assert!(!is_held_outside(0).unwrap());
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn only_an_established_socket_with_both_addresses_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 31 1 0\n\
            1: 0100007F:9C40 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n\
            2: 0100007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 32 1 0\n";
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let of = |theirs| entry_in(table.as_bytes(), at(theirs), at(8080)).unwrap();
        assert_eq!(of(40000), None, "it waits for its end");
        assert_eq!(of(40001), Some(SocketEntry { uid: 1001, inode: 32 }));
        assert_eq!(of(40002), None);
    }
}
