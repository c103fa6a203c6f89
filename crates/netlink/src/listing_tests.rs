//! Every table that we make, as `nft` reads it: firewall scripts and monitoring list all of a host's at once.

use super::{Family, Fence, Table, block_table, fence_table, install};
use crate::route::{Families, loopback_for_everything};
use crate::socket::Socket;
use crate::veth::{Pair, masquerade};
use palisade_sys::clone::CloneFlags;
use palisade_sys::net::loopback_up;
use palisade_sys::test_child::{become_namespace_root, in_child};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::Command;

const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const V6: Ipv6Addr = Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 1);
const FAMILIES: [Family; 2] = [Family::Inet, Family::Ip];

/// What it prints, if it ends well. Debian keeps it where an ordinary user's shell does not look.
fn nft(words: &str) -> String {
    let places = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"].map(Path::new);
    let program = places.into_iter().find(|place| place.exists());
    let program = program.expect("this needs nft: cargo xtask setup, or install nftables");
    let done = Command::new(program).args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "nft {words}: {}: {said}", done.status);
    String::from_utf8(done.stdout).unwrap()
}

/// Lists everything in every form. What a person gets to see has these lines, and nothing of a type unknown to nft.
fn assert_listed(lines: &[&str]) {
    nft("list tables");
    nft("-a list ruleset");
    let listing = nft("list ruleset");
    for line in lines {
        assert!(listing.lines().any(|listed| listed.trim() == *line), "no {line:?} in {listing}");
    }
    let machine_readable = nft("-j list ruleset");
    assert!(machine_readable.starts_with("{\"nftables\": ["), "{machine_readable}");
    assert!(!listing.contains("invalid"), "{listing}");
}

/// Proves: NET-9 listed
#[test]
fn the_masquerade_in_the_hosts_namespace_is_listed() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNET);
        let pair = Pair {
            outside_name: "palisade3".to_owned(),
            outside: Ipv4Addr::new(198, 19, 0, 1),
            inside: Ipv4Addr::new(198, 19, 0, 2),
        };
        let table = masquerade(&pair, "palisade3").unwrap();
        assert_listed(&["ip saddr 198.19.0.2 masquerade"]);
        drop(table);
        assert_eq!(nft("list ruleset"), "");
    });
}

fn fence_of(family: Family) -> Table {
    let families = match family {
        Family::Inet => Families::Both,
        Family::Ip => Families::V4,
    };
    fence_table(family, &Fence { v4: V4, v6: V6, families, tcp_port: 1, dns_port: 2 })
}

/// The sets have members, too.
///
/// Proves: NET-5 listed
#[test]
fn the_fence_of_either_family_is_listed() {
    for family in FAMILIES {
        in_child(|| {
            become_namespace_root(CloneFlags::NEWNET);
            loopback_for_everything(V4, V6).unwrap();
            let socket = Socket::netfilter().unwrap();
            install(&socket, fence_of(family)).unwrap();
            let send = |from: &str, to| UdpSocket::bind(from).unwrap().send_to(b"x", to);
            send("0.0.0.0:0", "203.0.113.7:9").unwrap_err();
            let mut lines = vec!["elements = { udp . 203.0.113.7 . 9 counter packets 1 bytes 29 }"];
            if family == Family::Inet {
                send("[::]:0", "[2001:db8::7]:9").unwrap_err();
                lines.extend([
                    "elements = { udp . 2001:db8::7 . 9 counter packets 1 bytes 49 }",
                    "meta nfproto ipv4 udp dport 53 dnat ip to 198.18.0.1:2",
                    "ip6 daddr fd53:616e:6442::1 meta l4proto tcp accept",
                ]);
            } else {
                lines.push("udp dport 53 dnat to 198.18.0.1:2");
            }
            lines.extend(["ip daddr 127.0.0.0/8 accept", "ct status dnat accept"]);
            assert_listed(&lines);
        });
    }
}

/// Ranges of every sort: of one address, of whole bytes, of some bits, of everything.
fn block_of(family: Family) -> Table {
    let ranges = [
        ("169.254.169.254", 32),
        ("127.0.0.0", 8),
        ("100.64.0.0", 10),
        ("0.0.0.0", 0),
        ("::1", 128),
        ("2001:db8::", 32),
        ("fc00::", 7),
        ("::", 0),
    ];
    let is_seen = |address: &IpAddr| family == Family::Inet || address.is_ipv4();
    let ranges: Vec<(IpAddr, u8)> = ranges
        .into_iter()
        .map(|(address, prefix)| (address.parse().unwrap(), prefix))
        .filter(|(address, _)| is_seen(address))
        .collect();
    let resolvers: Vec<_> = [V4.into(), V6.into()].into_iter().filter(is_seen).collect();
    block_table(family, &ranges, &resolvers)
}

/// Proves: NET-9 listed
#[test]
fn the_blocked_ranges_of_either_family_are_listed() {
    for family in FAMILIES {
        in_child(|| {
            become_namespace_root(CloneFlags::NEWNET);
            loopback_up().unwrap();
            install(&Socket::netfilter().unwrap(), block_of(family)).unwrap();
            let mut lines = vec![
                "oif \"lo\" accept",
                "meta l4proto igmp drop",
                "ip daddr 198.18.0.1 udp dport 53 accept",
                "ip daddr 169.254.169.254 jump refuse",
                "ip daddr 100.64.0.0/10 jump refuse",
                "type inet_proto . ipv4_addr . inet_service",
            ];
            if family == Family::Inet {
                lines.extend([
                    "icmpv6 type nd-neighbor-solicit accept",
                    "ip6 nexthdr ipv6-route jump refuse",
                    "ip6 daddr fc00::/7 jump refuse",
                    "type inet_proto . ipv6_addr . inet_service",
                ]);
            }
            assert_listed(&lines);
        });
    }
}
