use super::*;
use crate::refusals::{Refusal, refusals};
use crate::route::loopback_for_everything;
use palisade_sys::clone::CloneFlags;
use palisade_sys::test_child::{become_namespace_root, in_child};
use rustix::net::sockopt::{ip_original_dst, ipv6_original_dst};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const V6: Ipv6Addr = Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 1);
const TIMEOUT: Duration = Duration::from_secs(5);

fn original_destination(client: &TcpStream) -> rustix::io::Result<SocketAddr> {
    match client.local_addr().unwrap() {
        SocketAddr::V4(_) => ip_original_dst(client).map(SocketAddr::V4),
        SocketAddr::V6(_) => ipv6_original_dst(client).map(SocketAddr::V6),
    }
}

/// A fenced namespace and its listeners.
struct Fenced {
    socket: Socket,
    tcp: [TcpListener; 2],
    udp: [UdpSocket; 2],
}

fn fenced() -> Fenced {
    become_namespace_root(CloneFlags::NEWNET);
    let families = loopback_for_everything(V4, V6).unwrap();
    assert_eq!(families, Families::Both);
    let socket = Socket::netfilter().unwrap();
    fence(&socket, &Fence { v4: V4, v6: V6, families, tcp_port: 1, dns_port: 2 }).unwrap();
    let both = [IpAddr::from(V4), IpAddr::from(V6)];
    let tcp = both.map(|address| TcpListener::bind((address, 1)).unwrap());
    let udp = both.map(|address| UdpSocket::bind((address, 2)).unwrap());
    Fenced { socket, tcp, udp }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&address.parse().unwrap(), TIMEOUT)
}

/// Proves: NET-5 every-port
#[test]
fn every_connection_arrives_at_the_listener_with_its_destination() {
    in_child(|| {
        let Fenced { tcp: [v4, v6], .. } = fenced();
        let cases = [
            (&v4, "203.0.113.7:443"),
            (&v4, "203.0.113.7:1"),
            (&v4, "10.0.0.1:22"),
            (&v4, "169.254.169.254:80"),
            (&v4, "198.18.0.1:3128"),
            (&v4, "198.18.0.1:1"),
            (&v4, "8.8.8.8:53"),
            (&v4, "255.1.2.3:65535"),
            (&v6, "[2001:db8::5]:443"),
            (&v6, "[fe80::1]:8080"),
            (&v6, "[fd53:616e:6442::1]:3128"),
        ];
        for (listener, wanted) in cases {
            let mut client = match connect(wanted) {
                // A scope is needed for it, and then it stays on the link.
                Err(_) if wanted.starts_with("[fe80") => continue,
                connected => connected.unwrap(),
            };
            let (mut server, _) = listener.accept().unwrap();
            assert_eq!(original_destination(&server).unwrap(), wanted.parse().unwrap());
            client.write_all(b"x").unwrap();
            server.read_exact(&mut [0]).unwrap();
            server.write_all(b"y").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
    });
}

/// Many connections from one port of ours: each one's destination is told right.
///
/// Proves: NET-5 every-port
#[test]
fn connections_that_share_a_port_are_told_apart() {
    in_child(|| {
        let Fenced { tcp: [_, v6], .. } = fenced();
        let port = 40_000;
        for last in 1..=20_u16 {
            let wanted = SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last), 443));
            let client = connect_from(port, wanted);
            let (server, _) = v6.accept().unwrap();
            assert_eq!(original_destination(&server).unwrap(), wanted);
            std::mem::forget((client, server));
        }
    });
}

/// A connection from this very port.
fn connect_from(port: u16, to: SocketAddr) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
    let made = socket(AddressFamily::INET6, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&made, true).unwrap();
    bind(&made, &SocketAddr::from((V6, port))).unwrap();
    connect(&made, &to).unwrap();
    made
}

/// Proves: NET-2 loopback, NET-5 every-port
#[test]
fn loopback_and_every_port_stay_the_commands_own() {
    in_child(|| {
        let _fenced = fenced();
        for port in [443, 3128, 53, 8080] {
            let own = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
            let _client = connect(&format!("127.0.0.1:{port}")).unwrap();
            let (server, _) = own.accept().unwrap();
            assert_eq!(server.local_addr().unwrap().port(), port);
            let own = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).unwrap();
            let _client = connect(&format!("[::1]:{port}")).unwrap();
            own.accept().unwrap();
        }
        let one = UdpSocket::bind("127.0.0.1:5353").unwrap();
        let other = UdpSocket::bind("127.0.0.2:0").unwrap();
        other.send_to(b"x", "127.0.0.1:5353").unwrap();
        one.set_read_timeout(Some(TIMEOUT)).unwrap();
        one.recv_from(&mut [0]).unwrap();
        assert_eq!(connect("127.0.0.1:9").unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

/// Proves: NET-6 any-server
#[test]
fn questions_about_names_arrive_whoever_is_asked() {
    in_child(|| {
        let Fenced { udp: [v4, v6], .. } = fenced();
        for (listener, from, asked) in [
            (&v4, "0.0.0.0:0", "9.9.9.9:53"),
            (&v4, "0.0.0.0:0", "198.18.0.1:53"),
            (&v6, "[::]:0", "[2001:db8::53]:53"),
        ] {
            let client = UdpSocket::bind(from).unwrap();
            client.connect(asked).unwrap();
            client.set_read_timeout(Some(TIMEOUT)).unwrap();
            client.send(b"question").unwrap();
            let mut buffer = [0; 16];
            let (length, peer) = listener.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"question");
            listener.send_to(b"answer", peer).unwrap();
            // A connected socket takes it only from whom it asked.
            assert_eq!(client.recv(&mut buffer).unwrap(), 6);
        }
    });
}

/// Proves: NET-5 datagrams
#[test]
fn other_datagrams_are_refused_at_once_and_counted() {
    in_child(|| {
        let Fenced { socket, .. } = fenced();
        assert_eq!(refusals(&socket).unwrap(), crate::Refusals::default());
        let send = |from: &str, to: &str| {
            UdpSocket::bind(from).unwrap().send_to(b"x", to).unwrap_err().kind()
        };
        for _ in 0..3 {
            assert_eq!(send("0.0.0.0:0", "203.0.113.7:443"), ErrorKind::PermissionDenied);
        }
        assert_eq!(send("0.0.0.0:0", "198.18.0.1:2"), ErrorKind::PermissionDenied);
        assert_eq!(send("[::]:0", "[2001:db8::7]:123"), ErrorKind::PermissionDenied);
        let refusal = |address: &str, port, packets| Refusal {
            address: address.parse().unwrap(),
            port,
            protocol: UDP,
            packets,
        };
        let read = refusals(&socket).unwrap();
        assert_eq!(
            read.destinations,
            [
                refusal("198.18.0.1", 2, 1),
                refusal("203.0.113.7", 443, 3),
                refusal("2001:db8::7", 123, 1)
            ]
        );
        assert_eq!(read.packets, 5);
    });
}

/// Whoever floods cannot make the list longer than it is meant to be, and everything is counted.
///
/// Proves: NET-5 datagrams
#[test]
fn the_list_of_destinations_is_bounded() {
    in_child(|| {
        let Fenced { socket, .. } = fenced();
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        for number in 0..5000_u16 {
            let [high, low] = number.to_be_bytes();
            client.send_to(b"x", (Ipv4Addr::new(203, 0, high, low), 9)).unwrap_err();
        }
        let read = refusals(&socket).unwrap();
        assert_eq!(read.packets, 5000);
        assert_eq!(read.destinations.len(), usize::try_from(MAX_DESTINATIONS).unwrap());
    });
}

/// Proves: NET-5 fence-stays
#[test]
fn without_capabilities_nothing_of_it_can_be_changed_or_read() {
    in_child(|| {
        let Fenced { socket, .. } = fenced();
        palisade_sys::creds::drop_all_capabilities().unwrap();
        assert_eq!(refusals(&socket).unwrap_err().errno, Errno::PERM);
        let own = Socket::netfilter().unwrap();
        let again = block(&own, &[], &[]).unwrap_err();
        assert_eq!(again.errno, Errno::PERM);
        assert_eq!(loopback_for_everything(V4, V6).unwrap_err().errno, Errno::PERM);
    });
}

/// Proves: NET-5 every-port
#[test]
fn a_kernel_without_ipv6_goes_without() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        for link in ["all", "default", "lo"] {
            let switch = format!("/proc/sys/net/ipv6/conf/{link}/disable_ipv6");
            std::fs::write(switch, "1").unwrap();
        }
        let families = loopback_for_everything(V4, V6).unwrap();
        assert_eq!(families, Families::V4);
        let socket = Socket::netfilter().unwrap();
        let wanted = Fence { v4: V4, v6: V6, families, tcp_port: 1, dns_port: 2 };
        fence(&socket, &wanted).unwrap();
        let listener = TcpListener::bind((V4, 1)).unwrap();
        let _client = connect("203.0.113.7:443").unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(original_destination(&server).unwrap(), "203.0.113.7:443".parse().unwrap());
        connect("[2001:db8::1]:443").unwrap_err();
    });
}

/// The table that a kernel without one for both families gets.
///
/// Proves: NET-5 every-port
#[test]
fn a_table_for_ipv4_alone_works_and_is_read() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        loopback_for_everything(V4, V6).unwrap();
        let socket = Socket::netfilter().unwrap();
        let wanted = Fence { v4: V4, v6: V6, families: Families::V4, tcp_port: 1, dns_port: 2 };
        install(&socket, fence_table(Family::Ip, &wanted)).unwrap();
        let listener = TcpListener::bind((V4, 1)).unwrap();
        let _client = connect("203.0.113.7:443").unwrap();
        listener.accept().unwrap();
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.send_to(b"x", "203.0.113.7:9").unwrap_err();
        assert_eq!(refusals(&socket).unwrap().packets, 1);
    });
}
