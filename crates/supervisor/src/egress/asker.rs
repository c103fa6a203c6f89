//! Finds the program that owns a connection, from the host's `/proc`. The result is only displayed; no decision
//! may depend on it.
//!
//! The search is bounded, because the command controls how many processes and descriptors there are. A program
//! that is not found is left out of the question.

use crate::process::describe;
use palisade_ask::Process;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Limit for the processes, threads and descriptors that are examined.
const MAX_LOOKS: usize = 4096;
/// Limit for a socket table; enough for thousands of lines.
const MAX_TABLE_BYTES: u64 = 1 << 20;

/// The process that holds the socket with this address. `roots` are the sandbox's pid 1, as the host numbers
/// it, then the spawner.
pub(super) fn asker(roots: &[u32], client: SocketAddr) -> Option<Process> {
    let link = format!("socket:[{}]", inode_of(*roots.first()?, client)?).into();
    let mut search = Search { looks: MAX_LOOKS, next: roots.iter().copied().collect() };
    let holder = search.find(&link)?;
    let name = |what| fs::read_link(format!("/proc/{holder}/{what}")).unwrap_or_default();
    let (executable, cwd) = (name("exe"), name("cwd"));
    Some(describe(holder, roots, executable.as_os_str().as_bytes(), cwd.as_os_str().as_bytes()))
}

/// See proc_pid_net(5). A socket that no process holds any more has inode 0.
fn inode_of(top: u32, client: SocketAddr) -> Option<u64> {
    spellings(client).into_iter().find_map(|(table, local)| {
        let table = File::open(format!("/proc/{top}/net/{table}")).ok()?;
        let lines = BufReader::new(table.take(MAX_TABLE_BYTES)).lines().map_while(Result::ok);
        let inode = lines.filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            (fields.next()? == local).then(|| fields.nth(7)?.parse().ok())?
        });
        inode.into_iter().find(|inode| *inode != 0)
    })
}

/// The address as the tables write it: each 32-bit word in native byte order. An IPv4 address may belong to an
/// IPv6 socket.
fn spellings(client: SocketAddr) -> Vec<(&'static str, String)> {
    let word = |octets: &[u8]| {
        let octets = octets.try_into().unwrap_or_default();
        format!("{:08X}", u32::from_ne_bytes(octets))
    };
    let port = client.port();
    let long = |address: Ipv6Addr| {
        let words: String = address.octets().chunks(4).map(word).collect();
        ("tcp6", format!("{words}:{port:04X}"))
    };
    match client.ip() {
        IpAddr::V4(address) => vec![
            ("tcp", format!("{}:{port:04X}", word(&address.octets()))),
            long(address.to_ipv6_mapped()),
        ],
        IpAddr::V6(address) => vec![long(address)],
    }
}

/// Searches breadth-first from the roots through their descendants.
struct Search {
    looks: usize,
    next: VecDeque<u32>,
}

impl Search {
    fn find(&mut self, link: &PathBuf) -> Option<u32> {
        while let Some(pid) = self.next.pop_front() {
            if self.holds(pid, link) {
                return Some(pid);
            }
            self.add_children(pid);
            if self.looks == 0 {
                return None;
            }
        }
        None
    }

    fn holds(&mut self, pid: u32, link: &PathBuf) -> bool {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        descriptors
            .flatten()
            .take_while(|_| self.look())
            .any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|found| found == *link))
    }

    /// Each thread has its own list of children.
    fn add_children(&mut self, pid: u32) {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
        for thread in threads.flatten() {
            if !self.look() {
                return;
            }
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            self.next.extend(children.split_ascii_whitespace().flat_map(str::parse::<u32>));
        }
    }

    fn look(&mut self) -> bool {
        let may = self.looks > 0;
        self.looks = self.looks.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::{asker, inode_of};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    /// In another process than the listener, as it is with a sandbox.
    const CONNECT: &str = "import socket, sys\n\
        kept = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
        print(flush=True)\nsys.stdin.read()";

    /// Proves: NET-8 asked
    #[test]
    fn a_connection_is_its_holders() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let mut child = Command::new("sh")
            .args(["-c", "python3 -c \"$0\" \"$1\"; true", CONNECT, &port])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (_kept, client) = listener.accept().unwrap();
        let found = asker(&[child.id()], client).unwrap();
        assert_ne!(found.pid, child.id());
        assert!(found.executable.contains("python"), "{found:?}");
        assert!(found.arguments.last() == Some(&port), "{found:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(asker(&[std::process::id()], client), None);
    }

    #[test]
    fn every_kind_of_address_is_in_its_table() {
        let me = std::process::id();
        for (here, there) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "::ffff:127.0.0.1")]
        {
            let listener = TcpListener::bind(here).unwrap();
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect((there, port)).unwrap();
            let address: SocketAddr = client.local_addr().unwrap();
            let plain = SocketAddr::new(address.ip().to_canonical(), address.port());
            assert!(inode_of(me, plain).is_some_and(|inode| inode > 0), "{here} {address}");
            drop((listener, client));
        }
        assert_eq!(inode_of(me, "127.0.0.1:1".parse().unwrap()), None);
    }
}
