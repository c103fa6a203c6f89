//! NAT for who needs any port and any host, and ports that are published inwards (NET-9).

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use palisade_testkit::{Output, Part, Running, am_root};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::egress_support::Net;
use crate::inside::{below, eventually, lives, status_field};

/// Any host and port, but no private address, metadata service or loopback of the host's.
const TRY: &str = "PATH=/usr/bin:/bin; for place in 203.0.113.11:80 203.0.113.11:8080 10.0.0.5:80 169.254.169.254:80 100.64.0.5:80; do \
    curl -s -o /dev/null -w \"$place %{http_code}\\n\" --max-time 5 http://$place/; done; \
    curl -s --max-time 5 http://other.example/";
const HELPERS: [&str; 2] = ["pasta", "slirp4netns"];
const REACHED: &str = "203.0.113.11:80 200\n203.0.113.11:8080 200\n";

/// Helpers are root's programs, or they are not run; and in an ordinary user's lab nothing is root's.
fn can_tell_whose_programs_are() -> bool {
    if !am_root() {
        println!(
            "not tried: in a user namespace without root nobody can tell which programs are root's"
        );
    }
    am_root()
}

fn reaches_the_world_and_nothing_private(helper: &str) {
    if !can_tell_whose_programs_are() {
        return;
    }
    let net = Net::with(&[Part::Uplink]);
    let programs = only(helper);
    let output = net
        .lab
        .sandbox_run(&net.world, ["--network", "nat"], ["/bin/sh", "-c", TRY])
        .env("PATH", programs.path())
        .deadline(Duration::from_secs(90))
        .run();
    let out = output.out();
    assert!(out.starts_with(REACHED), "{out}{}", output.err());
    for place in ["10.0.0.5", "169.254.169.254", "100.64.0.5"] {
        assert!(out.contains(&format!("{place}:80 000")), "{out}");
        assert!(!net.lab.connected(&format!("{place}:")), "{:#?}", net.lab.journal());
    }
    assert!(
        out.ends_with("hello from other.example\n"),
        "names are looked up too: {out}{}",
        output.err()
    );
    tells_what_it_refused(&net, &output);
}

/// In the log and at the end of the run, and nothing besides: the kernel talks on a link too.
fn tells_what_it_refused(net: &Net, output: &Output) {
    let refused: BTreeSet<String> = net
        .events("NETWORK_ATTEMPT")
        .iter()
        .map(|event| format!("{} {}", event["host"].as_str().unwrap(), event["port"]))
        .collect();
    let expected = ["10.0.0.5 80", "100.64.0.5 80", "169.254.169.254 80"].map(str::to_owned);
    assert_eq!(refused, BTreeSet::from(expected));
    assert!(output.err().contains("3 hosts were denied"), "{}", output.err());
    assert!(
        output.err().contains("10.0.0.5:80 (blocked address: private (10.0.0.0/8))"),
        "{}",
        output.err()
    );
}

/// A directory for `PATH` in which this is the only helper. Whoever the helper runs as can look into it.
fn only(helper: &str) -> TempDir {
    let everyone = Permissions::from_mode(0o755);
    let directory = tempfile::Builder::new()
        .prefix("palisade-helpers-")
        .permissions(everyone)
        .tempdir_in("/var/tmp")
        .unwrap();
    for program in ["sh", "curl", helper] {
        let link = directory.path().join(program);
        std::os::unix::fs::symlink(format!("/usr/bin/{program}"), &link).unwrap();
    }
    directory
}

/// Proves: NET-9 pasta, NET-9 private, NET-9 refused
#[test]
fn pasta_reaches_the_world_and_nothing_private() {
    reaches_the_world_and_nothing_private("pasta");
}

/// Proves: NET-9 slirp, NET-9 private, NET-9 refused
#[test]
fn slirp4netns_reaches_the_world_and_nothing_private() {
    reaches_the_world_and_nothing_private("slirp4netns");
}

/// A routing header, whose first stop is an address that may be reached: where it ends is not looked at.
const STOPS: &str = "import socket\n\
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
    s.sendto(b'x', ('2001:db8::10', 7))\n\
    s.setsockopt(socket.IPPROTO_IPV6, 57, bytes([0, 2, 4, 0, 0, 0, 0, 0]) + socket.inet_pton(socket.AF_INET6, '2001:db8::10'))\n\
    try: s.sendto(b'x', ('fd00::5', 7))\n\
    except OSError as error: print(error)\n";

/// Proves: NET-9 private
#[test]
fn no_packet_is_led_on_from_where_it_may_go() {
    if !can_tell_whose_programs_are() {
        return;
    }
    let net = Net::with(&[Part::Uplink]);
    let programs = only("pasta");
    let command = ["/usr/bin/python3", "-c", STOPS];
    let output = net
        .lab
        .sandbox_run(&net.world, ["--network", "nat"], command)
        .env("PATH", programs.path())
        .run();
    assert_eq!(output.out(), "[Errno 1] Operation not permitted\n", "{}", output.err());
}

/// A run that has nothing to do, and its helper's process.
fn idle_with(helper: &str) -> (Net, Running, u32) {
    let net = Net::with(&[Part::Uplink]);
    let programs = only(helper);
    let command = ["/bin/sh", "-c", "echo ready; exec /bin/sleep 1000"];
    let run = net
        .lab
        .sandbox_run(&net.world, ["--network", "nat"], command)
        .env("PATH", programs.path())
        .deadline(Duration::from_secs(90))
        .spawn();
    run.wait_for_stdout("ready");
    // By how it was called: pasta goes on as the program that suits the processor.
    let is_helper = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).next().is_some_and(|word| word == helper.as_bytes())
    };
    let pid = below(&run).into_iter().find(is_helper).expect(helper);
    (net, run, pid)
}

/// Proves: NET-9 no-orphan
#[test]
fn a_helper_ends_with_a_supervisor_that_is_killed() {
    if !can_tell_whose_programs_are() {
        return;
    }
    for helper in HELPERS {
        let (_net, run, pid) = idle_with(helper);
        run.signal(Signal::KILL);
        eventually("the end of the helper", || !lives(pid));
        let _killed = run.wait();
    }
}

/// It has rights over the sandbox's network, and hears what comes from the world.
///
/// Proves: NET-9 helper-confined
#[test]
fn a_helper_has_little_of_the_host() {
    if !can_tell_whose_programs_are() {
        return;
    }
    for helper in HELPERS {
        let (_net, run, pid) = idle_with(helper);
        assert_eq!(status_field(pid, "NoNewPrivs").as_deref(), Some("1"), "{helper}");
        assert_eq!(status_field(pid, "Seccomp").as_deref(), Some("2"), "{helper}");
        assert_eq!(status_field(pid, "CapBnd").as_deref(), Some("0000000000000000"), "{helper}");
        run.signal(Signal::KILL);
        let _killed = run.wait();
    }
}

/// A run whose way out has gone does not go on without one.
///
/// Proves: NET-9 pasta, NET-9 slirp
#[test]
fn a_helper_that_dies_takes_the_run_along() {
    if !can_tell_whose_programs_are() {
        return;
    }
    for helper in HELPERS {
        let (_net, run, pid) = idle_with(helper);
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
        let output = run.wait();
        assert_eq!(output.code(), 125, "{}", output.err());
        assert!(output.err().contains("the NAT helper went away"), "{}", output.err());
    }
}

/// Proves: NET-9 pasta
#[test]
fn without_a_helper_the_error_names_the_packages() {
    let net = Net::with(&[Part::Uplink]);
    let programs = only("true");
    let output = net
        .lab
        .sandbox_run(&net.world, ["--network", "nat"], ["true"])
        .env("PATH", programs.path())
        .run();
    assert_ne!(output.code(), 0);
    assert!(
        output.err().contains("passt") && output.err().contains("slirp4netns"),
        "{}",
        output.err()
    );
}

/// The lab passes on what comes from inside: root gets a pair of interfaces.
fn forward(net: &Net) {
    let switch = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    net.lab.bare(&net.world, "sh").args(["-c", switch]).run().assert_code(0);
}

/// Proves: NET-9 veth, NET-9 private, NET-9 refused
#[test]
fn root_gets_a_pair_of_interfaces() {
    if !am_root() {
        println!("not tried: only root can make interfaces on the host");
        return;
    }
    let net = Net::with(&[Part::Uplink]);
    forward(&net);
    let output = net.run(&["--network", "nat"], &["sh", "-c", TRY]);
    let out = output.out();
    assert!(out.starts_with(REACHED), "{out}{}", output.err());
    for place in ["10.0.0.5", "169.254.169.254", "100.64.0.5"] {
        assert!(!net.lab.connected(&format!("{place}:")), "{:#?}", net.lab.journal());
    }
    tells_what_it_refused(&net, &output);
    let links = net.lab.bare(&net.world, "ip").args(["-brief", "link"]).run();
    assert_eq!(links.out().lines().count(), 4, "nothing is left on the host: {}", links.out());
}

const SERVER: &str = "import socket\n\
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
    s.bind(('127.0.0.1', 8000)); s.listen(); print('ready', flush=True)\n\
    for _ in range(2):\n\
    \x20 c, _ = s.accept(); data = c.recv(100); c.sendall(b'got ' + data); c.close()\n";

/// Proves: NET-9 published
#[test]
fn a_published_port_leads_in_and_no_other_does() {
    const NAT: &[&str] = &["--publish", "8123:8000", "--network", "nat"];
    for (way, flags) in [
        ("none", &["--publish", "8123:8000"][..]),
        ("proxy", &["--publish", "127.0.0.1:8123:8000", "--allow-host", "web.example"]),
        ("helper", NAT),
        ("veth", NAT),
    ] {
        if flags == NAT && !can_tell_whose_programs_are() {
            continue;
        }
        let net = Net::with(if flags == NAT { &[Part::Uplink] } else { &[] });
        if way == "veth" {
            forward(&net);
        }
        let run = net.spawn(flags, &["/usr/bin/python3", "-c", SERVER]);
        run.wait_for_stdout("ready");
        let ask = |address: &str, port: u16| {
            let script = format!(
                "import socket; s = socket.create_connection(('{address}', {port}), 10); s.sendall(b'hello'); print(s.recv(100).decode())"
            );
            net.lab.bare(&net.world, "/usr/bin/python3").args(["-c", &script]).run()
        };
        eventually("an answer from inside", || ask("127.0.0.1", 8123).out() == "got hello\n");
        for (address, port) in [("127.0.0.1", 8000), ("203.0.113.10", 8123)] {
            assert_ne!(ask(address, port).code(), 0, "{address}:{port} leads in");
        }
        assert_eq!(ask("127.0.0.1", 8123).out(), "got hello\n");
        run.wait().assert_code(0);
        assert_ne!(ask("127.0.0.1", 8123).code(), 0, "the port is closed with the run");
    }
}
