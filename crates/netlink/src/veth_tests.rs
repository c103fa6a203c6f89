use super::*;
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::net;
use palisade_sys::test_child::{become_namespace_root, in_child};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// Enters a new network namespace.
fn new_namespace() -> OwnedFd {
    unshare(CloneFlags::NEWNET).unwrap();
    net::loopback_up().unwrap();
    net::namespace_of(Socket::route().unwrap()).unwrap()
}

fn pair(name: &str, outside: [u8; 4], inside: [u8; 4]) -> Pair {
    Pair { outside_name: name.to_owned(), outside: outside.into(), inside: inside.into() }
}

/// Proves: NET-9 private
#[test]
fn addresses_of_links_are_found_and_loopback_is_not_among_them() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        let [inside, _host] = [new_namespace(), new_namespace()];
        assert_eq!(crate::link_addresses().unwrap(), [] as [IpAddr; 0]);
        let pair = pair("palisade9", [198, 19, 0, 9], [198, 19, 0, 10]);
        connect_outside(&pair, inside.as_fd()).unwrap();
        let found = crate::link_addresses().unwrap();
        assert!(found.contains(&pair.outside.into()), "{found:?}");
        assert!(!found.iter().any(IpAddr::is_loopback), "{found:?}");
    });
}

/// From inside, over the host, to a server in the world: it sees the host's address, and once the table is gone
/// with its socket, ours.
///
/// Proves: NET-9 veth
#[test]
fn what_leaves_has_the_hosts_address_for_as_long_as_the_socket_lives() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        let [world, inside, host] = [new_namespace(), new_namespace(), new_namespace()];
        let to_inside = pair("palisade7", [198, 19, 0, 1], [198, 19, 0, 2]);
        let to_world = pair("palisade8", [198, 19, 0, 5], [198, 19, 0, 6]);
        connect_outside(&to_inside, inside.as_fd()).unwrap();
        connect_outside(&to_world, world.as_fd()).unwrap();
        let again = connect_outside(&to_inside, inside.as_fd()).unwrap_err();
        assert_eq!(again.errno, palisade_sys::Errno::EXIST);
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let table = masquerade(&to_inside, "palisade7").unwrap();

        net::enter(&world).unwrap();
        connect_inside(&to_world).unwrap();
        let server = TcpListener::bind((to_world.inside, 80)).unwrap();
        net::enter(&inside).unwrap();
        connect_inside(&to_inside).unwrap();
        net::enter(&host).unwrap();
        wait_outside(&to_world).unwrap();
        wait_outside(&to_inside).unwrap();
        net::enter(&inside).unwrap();
        let address = server.local_addr().unwrap();
        let seen = || {
            let _client = TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
            server.accept().unwrap().1.ip()
        };
        assert_eq!(seen(), IpAddr::from(to_world.outside));
        drop(table);
        assert_eq!(seen(), IpAddr::from(to_inside.inside));
        net::enter(&host).unwrap();
        disconnect(&to_inside).unwrap();
        assert_eq!(disconnect(&to_inside).unwrap_err().errno, palisade_sys::Errno::NODEV);
    });
}
