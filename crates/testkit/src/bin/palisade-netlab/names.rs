//! Every name and address of the lab. Tests rely on these; what is not here does not exist.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 53);
/// Where datagrams are answered, in the world and on the host.
pub(crate) const WORLD_DATAGRAMS: [&str; 2] = ["203.0.113.10", "2001:db8::10"];
pub(crate) const HOST_DATAGRAMS: [&str; 2] = ["127.0.0.1", "::1"];

/// The link between the two: the host's end and the world's, of each family.
pub(crate) const HOST_END: [&str; 2] = ["198.51.100.1", "2001:db8:2::1"];
pub(crate) const WORLD_END: [&str; 2] = ["198.51.100.2", "2001:db8:2::2"];

/// What the loopback of the host holds: its own addresses, and those that a test's own servers listen on. A whole network on it is
/// local, whole.
pub(crate) const HOST_ADDRESSES: &[&str] =
    &["203.0.113.1/32", "203.0.113.30/32", "203.0.113.40/32", "203.0.113.97/28", "2001:db8::1/128"];

/// What the loopback of the world holds.
pub(crate) const WORLD_ADDRESSES: &[&str] = &[
    "203.0.113.2/24",
    "2001:db8::10/128",
    "2001:db8::11/128",
    "2001:db8::16/128",
    // What no sandbox may reach, with the same servers behind it.
    "10.0.0.5/32",
    "100.64.0.5/32",
    "169.254.169.254/32",
    "fd00::5/128",
    "64:ff9b::a00:5/128",
    "2002:a00:5::1/128",
    "2001:0:a00:5::1/128",
];

/// Names and what they stand for, always the same.
const FIXED: &[(&str, &[&str])] = &[
    ("web.example", &["203.0.113.10", "2001:db8::10"]),
    ("other.example", &["203.0.113.11", "2001:db8::11"]),
    ("deep.sub.other.example", &["203.0.113.11", "2001:db8::11"]),
    ("four.example", &["203.0.113.14"]),
    ("six.example", &["2001:db8::16"]),
    ("git.example", &["203.0.113.20"]),
    ("index.example", &["203.0.113.21"]),
    ("files.example", &["203.0.113.22"]),
    ("packages.example", &["203.0.113.23"]),
    ("crates.example", &["203.0.113.24"]),
    ("ssh.example", &["203.0.113.25"]),
    // One server, and one certificate for both.
    ("h2.example", &["203.0.113.26"]),
    ("h2-other.example", &["203.0.113.26"]),
    ("ws.example", &["203.0.113.27"]),
    ("proxy.example", &["203.0.113.30"]),
    // The host's own, on its loopback and on its link.
    ("own.example", &["203.0.113.1"]),
    ("own-six.example", &["2001:db8::1"]),
    ("own-link.example", &["198.51.100.1"]),
    ("own-range.example", &["203.0.113.99"]),
    ("heedless.example", &["203.0.113.41"]),
    ("evil.example", &["203.0.113.66"]),
    // Names of a local network, at an address that is nobody's own.
    ("printer.local", &["203.0.113.66"]),
    ("wiki.corp.internal", &["203.0.113.66"]),
    ("xn--bcher-kva.example", &["203.0.113.12"]),
    ("private.example", &["10.0.0.5"]),
    ("shared.example", &["100.64.0.5"]),
    ("metadata.example", &["169.254.169.254"]),
    ("loopback.example", &["127.0.0.1"]),
    ("mixed.example", &["203.0.113.10", "10.0.0.5"]),
    // Nobody is at the first address, so clients go on to the second.
    ("second-private.example", &["192.0.2.77", "10.0.0.5"]),
    ("second-local.example", &["192.0.2.77", "fd00::5"]),
    ("local.example", &["fd00::5"]),
    ("mapped.example", &["::ffff:10.0.0.5"]),
    ("translated.example", &["64:ff9b::a00:5"]),
    ("six-to-four.example", &["2002:a00:5::1"]),
    ("teredo.example", &["2001:0:a00:5::1"]),
];
/// Names that stand for another one.
const ALIASES: &[(&str, &str)] = &[
    ("alias.example", "web.example"),
    ("alias-of-alias.example", "alias.example"),
    ("alias-of-private.example", "private.example"),
    ("alias-of-own.example", "own.example"),
    ("alias-of-evil.example", "evil.example"),
    ("alias-of-internal.example", "wiki.corp.internal"),
    ("ring.example", "other-ring.example"),
    ("other-ring.example", "ring.example"),
];
/// `1.chain.example` is an alias of `2.chain.example`, and so on up to here, which is one of `web.example`.
const MAX_CHAIN_LEN: usize = 20;
/// Nobody follows an alias further.
const MAX_ALIASES: usize = 40;

/// The names that this one stands for, one behind the other.
pub(crate) fn aliased(name: &str) -> Vec<String> {
    let mut chain: Vec<String> = Vec::new();
    while chain.len() < MAX_ALIASES
        && let Some(next) = alias_of(chain.last().map_or(name, String::as_str))
    {
        chain.push(next);
    }
    chain
}

fn alias_of(name: &str) -> Option<String> {
    let link = name.strip_suffix(".chain.example").and_then(|link| link.parse::<usize>().ok());
    if let Some(link) = link {
        let next = format!("{}.chain.example", link + 1);
        return Some(if link == MAX_CHAIN_LEN { "web.example".to_owned() } else { next });
    }
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, of)| (*of).to_owned())
}

/// Its server reads no body, and takes one for the next request (as Python's `http.server` does).
pub(crate) const HEEDLESS: &str = "heedless.example";
/// Names below these have a public address the first time they are asked for, and this one from then on.
const TURNING: &[(&str, Ipv4Addr)] = &[
    (".turning.example", Ipv4Addr::new(10, 0, 0, 5)),
    (".turning-loopback.example", Ipv4Addr::LOCALHOST),
    (".turning-own.example", Ipv4Addr::new(203, 0, 113, 1)),
    (".turning-metadata.example", Ipv4Addr::new(169, 254, 169, 254)),
];
/// Whoever asks for a name below it tells its owner something.
const LISTENING: &str = ".evil.example";

/// What a name stands for when it is asked for the `nth` time; none if it does not exist.
pub(crate) fn addresses(name: &str, nth: u64) -> Option<Vec<IpAddr>> {
    if let Some((_, later)) = TURNING.iter().find(|(below, _)| name.ends_with(below)) {
        let address = if nth == 0 { Ipv4Addr::new(203, 0, 113, 66) } else { *later };
        return Some(vec![address.into()]);
    }
    if name.ends_with(LISTENING) {
        return Some(vec![Ipv4Addr::new(203, 0, 113, 66).into()]);
    }
    let (_, listed) = FIXED.iter().find(|(known, _)| *known == name)?;
    Some(listed.iter().filter_map(|text| text.parse().ok()).collect())
}

/// The addresses of one family.
pub(crate) fn of_family(addresses: &[IpAddr], v6: bool) -> Vec<IpAddr> {
    addresses.iter().copied().filter(|address| address.is_ipv6() == v6).collect()
}

/// Every address of both families.
pub(crate) const EVERYWHERE: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// The address and port a client connected to, in the form it would write them.
pub(crate) fn met_at(stream: &TcpStream) -> io::Result<String> {
    let local = stream.local_addr()?;
    Ok(SocketAddr::new(local.ip().to_canonical(), local.port()).to_string())
}
