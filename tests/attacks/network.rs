//! The host's network from inside: its loopback, and sockets that have no place in the file tree.
//! The listeners are the test's own, on loopback; what reached them is seen there, not inside.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use palisade_testkit::Attack;

use crate::host::{landlock_scopes_signals, standing};

/// Proves: NET-2 namespace
#[test]
fn n01_the_hosts_loopback_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    Attack::new("N01", "connect to a service on the host's loopback")
        .proves(&["NET-2 namespace"])
        .held_by(&["net-namespace"])
        .command(move |world| vec![world.probe(), "connect".into(), port.clone()])
        .succeeded(move |_, _| listener.accept().is_ok())
        .contained(|_, output| output.out().starts_with("refused 111 "))
        .check();
}

/// Proves: NET-2 abstract-sockets
#[test]
fn n01_abstract_sockets_of_the_host_are_out_of_reach() {
    let name = format!("palisade-attack-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    Attack::new("N01", "connect to an abstract socket of the host")
        .proves(&["NET-2 abstract-sockets"])
        // Landlock scopes abstract sockets and signals from the same version on.
        .held_by(standing(&[("net-namespace", true), ("landlock", landlock_scopes_signals())]))
        .command(move |world| vec![world.probe(), "connect-abstract".into(), name.clone()])
        .succeeded(move |_, _| listener.accept().is_ok())
        .check();
}
