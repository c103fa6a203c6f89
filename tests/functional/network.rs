//! The sandbox's own network: a loopback that works, and nothing beyond it.

use std::net::TcpListener;

use palisade_testkit::{World, am_root, landlock_abi};

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

/// Proves: NET-2 sockets-listed
#[test]
fn ss_lists_the_sandboxs_own_sockets_and_no_others() {
    let world = World::new();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let script = "import socket,subprocess\n\
        tcp=socket.create_server(('127.0.0.1',0)); unix=socket.socket(socket.AF_UNIX)\n\
        unix.bind('/tmp/listed.sock'); unix.listen()\n\
        print(tcp.getsockname()[1]); print(subprocess.check_output(['ss','-Htlnp'],text=True))\n\
        print(subprocess.check_output(['ss','-Hxl'],text=True))";
    for flags in [&[][..], &["--allow-host", "api.example"]] {
        let output = world.sandbox_run(flags, [PYTHON, "-c", script]).run();
        output.assert_code(0);
        assert!(!output.err().contains("netlink"), "it asked /proc instead: {}", output.err());
        let text = output.out();
        let (own, listed) = text.split_once('\n').unwrap();
        assert!(listed.contains(&format!("127.0.0.1:{own} ")), "{flags:?}: {}", output.out());
        assert!(listed.contains("python3"), "whose it is: {}", output.out());
        assert!(listed.contains("/tmp/listed.sock"), "{}", output.out());
        assert!(!listed.contains(&format!(":{port} ")), "{}", output.out());
    }
}

/// Proves: NET-2 sockets-listed
#[test]
fn sockets_of_a_network_that_is_shared_and_closed_are_not_listed() {
    if am_root() || landlock_abi() == 0 {
        eprintln!("skipped: needs an ordinary user and Landlock");
        return;
    }
    let world = World::new();
    let script = "import socket,errno\n\
        try: socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,4); print('open')\n\
        except OSError as e: print(errno.errorcode[e.errno])\n";
    let shared = ["--level", "1", "--no-userns"];
    let output = world.sandbox_run(shared, [PYTHON, "-c", script]).run();
    assert_eq!(output.out(), "EAFNOSUPPORT\n", "{}", output.err());
    let approved = ["--level", "1", "--no-userns", "--network", "host"];
    let output = world.sandbox_run(approved, [PYTHON, "-c", script]).run();
    assert_eq!(output.out(), "open\n", "{}", output.err());
}

/// Names are looked up in turn: the answer of the C library, and how long it took.
const OWN_NAME: &str = "import socket,time\n\
    start=time.monotonic(); own=socket.gethostname()\n\
    address=socket.gethostbyname(own)\n\
    print(own, address.startswith('127.'), socket.getfqdn()==own, time.monotonic()-start<2)\n\
    s=socket.create_server((own,0)); socket.create_connection((own,s.getsockname()[1])); print('met')\n";

/// Proves: NET-2 own-name
#[test]
fn the_own_host_name_is_found_in_every_network_mode() {
    let world = World::new();
    for flags in [
        &[][..],
        &["--view", "minimal"],
        &["--static"],
        &["--allow-host", "api.example"],
        &["--network", "host"],
        &["--hostname", "builder"],
    ] {
        let name = if flags.contains(&"builder") { "builder" } else { "sandbox" };
        let output = world.sandbox_run(flags, [PYTHON, "-c", OWN_NAME]).run();
        output.assert_code(0);
        assert_eq!(output.out(), format!("{name} True True True\nmet\n"), "{flags:?}");
    }
    // The host's own name, which a host finds in its own ways; without a network there is only the file.
    let output = world.sandbox_run(["--level", "1"], [PYTHON, "-c", OWN_NAME]).run();
    output.assert_code(0);
    assert!(output.out().ends_with(" True\nmet\n"), "{}", output.out());
}

/// Proves: NET-2 own-name
#[test]
fn other_names_fail_at_once_without_a_network() {
    let world = World::new();
    let script = "import socket,time\n\
        start=time.monotonic()\n\
        try: socket.getaddrinfo('name.example',80)\n\
        except socket.gaierror as e: print(e.errno in (socket.EAI_AGAIN,socket.EAI_NONAME))\n\
        print(time.monotonic()-start<2)\n\
        print('timeout:0' in open('/etc/resolv.conf').read())\n";
    for flags in [&[][..], &["--level", "1"], &["--view", "minimal"]] {
        let output = world.sandbox_run(flags, [PYTHON, "-c", script]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "True\nTrue\nTrue\n", "{flags:?}");
    }
}

/// Proves: NET-2 loopback
#[test]
fn the_own_loopback_answers_a_ping() {
    let world = World::new();
    let script = "import socket,struct\n\
        s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM,socket.IPPROTO_ICMP); s.settimeout(5)\n\
        s.sendto(struct.pack('!BBHHH',8,0,0,0,1)+b'hello',('127.0.0.1',0))\n\
        print(s.recv(100)[8:].decode())\n";
    for flags in [&[][..], &["--level", "1"]] {
        let output = world.sandbox_run(flags, [PYTHON, "-c", script]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "hello\n", "{flags:?}: {}", output.err());
    }
}

/// Proves: NET-2 loopback
#[test]
fn low_ports_of_the_own_network_can_be_bound() {
    let world = World::new();
    let script = "import socket\n\
        for port in (80,443): socket.create_server(('127.0.0.1',port))\n\
        print('bound')\n";
    for flags in [&[][..], &["--level", "1"], &["--allow-host", "api.example:22"]] {
        let output = world.sandbox_run(flags, [PYTHON, "-c", script]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "bound\n", "{flags:?}: {}", output.err());
    }
}

/// Packet rules lead connections to the lowest ports of our own address.
///
/// Proves: NET-5 fence-stays
#[test]
fn the_lowest_ports_are_not_the_commands_where_connections_are_led_to_them() {
    let world = World::new();
    let script = "import socket,errno\n\
        for port in (1,2):\n\
        \x20 for kind in (socket.SOCK_STREAM,socket.SOCK_DGRAM):\n\
        \x20  try: socket.socket(socket.AF_INET,kind).bind(('0.0.0.0',port)); print('bound')\n\
        \x20  except OSError as e: print(errno.errorcode[e.errno])\n";
    let output = world.sandbox_run(["--allow-host", "api.example"], [PYTHON, "-c", script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "EACCES\n".repeat(4));
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

/// The C library looked in `/etc/hosts` alone, so that nobody could count it: curl failed, and no line said why.
///
/// Proves: LIFE-3 losses-told, NET-2 own-name
#[test]
fn a_look_up_without_a_network_fails_at_once_and_is_told() {
    let world = World::new();
    let script = |name: &str| {
        format!(
            "import socket, sys, time\n\
             began = time.monotonic()\n\
             try: socket.getaddrinfo('{name}', 80)\n\
             except socket.gaierror as error: print(error.errno == socket.EAI_NONAME)\n\
             print(time.monotonic() - began < 2)\n\
             sys.exit(1)\n"
        )
    };
    let output = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", &script("web.example")]).run();
    // Not "try again later", which package managers would.
    assert_eq!(output.out(), "True\nTrue\n", "{}", output.err());
    let told = "the network is off; the command made";
    assert!(output.err().contains(told), "{}", output.err());
    assert!(output.err().contains("to look up a name"), "{}", output.err());
    let own = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", &script("localhost")]).run();
    assert_eq!(own.out(), "True\n", "{}", own.err());
    assert!(!own.err().contains(told), "it is in the list: {}", own.err());
}
