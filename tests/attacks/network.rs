//! The host's network from inside: its loopback, and sockets that have no place in the file tree.
//! The listeners are the test's own, on loopback; what reached them is seen there, not inside.

use std::cell::Cell;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::rc::Rc;

use palisade_testkit::layers::LANDLOCK_SCOPES;
use palisade_testkit::{Attack, World};

use crate::host::{probe, strings};
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

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

/// The kernel lists sockets by network namespace (`NETLINK_SOCK_DIAG`).
///
/// Proves: NET-2 namespace
#[test]
fn n01_the_hosts_sockets_are_not_listed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    Attack::new("N01", "list the host's listening sockets with ss")
        .proves(&["NET-2 namespace"])
        .held_by(&["net-namespace"])
        .command(move |_| strings(&["ss", "-Htln", &format!("sport = :{port}")]))
        .succeeded(move |_, output| output.out().contains(&format!("127.0.0.1:{port}")))
        .contained(|_, output| output.code() == 0 && output.out().is_empty())
        .check();
    drop(listener);
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
        .held_by(&["net-namespace", LANDLOCK_SCOPES])
        .command(move |world| vec![world.probe(), "connect-abstract".into(), name.clone()])
        .succeeded(move |_, _| listener.accept().is_ok())
        .check();
}

/// Proves: NET-2 namespace
#[test]
fn n01_the_hosts_loopback_is_out_of_reach_by_the_newer_protocol() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        println!("not tried: this host has no IPv6 loopback");
        return;
    };
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    Attack::new("N01", "connect to a service on the host's IPv6 loopback")
        .proves(&["NET-2 namespace"])
        .held_by(&["net-namespace"])
        .command(move |world| probe(world, &["connect-v6", &port]))
        .succeeded(move |_, _| listener.accept().is_ok())
        .check();
}

/// Proves: FS-2 sockets
#[test]
fn n01_an_agent_that_a_variable_names_is_out_of_reach() {
    let socket = |world: &World| world.outside().join("agent.sock").display().to_string();
    Attack::new("N01", "connect to the agent that SSH_AUTH_SOCK names")
        .proves(&["FS-2 sockets"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(move |world| {
            let listener = UnixListener::bind(socket(world)).unwrap();
            // It has to listen until the run is over, and goes with the test's process.
            std::mem::forget(listener);
        })
        .surroundings(move |world| strings(&["env", &format!("SSH_AUTH_SOCK={}", socket(world))]))
        .command(move |world| probe(world, &["connect-socket", &socket(world)]))
        .succeeded(|_, output| output.code() == 0)
        .check();
}

/// Proves: NET-2 namespace
#[test]
fn n12_no_datagram_reaches_the_host() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    Attack::new("N12", "send a datagram to the host, past every proxy")
        .proves(&["NET-2 namespace"])
        .held_by(&["net-namespace"])
        .command(move |world| probe(world, &["send-datagram", &port]))
        .succeeded(move |_, _| listener.recv(&mut [0; 64]).is_ok())
        .check();
}

/// Proves: SYS-1 socket-families
#[test]
fn n12_no_raw_socket() {
    Attack::new("N12", "open a raw socket, to send packets of one's own making")
        .proves(&["SYS-1 socket-families"])
        .held_by(&["seccomp", "capabilities"])
        .command(|world| probe(world, &["raw-socket"]))
        // An ordinary user may in a network namespace of his own.
        .bare_command(|world| {
            let unshare = strings(&["unshare", "--user", "--net", "--map-root-user"]);
            [unshare, probe(world, &["raw-socket"])].concat()
        })
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// The host connects while the run goes on; whether it got somewhere is the harm.
fn taken_for_a_service(
    name: &'static str,
    command: impl Fn(&World) -> Vec<String> + 'static,
    connects: impl Fn() -> bool + 'static,
) -> Attack {
    let connected = Rc::new(Cell::new(false));
    let seen = Rc::clone(&connected);
    Attack::new("N15", name)
        .proves(&["NET-2 namespace"])
        .held_by(&["net-namespace"])
        .prepare({
            let connected = Rc::clone(&connected);
            move |_| connected.set(false)
        })
        .command(command)
        .meanwhile(move |_| connected.set(connects()))
        .succeeded(move |_, _| seen.get())
}

/// Proves: NET-2 namespace, NET-2 same-port
#[test]
fn n15_nothing_inside_is_taken_for_a_service_of_the_host() {
    // Free a moment ago, and nobody else's business.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    taken_for_a_service(
        "listen on a port where the host's programs expect one of their own",
        move |world| probe(world, &["pose-as-service", &port.to_string()]),
        move || TcpStream::connect(("127.0.0.1", port)).is_ok(),
    )
    .check();
}

/// Proves: NET-2 abstract-sockets
#[test]
fn n15_nothing_inside_squats_on_an_abstract_name() {
    let name = format!("palisade-squatted-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    taken_for_a_service(
        "bind an abstract name where the host's programs expect one of their own",
        move |world| probe(world, &["pose-as-abstract", &name]),
        move || UnixStream::connect_addr(&address).is_ok(),
    )
    .check();
}

/// Proves: PROC-1 dies-together
#[test]
fn n02_a_socket_left_in_the_project_is_dead() {
    Attack::new("N02", "leave a socket in the project that answers when the host connects later")
        .proves(&["PROC-1 dies-together"])
        .held_by(&["pid-namespace"])
        .command(|world| probe(world, &["leave-socket", "left.sock"]))
        .succeeded(|world, _| {
            let answered = UnixStream::connect(world.project().join("left.sock")).is_ok();
            world.write_in_project("stop", "");
            answered
        })
        .contained(|_, output| output.out().starts_with("done"))
        .check();
}
