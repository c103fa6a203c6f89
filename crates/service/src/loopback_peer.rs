//! Whose process is at the other end of a TCP connection over loopback. A UNIX socket says it (`SO_PEERCRED`); for TCP it is in the kernel's
//! table of sockets (proc_pid_net(5)).
//!
//! Must never guess: a connection that is not in the table belongs to nobody.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddrV4;

const TABLE: &str = "/proc/self/net/tcp";
/// The table may change while it is read, and a line be missed.
const ATTEMPTS: usize = 3;
/// Of `st`. Sockets in other states may have another owner in the table: one that waits for its end (TIME_WAIT) shows 0.
const ESTABLISHED: &str = "01";
// Columns, from the first one.
const LOCAL: usize = 1;
const REMOTE: usize = 2;
const STATE: usize = 3;
const UID: usize = 7;

/// The user whose socket is `theirs`, connected to `ours`. While our end is open, no other socket can have these two addresses. Reads a file:
/// for a thread that may block.
pub(crate) fn owner(theirs: SocketAddrV4, ours: SocketAddrV4) -> io::Result<Option<u32>> {
    for _ in 0..ATTEMPTS {
        let found = owner_in(BufReader::new(File::open(TABLE)?), theirs, ours)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn owner_in(
    table: impl BufRead,
    theirs: SocketAddrV4,
    ours: SocketAddrV4,
) -> io::Result<Option<u32>> {
    let (local, remote) = (written(theirs), written(ours));
    for line in table.lines() {
        let line = line?;
        let columns: Vec<&str> = line.split_ascii_whitespace().take(UID + 1).collect();
        let column = |at: usize| columns.get(at).copied();
        if column(LOCAL) == Some(&local)
            && column(REMOTE) == Some(&remote)
            && column(STATE) == Some(ESTABLISHED)
        {
            return Ok(column(UID).and_then(|uid| uid.parse().ok()));
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
    use super::{owner, owner_in};
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};

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
        assert_eq!(owner(theirs, ours).unwrap(), Some(uid));
        let other = SocketAddrV4::new(*theirs.ip(), theirs.port() ^ 1);
        assert_ne!(owner(other, ours).unwrap(), Some(uid), "nobody is at that port");
        // Half of the connection is closed: whoever it was has no socket that is established.
        drop(client);
        assert_eq!(owner(theirs, ours).unwrap(), None);
        drop(server);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn only_an_established_socket_with_both_addresses_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 31 1 0\n\
            1: 0100007F:9C40 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n\
            2: 0100007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 32 1 0\n";
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let of = |theirs| owner_in(table.as_bytes(), at(theirs), at(8080)).unwrap();
        assert_eq!(of(40000), None, "it waits for its end");
        assert_eq!(of(40001), Some(1001));
        assert_eq!(of(40002), None);
    }
}
