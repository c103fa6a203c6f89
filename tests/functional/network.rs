//! The sandbox's own network: a loopback that works, and nothing beyond it.

use std::net::TcpListener;

use palisade_testkit::World;

const NO_FLAGS: [&str; 0] = [];
const PYTHON: &str = "/usr/bin/python3";

/// Proves: NET-2 loopback
#[test]
fn a_server_and_its_client_meet_on_the_loopback() {
    let world = World::new();
    let script = "import socket,threading\n\
        for family, host in ((socket.AF_INET,'127.0.0.1'),(socket.AF_INET6,'::1')):\n\
        \x20 server=socket.socket(family); server.bind((host,0)); server.listen()\n\
        \x20 threading.Thread(target=lambda: server.accept()[0].sendall(b'hello')).start()\n\
        \x20 print(socket.create_connection(server.getsockname()[:2]).recv(5).decode())\n";
    let output = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "hello\nhello\n");
}

/// Proves: NET-2 same-port
#[test]
fn the_port_of_a_server_outside_is_free_inside() {
    let world = World::new();
    let outside = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let script =
        format!("import socket; s=socket.socket(); s.bind(('0.0.0.0',{port})); print('bound')");
    let output = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", &script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "bound\n");
    let bare = world.bare(PYTHON).args(["-c", &script]).run();
    assert_ne!(bare.code(), 0, "the port is not taken outside, so nothing was shown");
}

/// Proves: NET-1 none-default
#[test]
fn by_default_there_is_a_loopback_and_nothing_else() {
    let world = World::new();
    let script =
        "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '; tail -n +2 /proc/net/route | wc -l";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "lo\n0\n");
}

/// Proves: NET-1 none-default
#[test]
fn nothing_can_be_sent_beyond_the_loopback() {
    let world = World::new();
    // Documentation addresses (RFC 5737, RFC 3849): unreachable is the kernel's own answer.
    let script = "import socket,errno\n\
        for family, host in ((socket.AF_INET,'192.0.2.1'),(socket.AF_INET6,'2001:db8::1')):\n\
        \x20 for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n\
        \x20  try: socket.socket(family,kind).connect((host,53)); print('connected')\n\
        \x20  except OSError as e: print(errno.errorcode[e.errno])\n";
    let output = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "ENETUNREACH\n".repeat(4));
}

/// Proves: NET-1 host-approved, POL-1 level-1-host-network
#[test]
fn the_hosts_network_comes_only_with_an_approval_on_record() {
    for level in ["1", "2"] {
        let world = World::new();
        let outside = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = outside.local_addr().unwrap().port();
        let script =
            format!("import socket; socket.create_connection(('127.0.0.1',{port})); print('met')");
        let alone = world.sandbox_run(["--level", level], [PYTHON, "-c", &script]).run();
        assert_ne!(alone.out(), "met\n", "level {level}");

        let flags = ["--level", level, "--network", "host"];
        let output = world.sandbox_run(flags, [PYTHON, "-c", &script]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "met\n");
        let report = output.report.as_ref().unwrap();
        assert_eq!(report["approvals"][0]["what"], "network:host", "{report:#}");
        let log = world.sandbox(["audit", "show", "--json"]).run();
        let approvals = log.out().lines().filter(|line| line.contains("APPROVAL_RECORDED")).count();
        assert_eq!(approvals, 1, "{}", log.out());
    }
}

/// Proves: NET-1 host-approved
#[test]
fn a_variable_is_no_approval_of_the_hosts_network() {
    let world = World::new();
    let output = world.sandbox_run(NO_FLAGS, ["true"]).env("SANDBOX_NETWORK", "host").run();
    output.assert_code(126);
    assert!(output.err().contains("approv"), "{}", output.err());
}
