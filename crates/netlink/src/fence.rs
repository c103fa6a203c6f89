//! Packet rules of a sandbox's own network namespace.
//!
//! The command has no capability in the namespace, so it cannot change them. They never open a path to the
//! host's network: the namespace has only the listeners or a NAT's link. The command chooses the interface that
//! a packet leaves by (`SO_BINDTODEVICE` and `IP_PKTINFO` need no privilege). So where there is a NAT's link, a
//! loopback address alone does not prove that a packet stays on loopback.

use crate::nft::{ChainPosition, ConnectionKey, FIRST, Family, Lifetime, Rule, Table, Version};
use crate::route::Families;
use crate::socket::Socket;
use palisade_sys::{Errno, Result, SysError};
use rustix::net::{AddressFamily, SocketType};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const TABLE: &str = "palisade";
/// Counts rejected packets by destination.
pub(crate) const REFUSED_V4: &str = "refused4";
pub(crate) const REFUSED_V6: &str = "refused6";
/// Counts all rejected packets.
pub(crate) const REFUSED: &str = "refused";
/// Packets to further destinations are counted in total only.
const MAX_DESTINATIONS: u32 = 4096;

const REWRITE: &str = "rewrite";
const FILTER: &str = "filter";
const ENTER: &str = "enter";
const REFUSE: &str = "refuse";

const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const DNS: u16 = 53;

// linux/netfilter/nf_conntrack_common.h
const ESTABLISHED: u32 = 0x2;
const RELATED: u32 = 0x4;
const REDIRECTED: u32 = 0x20;

/// The listeners of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
    pub families: Families,
    pub tcp_port: u16,
    /// For UDP to port 53 of any address.
    pub dns_port: u16,
}

impl Fence {
    fn addresses(&self) -> Vec<IpAddr> {
        match self.families {
            Families::V4 => vec![self.v4.into()],
            Families::Both => vec![self.v4.into(), self.v6.into()],
        }
    }
}

/// Redirects all TCP and all DNS queries over UDP to the listeners, rejects and counts everything else, and
/// does not touch loopback. The destination is rewritten to one of our addresses and not to loopback, so that
/// every loopback port stays free for the command.
pub fn fence(socket: &Socket, fence: &Fence) -> Result<()> {
    match install(socket, fence_table(Family::Inet, fence)) {
        // Without rules for IPv6, its packets are not redirected and reach no listener.
        Err(error) if has_no_inet(&error) => {
            install(socket, fence_table(Family::Ip, &Fence { families: Families::V4, ..*fence }))
        }
        installed => installed,
    }
}

/// The errors of kernels that do not support `inet` tables.
fn has_no_inet(error: &SysError) -> bool {
    matches!(error.errno, Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::NOENT)
}

fn fence_table(family: Family, fence: &Fence) -> Table {
    let mut table = Table::new(family, TABLE, Lifetime::Namespace);
    table.chain(REWRITE, ChainPosition::REWRITE_OUTPUT);
    table.chain(FILTER, ChainPosition::FILTER_OUTPUT);
    let versions: Vec<Version> = fence.addresses().into_iter().map(Version::of).collect();
    add_refusal(&mut table, &versions);
    leave_loopback(&mut table, REWRITE);
    table
        .rule(FILTER, Rule::new().connection(ConnectionKey::State, ESTABLISHED | RELATED).accept());
    table.rule(FILTER, Rule::new().connection(ConnectionKey::Status, REDIRECTED).accept());
    leave_loopback(&mut table, FILTER);
    for listener in fence.addresses() {
        let version = Version::of(listener);
        let of_version = || Rule::new().version(version);
        table.rule(REWRITE, of_version().protocol(TCP).redirect(listener, fence.tcp_port));
        table
            .rule(REWRITE, of_version().protocol(UDP).port(DNS).redirect(listener, fence.dns_port));
        // Packets sent to the listener's own address do not have the DNAT status bit that the rule above
        // checks.
        table.rule(FILTER, Rule::new().to(listener, whole(listener)).protocol(TCP).accept());
    }
    table.rule(FILTER, Rule::new().jump(REFUSE));
    table
}

/// The register after protocol and address.
fn key_port(version: Version) -> u32 {
    match version {
        Version::V4 => FIRST + 2,
        Version::V6 => FIRST + 5,
    }
}

/// For a namespace with a link to the outside. These ranges stay unreachable through it, except for DNS queries
/// to `resolvers`, and no incoming connections are accepted. Rejected packets are counted.
pub fn block(socket: &Socket, ranges: &[(IpAddr, u8)], resolvers: &[IpAddr]) -> Result<()> {
    match install(socket, block_table(Family::Inet, ranges, resolvers)) {
        // Only if the kernel has no IPv6, which an IPv4 table would not filter.
        Err(error) if has_no_inet(&error) && !kernel_has_v6() => {
            let ranges: Vec<_> =
                ranges.iter().copied().filter(|(address, _)| address.is_ipv4()).collect();
            let resolvers: Vec<_> = resolvers.iter().copied().filter(IpAddr::is_ipv4).collect();
            install(socket, block_table(Family::Ip, &ranges, &resolvers))
        }
        installed => installed,
    }
}

fn kernel_has_v6() -> bool {
    let made = rustix::net::socket(AddressFamily::INET6, SocketType::DGRAM, None);
    !matches!(made, Err(Errno::AFNOSUPPORT))
}

/// ICMPv6 types that the kernel itself sends and without which it cannot find a neighbour: router solicitation
/// to neighbour advertisement (RFC 4861). Their destinations are link addresses, which are in the blocked
/// ranges.
const NEIGHBOURS: std::ops::RangeInclusive<u8> = 133..=136;
/// Multicast listener report (RFC 3810), also sent by the kernel itself.
const LISTENER_REPORT: u8 = 143;

fn block_table(family: Family, ranges: &[(IpAddr, u8)], resolvers: &[IpAddr]) -> Table {
    let versions: &[Version] = match family {
        Family::Inet => &[Version::V4, Version::V6],
        Family::Ip => &[Version::V4],
    };
    let icmpv6 = |kind| Rule::new().version(Version::V6).protocol(ICMPV6).icmp_type(kind);
    let mut table = Table::new(family, TABLE, Lifetime::Namespace);
    table.chain(FILTER, ChainPosition::FILTER_OUTPUT);
    table.chain(ENTER, ChainPosition::FILTER_INPUT);
    add_refusal(&mut table, versions);
    // No rule accepts established connections: their state does not say which interface they used.
    table.rule(FILTER, Rule::new().leaves_by_loopback().accept());
    table.rule(ENTER, Rule::new().comes_by_loopback().accept());
    table.rule(ENTER, Rule::new().connection(ConnectionKey::State, ESTABLISHED | RELATED).accept());
    if family == Family::Inet {
        for kind in NEIGHBOURS {
            table.rule(FILTER, icmpv6(kind).accept());
            table.rule(ENTER, icmpv6(kind).accept());
        }
        table.rule(FILTER, icmpv6(LISTENER_REPORT).drop_it());
    }
    // The kernel sends it and not the command, so it is not counted.
    table.rule(FILTER, Rule::new().protocol(IGMP).drop_it());
    for version in versions {
        table.rule(FILTER, Rule::new().has_stops(*version).jump(REFUSE));
    }
    for resolver in resolvers {
        for protocol in [TCP, UDP] {
            let rule = Rule::new().to(*resolver, whole(*resolver)).protocol(protocol).port(DNS);
            table.rule(FILTER, rule.accept());
        }
    }
    for (address, prefix) in ranges {
        table.rule(FILTER, Rule::new().to(*address, *prefix).jump(REFUSE));
    }
    table.rule(ENTER, Rule::new().drop_it());
    table
}

/// Counts the packet in total and by destination, then rejects it.
fn add_refusal(table: &mut Table, versions: &[Version]) {
    table.side_chain(REFUSE);
    table.counter(REFUSED);
    for version in versions.iter().copied() {
        let set = match version {
            Version::V4 => REFUSED_V4,
            Version::V6 => REFUSED_V6,
        };
        table.counting_set(set, version, MAX_DESTINATIONS);
        let port = key_port(version);
        let of_version = || Rule::new().version(version);
        let key = |rule: Rule| rule.load_protocol(FIRST).load_destination(version, FIRST + 1);
        for protocol in [TCP, UDP] {
            let rule = key(of_version().protocol(protocol)).load_port(port);
            table.rule(REFUSE, rule.count_in(set, FIRST));
        }
        let without_ports = key(of_version().not_protocol(TCP).not_protocol(UDP));
        table.rule(REFUSE, without_ports.load(port, &[0; 2]).count_in(set, FIRST));
    }
    table.rule(REFUSE, Rule::new().count(REFUSED));
    table.rule(REFUSE, Rule::new().protocol(TCP).reset());
    table.rule(REFUSE, Rule::new().reject());
}

/// The prefix length of a single address.
fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// For a namespace that has no other link.
fn leave_loopback(table: &mut Table, chain: &str) {
    table.rule(chain, Rule::new().to(Ipv4Addr::LOCALHOST.into(), 8).accept());
    if table.family() == Family::Inet {
        table.rule(chain, Rule::new().to(Ipv6Addr::LOCALHOST.into(), 128).accept());
    }
}

pub(crate) fn install(socket: &Socket, table: Table) -> Result<()> {
    socket.request(table.finish())
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "block_tests.rs"]
mod block_tests;

#[cfg(test)]
#[path = "listing_tests.rs"]
mod listing_tests;
