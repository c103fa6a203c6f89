//! What a namespace with a link that leads out lets pass.

use super::block;
use crate::refusals::{Refusal, Refusals, refusals};
use crate::route::{address, default_route, index_of};
use crate::socket::Socket;
use crate::veth::{self, INSIDE_NAME, Pair};
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::net;
use palisade_sys::test_child::{become_namespace_root, in_child};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const RANGES: [(&str, u8); 6] = [
    ("127.0.0.0", 8),
    ("10.0.0.0", 8),
    ("198.18.0.0", 16),
    ("::1", 128),
    ("fc00::", 7),
    ("fe80::", 10),
];
const UDP: u8 = 17;
const TCP: u8 = 6;

fn block_ranges() -> Socket {
    let ranges = RANGES.map(|(address, prefix)| (address.parse().unwrap(), prefix));
    let socket = Socket::netfilter().unwrap();
    block(&socket, &ranges, &[IpAddr::from(RESOLVER)]).unwrap();
    socket
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&address.parse().unwrap(), TIMEOUT)
}

fn send(from: &str, to: &str) -> std::io::Result<usize> {
    UdpSocket::bind(from).unwrap().send_to(b"x", to)
}

fn refusal(address: &str, port: u16, protocol: u8) -> Refusal {
    Refusal { address: address.parse().unwrap(), port, protocol, packets: 1 }
}

/// A sandbox's namespace with a link to the host's, both protocols on it. We are in the sandbox's.
struct Linked {
    inside: OwnedFd,
    host: OwnedFd,
    pair: Pair,
    socket: Socket,
}

fn new_namespace() -> OwnedFd {
    unshare(CloneFlags::NEWNET).unwrap();
    net::loopback_up().unwrap();
    net::namespace_of(Socket::route().unwrap()).unwrap()
}

fn linked() -> Linked {
    become_namespace_root(CloneFlags::NEWNET);
    let [inside, host] = [new_namespace(), new_namespace()];
    let pair = Pair {
        outside_name: "palisade5".to_owned(),
        outside: Ipv4Addr::new(198, 19, 0, 1),
        inside: Ipv4Addr::new(198, 19, 0, 2),
    };
    veth::connect_outside(&pair, inside.as_fd()).unwrap();
    net::enter(&inside).unwrap();
    let socket = block_ranges();
    veth::connect_inside(&pair).unwrap();
    let route = Socket::route().unwrap();
    let link = index_of(&route, INSIDE_NAME).unwrap();
    let newer = |last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
    route.request(vec![address(link, newer(2), 64), default_route(newer(1), link)]).unwrap();
    net::enter(&host).unwrap();
    veth::wait_outside(&pair).unwrap();
    net::enter(&inside).unwrap();
    Linked { inside, host, pair, socket }
}

/// With its loopback down the namespace's own addresses are on the other side of the link: the same way that a socket
/// takes which is bound to the link.
fn take_loopback_down() {
    for words in ["link set lo down", "-4 route flush table local dev lo"] {
        let done = Command::new("ip").args(words.split(' ')).status().unwrap();
        assert!(done.success(), "ip {words}: {done}");
    }
}

/// Proves: NET-9 private
#[test]
fn ranges_are_refused_by_a_link_but_for_the_resolver() {
    in_child(|| {
        let linked = linked();
        let refused = ErrorKind::ConnectionRefused;
        assert_eq!(connect("10.1.2.3:80").unwrap_err().kind(), refused);
        assert_eq!(connect("198.18.0.1:80").unwrap_err().kind(), refused);
        assert_eq!(connect("[fd00::1]:443").unwrap_err().kind(), refused);
        assert_eq!(
            send("0.0.0.0:0", "10.1.2.3:9").unwrap_err().kind(),
            ErrorKind::PermissionDenied
        );
        send("0.0.0.0:0", "198.18.0.1:53").unwrap();
        send("0.0.0.0:0", "203.0.113.1:53").unwrap();
        let Refusals { destinations, packets } = refusals(&linked.socket).unwrap();
        let counted: u64 = destinations.iter().map(|refusal| refusal.packets).sum();
        assert_eq!(packets, counted, "nothing that the kernel sends by itself");
        // A refusal that comes to nothing, as the link is new, has TCP try again: how often is not ours to say.
        let once = destinations.into_iter().map(|refusal| Refusal { packets: 1, ..refusal });
        assert_eq!(
            once.collect::<Vec<_>>(),
            [
                refusal("10.1.2.3", 9, UDP),
                refusal("10.1.2.3", 80, TCP),
                refusal("198.18.0.1", 80, TCP),
                refusal("fd00::1", 443, TCP),
            ]
        );
    });
}

/// Proves: NET-9 private, NET-9 host-loopback
#[test]
fn loopback_is_the_namespaces_own_and_by_a_link_nobodys() {
    in_child(|| {
        let linked = linked();
        let older = UdpSocket::bind("127.0.0.1:9").unwrap();
        older.send_to(b"x", "127.0.0.1:9").unwrap();
        let [one, other] = ["[::1]:9", "[::1]:10"].map(|own| UdpSocket::bind(own).unwrap());
        one.set_read_timeout(Some(TIMEOUT)).unwrap();
        // Both ways: a connection that the kernel knows.
        other.send_to(b"x", "[::1]:9").unwrap();
        one.recv_from(&mut [0]).unwrap();
        one.send_to(b"x", "[::1]:10").unwrap();
        assert_eq!(refusals(&linked.socket).unwrap().packets, 0);
        take_loopback_down();
        let kind = |sent: std::io::Result<usize>| sent.unwrap_err().kind();
        let refused = ErrorKind::PermissionDenied;
        assert_eq!(kind(send("0.0.0.0:0", "127.0.0.1:9")), refused);
        assert_eq!(kind(send("0.0.0.0:0", "127.1.2.3:53")), refused);
        assert_eq!(kind(send("[::]:0", "[::1]:9")), refused);
        assert_eq!(kind(other.send_to(b"x", "[::1]:9")), refused);
        let destinations = refusals(&linked.socket).unwrap().destinations;
        // Without a loopback the kernel's own words about it go the same way.
        let datagrams = destinations.iter().filter(|refusal| refusal.protocol == UDP);
        assert_eq!(datagrams.map(|refusal| refusal.packets).sum::<u64>(), 4, "{destinations:?}");
    });
}

/// Proves: NET-9 published
#[test]
fn nobody_comes_in_by_a_link() {
    in_child(|| {
        let Linked { inside, host, pair, .. } = linked();
        let own = TcpListener::bind("0.0.0.0:80").unwrap();
        let datagrams = UdpSocket::bind("0.0.0.0:80").unwrap();
        connect("127.0.0.1:80").unwrap();
        own.accept().unwrap();
        net::enter(&host).unwrap();
        let server = TcpListener::bind((pair.outside, 80)).unwrap();
        let short = Duration::from_millis(300);
        let in_vain = TcpStream::connect_timeout(&SocketAddr::from((pair.inside, 80)), short);
        assert_eq!(in_vain.unwrap_err().kind(), ErrorKind::TimedOut);
        send("0.0.0.0:0", "198.19.0.2:80").unwrap();
        net::enter(&inside).unwrap();
        // And answers do: this one comes behind the datagram.
        connect("198.19.0.1:80").unwrap();
        server.accept().unwrap();
        datagrams.set_nonblocking(true).unwrap();
        assert_eq!(datagrams.recv_from(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}
