//! Ways past the packet rules of a network with a NAT, tried in a small internet of the test's own (NET-9).

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use palisade_testkit::{Attack, Lab, Part, World};
use tempfile::TempDir;

use crate::egress::in_lab;
use crate::host::{probe, strings};

const WHOSE: &str =
    "in an ordinary user's lab nobody can tell which programs are root's, and no other is run";
const HELPERS: [&str; 2] = ["pasta", "slirp4netns"];

/// The interface that leads out, by its name and number, once it leads there with both protocols: the newer one's
/// routes are told by the helper.
const LINK: &str = "import socket, struct, sys, time\n\
    link = [line.split()[0] for line in open('/proc/net/route') if line.split()[1] == '00000000'][0]\n\
    index = socket.if_nametoindex(link)\n\
    end = time.monotonic() + 10\n\
    def leads(words): return words[0] == '0' * 32 and words[1] == '00' and words[-1] == link\n\
    while not any(leads(line.split()) for line in open('/proc/net/ipv6_route')) and time.monotonic() < end: time.sleep(0.01)\n\
    address = sys.argv[1]\n\
    family = socket.AF_INET6 if ':' in address else socket.AF_INET\n\
    def by_link(kind):\n\
    \x20 s = socket.socket(family, kind); s.settimeout(2)\n\
    \x20 s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode() + b'\\0')\n\
    \x20 return s\n";
/// A datagram by a socket that is bound to it.
const BOUND: &str =
    "s = by_link(socket.SOCK_DGRAM); s.sendto(b'carried out', (address, 7)); s.recv(9)\n";
/// By one that is not, but is told for this packet.
const TOLD: &str = "told = (socket.IPPROTO_IP, 8, struct.pack('I8s', index, b'')) if family == socket.AF_INET \
    else (socket.IPPROTO_IPV6, 50, struct.pack('16sI', b'', index))\n\
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(2)\n\
    s.sendmsg([b'carried out'], [told], 0, (address, 7)); s.recv(9)\n";
const CONNECTED: &str = "s = by_link(socket.SOCK_STREAM); s.connect((address, 80)); s.recv(9)\n";
/// Of the host, and how its servers write them.
const LOOPBACK: [(&str, &str); 2] = [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")];

/// A lab with a way out, and a directory for `PATH` that has this one helper.
struct Nat {
    lab: Rc<Lab>,
    programs: TempDir,
}

fn nat(helper: &str) -> Nat {
    let programs = tempfile::tempdir_in("/var/tmp").unwrap();
    std::os::unix::fs::symlink(format!("/usr/bin/{helper}"), programs.path().join(helper)).unwrap();
    Nat { lab: Rc::new(Lab::with(&[Part::Uplink])), programs }
}

impl Nat {
    fn attack(self, id: &'static str, name: String) -> (Attack, Rc<Lab>) {
        let Self { lab, programs } = self;
        let seen = Rc::clone(&lab);
        let attack = in_lab(&lab, id, name)
            .surroundings(move |_| {
                let path = format!("PATH={}:/usr/bin:/bin", programs.path().display());
                [lab.enter(), strings(&["env", &path])].concat()
            })
            .flags(|_| strings(&["--network", "nat"]))
            .only_as_root(WHOSE);
        (attack, seen)
    }
}

fn is_installed(program: &str) -> bool {
    Path::new("/usr/bin").join(program).exists()
}

/// A script of Python's for the run inside, with the address.
fn script(way: &str, address: &'static str) -> impl Fn(&World) -> Vec<String> + 'static {
    let script = format!("{LINK}{way}");
    move |_| strings(&["/usr/bin/python3", "-c", &script, address])
}

/// Proves: NET-9 host-loopback
#[test]
fn n01_no_interface_leads_to_the_hosts_loopback() {
    for helper in HELPERS {
        for (how, way) in [("bound to the link", BOUND), ("sent by the link", TOLD)] {
            for (address, shown) in LOOPBACK {
                let name = format!("a datagram to {address} of the host's by {helper}, {how}");
                let (attack, seen) = nat(helper).attack("N01", name);
                let place = format!("{shown}:7");
                let arrived = place.clone();
                attack
                    .proves(&["NET-9 host-loopback"])
                    .held_by(&["packet-rules"])
                    .needs("a NAT helper", is_installed(helper))
                    .command(script(way, address))
                    .bare_command(move |world| probe(world, &["datagram", &place]))
                    .succeeded(move |_, _| {
                        seen.saw(|entry| entry["kind"] == "udp" && entry["local"] == arrived)
                    })
                    .contained(|_, output| output.err().contains("Operation not permitted"))
                    .check();
            }
        }
    }
}

/// Proves: NET-9 host-loopback
#[test]
fn n01_no_connection_is_made_to_the_hosts_loopback() {
    for helper in HELPERS {
        let (address, _) = LOOPBACK[0];
        let name = format!("a connection to {address} of the host's by {helper}");
        let (attack, seen) = nat(helper).attack("N01", name);
        attack
            .proves(&["NET-9 host-loopback"])
            .held_by(&["packet-rules"])
            .needs("a NAT helper", is_installed(helper))
            .command(script(CONNECTED, address))
            .bare_command(|world| probe(world, &["page", "127.0.0.1:80", "host", "/"]))
            .succeeded(move |_, _| seen.connected("127.0.0.1:"))
            .check();
    }
}

/// A server that never takes its calls; the kernel does.
const SERVER: &str = "import socket\n\
    s = socket.socket(); s.bind(('0.0.0.0', 8000)); s.listen()\n\
    print('ready', flush=True); input()\n";
/// From the host, at the other end of the pair of links or, without one, at its own loopback.
const CALL: &str = "import ipaddress, socket, subprocess\n\
    links = subprocess.run(['ip', '-4', '-brief', 'address'], capture_output=True, text=True).stdout\n\
    ours = [line.split()[2].split('/')[0] for line in links.splitlines() if line.startswith('palisade')]\n\
    place = str(ipaddress.ip_address(ours[0]) + 1) if ours else '127.0.0.1'\n\
    socket.create_connection((place, 8000), 2)\n";

/// Proves: NET-9 closed
#[test]
fn n01_nobody_comes_in_by_a_link_of_the_hosts() {
    let lab = Rc::new(Lab::with(&[Part::Uplink]));
    let (forwarding, calling) = (Rc::clone(&lab), Rc::clone(&lab));
    let came_in = Rc::new(Cell::new(false));
    let (reset, called) = (Rc::clone(&came_in), Rc::clone(&came_in));
    in_lab(&lab, "N01", "a server inside, called from outside by the link that leads out")
        .proves(&["NET-9 closed"])
        .held_by(&["packet-rules"])
        .only_as_root("only root gets a pair of links")
        .prepare(move |world| {
            reset.set(false);
            let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
            forwarding.bare(world, "sh").args(["-c", forward]).run().assert_code(0);
        })
        .flags(|_| strings(&["--network", "nat"]))
        .command(|_| strings(&["/usr/bin/python3", "-c", SERVER]))
        .meanwhile(move |world| {
            let call = calling.bare(world, "/usr/bin/python3").args(["-c", CALL]).run();
            called.set(call.code() == 0);
        })
        .succeeded(move |_, _| came_in.get())
        .check();
}
