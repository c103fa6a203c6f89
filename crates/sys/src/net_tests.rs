use super::*;
use crate::clone::CloneFlags;
use crate::test_child::{become_namespace_root, in_child};

#[test]
fn loopback_of_a_new_namespace_works_once_it_is_up() {
    let (_outside, outside_port) = tcp_listener_loopback().unwrap();
    tcp_connect_loopback(outside_port).unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        assert_eq!(tcp_connect_loopback(outside_port), Err(Errno::NETUNREACH));
        loopback_up().unwrap();
        assert_eq!(tcp_connect_loopback(outside_port), Err(Errno::CONNREFUSED));
        let (_inside, port) = tcp_listener_loopback().unwrap();
        tcp_connect_loopback(port).unwrap();
    });
}

#[test]
fn without_privilege_the_interface_stays_as_it_is() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        crate::creds::drop_all_capabilities().unwrap();
        assert_eq!(loopback_up().unwrap_err().errno, Errno::PERM);
    });
}

#[test]
fn a_socket_leads_back_to_its_namespaces() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        loopback_up().unwrap();
        let (listener, _) = tcp_listener_loopback().unwrap();
        let network = namespace_of(&listener).unwrap();
        let inode = |file: &OwnedFd| rustix::fs::fstat(file).unwrap().st_ino;
        let own = |name: &str| {
            OwnedFd::from(std::fs::File::open(format!("/proc/self/ns/{name}")).unwrap())
        };
        assert_eq!(inode(&network), inode(&own("net")));
        assert_eq!(inode(&owner_of(&network).unwrap()), inode(&own("user")));
        enter(&network).unwrap();
    });
}
