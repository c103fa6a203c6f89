use super::*;
use crate::maker;
use palisade_hosts::{HostEntry, Rules};
use palisade_netlink::refusals;
use palisade_plan::model::{Checks, OnUnknown};
use palisade_sys::clone::{CloneFlags, Forked, fork};
use palisade_sys::fdpass::{recv_with_fds, send_with_fds, socketpair};
use palisade_sys::proc;
use palisade_sys::test_child::{become_namespace_root, in_child, park};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

fn proxy(packet_rules: bool) -> ProxyPlan {
    let allowed =
        vec!["x.example".parse::<HostEntry>().unwrap(), "y.example:8443".parse().unwrap()];
    ProxyPlan {
        rules: Rules::new(allowed, Vec::new(), vec![80, 443], Vec::new()),
        on_unknown: OnUnknown::Deny,
        ask_timeout_ms: 1000,
        connections: 8,
        bytes: None,
        queries_a_second: 8,
        follow_redirects: false,
        upstream: None,
        credentials: Vec::new(),
        intercept: false,
        checks: Checks {
            rules: true,
            addresses: true,
            agreement: true,
            strict_http: true,
            bounded: true,
        },
        packet_rules,
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(5))
}

fn in_own_network(body: impl FnOnce()) {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        body();
    });
}

/// Who is there at the other end of a connection to `address`.
fn accepted(listeners: &[OwnedFd], address: &str) -> Option<SocketAddr> {
    let _client = connect(address).ok()?;
    let wanted = |listener: &&OwnedFd| {
        let listener = TcpListener::from(listener.try_clone().unwrap());
        listener.accept().is_ok()
    };
    let listener = listeners.iter().find(wanted)?;
    let local = TcpListener::from(listener.try_clone().unwrap()).local_addr();
    Some(local.unwrap())
}

/// Proves: NET-5 every-port
#[test]
fn with_packet_rules_one_listener_takes_every_port() {
    in_own_network(|| {
        let made = listen(&proxy(true)).unwrap();
        assert_eq!(made.front, Front::Transparent);
        assert_eq!(made.handed(), Handed { front: Front::Transparent, tcp: 2, udp: 2 });
        for address in ["203.0.113.1:22", "203.0.113.1:443", "198.18.0.1:3128", "8.8.8.8:53"] {
            let there = accepted(&made.tcp, address).unwrap();
            assert_eq!(there, (INSIDE_V4, TCP_PORT).into());
        }
        let there = accepted(&made.tcp, "[2001:db8::1]:22").unwrap();
        assert_eq!(there, (INSIDE_V6, TCP_PORT).into());
        assert!(made.counters.is_some());
    });
}

/// Proves: NET-5 by-port
#[test]
fn without_packet_rules_allowed_ports_are_taken_at_every_address() {
    in_own_network(|| {
        let made = listen(&proxy(false)).unwrap();
        assert_eq!(made.front, Front::ByPort);
        assert!(made.counters.is_none());
        for address in [
            "203.0.113.1:443",
            "203.0.113.1:80",
            "10.0.0.1:8443",
            "[2001:db8::1]:443",
            "198.18.0.1:3128",
            "198.18.0.1:53",
        ] {
            let there = accepted(&made.tcp, address).unwrap();
            assert_eq!(there.port(), address.parse::<SocketAddr>().unwrap().port());
        }
        for address in ["203.0.113.1:22", "203.0.113.1:3128", "[2001:db8::1]:25"] {
            assert_eq!(connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        }
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.send_to(b"?", "198.18.0.1:53").unwrap();
        let resolver = UdpSocket::from(made.udp[0].try_clone().unwrap());
        resolver.set_nonblocking(false).unwrap();
        assert_eq!(resolver.recv(&mut [0; 4]).unwrap(), 1);
        client.connect("203.0.113.1:443").unwrap();
        client.send(b"x").unwrap();
        assert_eq!(client.recv(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

/// The networks of processes that have packets refused, or wait for connections, handed out to a process outside.
pub(crate) fn with_network_of(
    inside: impl FnOnce(&InsideNetwork),
    outside: impl FnOnce(InsideNetwork),
) {
    in_child(|| {
        let (ours, theirs) = socketpair().unwrap();
        match fork().unwrap() {
            Forked::Child => {
                become_namespace_root(CloneFlags::NEWNET);
                let made = listen(&proxy(true)).unwrap();
                inside(&made);
                send_with_fds(&theirs, b"!", &made.descriptors()).unwrap();
                park()
            }
            Forked::Parent { pidfd, pid } => {
                drop(theirs);
                let (_, descriptors) = recv_with_fds(&ours, &mut [0]).unwrap();
                let handed = Handed { front: Front::Transparent, tcp: 2, udp: 2 };
                let made = InsideNetwork::from_descriptors(handed, descriptors, Vec::new());
                outside(made.unwrap());
                proc::pidfd_send_signal(&pidfd, proc::sig::SIGKILL).unwrap();
                proc::wait_pid_rusage(pid).unwrap();
            }
        }
    });
}

/// Proves: NET-5 datagrams
#[test]
fn who_made_the_sandbox_reads_the_counts_from_outside() {
    with_network_of(
        |_| {
            let client = UdpSocket::bind("0.0.0.0:0").unwrap();
            client.send_to(b"x", "203.0.113.7:123").unwrap_err();
        },
        |made| {
            let read = refusals(&Socket::from(made.counters.unwrap())).unwrap();
            assert_eq!(read.packets, 1);
            assert_eq!(read.destinations[0].port, 123);
        },
    );
}

/// Proves: NET-9 published
#[test]
fn a_socket_made_by_the_maker_leads_inside() {
    with_network_of(
        |_| {
            let own = TcpListener::bind("127.0.0.1:8000").unwrap();
            match fork().unwrap() {
                Forked::Child => {
                    proc::setsid().unwrap();
                    palisade_sys::creds::set_pdeathsig(proc::sig::SIGKILL).unwrap();
                    own.accept().unwrap().0.write_all(b"inside").unwrap();
                    park()
                }
                Forked::Parent { .. } => {}
            }
        },
        |made| {
            let (maker, line) =
                maker::start(&crate::helper::Helpers::default(), &made, None).unwrap();
            send_with_fds(&line, b"4", &[]).unwrap();
            let (_, mut sockets) = recv_with_fds(&line, &mut [0]).unwrap();
            let socket = sockets.pop().unwrap();
            let to: SocketAddr = "127.0.0.1:8000".parse().unwrap();
            rustix::net::connect(&socket, &to).unwrap();
            let mut said = [0; 6];
            TcpStream::from(socket).read_exact(&mut said).unwrap();
            assert_eq!(&said, b"inside");
            // It is no door to anything else, and goes with its line.
            send_with_fds(&line, b"x", &[]).unwrap();
            assert_eq!(recv_with_fds(&line, &mut [0]).unwrap().0, 0);
            drop(maker);
        },
    );
}

#[test]
fn a_network_that_was_cut_on_its_way_is_refused() {
    let (one, other) = socketpair().unwrap();
    let handed = Handed { front: Front::Transparent, tcp: 1, udp: 0 };
    assert!(InsideNetwork::from_descriptors(handed, vec![one, other], Vec::new()).is_none());
}
