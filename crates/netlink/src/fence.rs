//! Packet rules of a sandbox's own network namespace.
//!
//! The command has no capability there, so it can not change them. They never let a packet out: the namespace
//! has no way out but the listeners, or a NAT helper's link.

use crate::nft::{ConnectionKey, FIRST, Family, Lifetime, Place, Rule, Table, Version};
use crate::route::Families;
use crate::socket::Socket;
use palisade_sys::{Errno, Result, SysError};
use rustix::net::{AddressFamily, SocketType};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const TABLE: &str = "palisade";
/// What was rejected, by destination.
pub(crate) const REFUSED_V4: &str = "refused4";
pub(crate) const REFUSED_V6: &str = "refused6";
/// And all of it.
pub(crate) const REFUSED: &str = "refused";
/// More destinations than that are only counted together.
const MOST_DESTINATIONS: u32 = 4096;

const REWRITE: &str = "rewrite";
const FILTER: &str = "filter";
const REFUSE: &str = "refuse";

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const DNS: u16 = 53;

// linux/netfilter/nf_conntrack_common.h
const ESTABLISHED: u32 = 0x2;
const RELATED: u32 = 0x4;
const REDIRECTED: u32 = 0x20;

/// Where the listeners of a namespace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
    pub families: Families,
    pub tcp_port: u16,
    /// For datagrams to port 53 of anywhere.
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

/// Sends all TCP and all questions about names to the listeners, rejects and counts the rest, and leaves loopback
/// alone. The destination is rewritten to an address of ours and not to loopback, so that no port that the
/// command could want there is taken.
pub fn fence(socket: &Socket, fence: &Fence) -> Result<()> {
    match install(socket, fence_table(Family::Inet, fence)) {
        // Without a rule for it IPv6 finds no listener, and so nobody.
        Err(error) if has_no_inet(&error) => {
            install(socket, fence_table(Family::Ip, &Fence { families: Families::V4, ..*fence }))
        }
        installed => installed,
    }
}

/// What kernels answer that know no table for both families.
fn has_no_inet(error: &SysError) -> bool {
    matches!(error.errno, Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::NOENT)
}

fn fence_table(family: Family, fence: &Fence) -> Table {
    let mut table = Table::new(family, TABLE, Lifetime::Namespace);
    table.chain(REWRITE, Place::REWRITE_OUTPUT);
    table.chain(FILTER, Place::FILTER_OUTPUT);
    add_refusal(&mut table);
    table.counter(REFUSED);
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
        // The one destination that needs no rewriting, and so is not known by it.
        table.rule(FILTER, Rule::new().to(listener, whole(listener)).protocol(TCP).accept());
        let (set, address_length) = match version {
            Version::V4 => (REFUSED_V4, 4),
            Version::V6 => (REFUSED_V6, 16),
        };
        table.counting_set(set, 4 + address_length + 4, MOST_DESTINATIONS);
        let port = key_port(version);
        let key = |rule: Rule| rule.load_protocol(FIRST).load_destination(version, FIRST + 1);
        table.rule(FILTER, key(of_version().protocol(UDP)).load_port(port).count_in(set, FIRST));
        table.rule(
            FILTER,
            key(of_version().not_protocol(UDP)).load(port, &[0; 2]).count_in(set, FIRST),
        );
    }
    table.rule(FILTER, Rule::new().count(REFUSED).jump(REFUSE));
    table
}

/// The register behind protocol and address.
fn key_port(version: Version) -> u32 {
    match version {
        Version::V4 => FIRST + 2,
        Version::V6 => FIRST + 5,
    }
}

/// For a namespace with a NAT helper: these ranges stay out of reach, but for questions about names to
/// `resolvers`.
pub fn block(socket: &Socket, ranges: &[(IpAddr, u8)], resolvers: &[IpAddr]) -> Result<()> {
    match install(socket, block_table(Family::Inet, ranges, resolvers)) {
        // Only where there is no IPv6 that would get around it.
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

fn block_table(family: Family, ranges: &[(IpAddr, u8)], resolvers: &[IpAddr]) -> Table {
    /// Router solicitation to neighbour advertisement (RFC 4861): the kernel's own, without which no IPv6 address
    /// on the link is found. They go to addresses of the link, which are among the ranges.
    const NEIGHBOURS: std::ops::RangeInclusive<u8> = 133..=136;
    let mut table = Table::new(family, TABLE, Lifetime::Namespace);
    table.chain(FILTER, Place::FILTER_OUTPUT);
    add_refusal(&mut table);
    table
        .rule(FILTER, Rule::new().connection(ConnectionKey::State, ESTABLISHED | RELATED).accept());
    leave_loopback(&mut table, FILTER);
    if family == Family::Inet {
        for kind in NEIGHBOURS {
            table.rule(
                FILTER,
                Rule::new().version(Version::V6).protocol(ICMPV6).icmp_type(kind).accept(),
            );
        }
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
    table
}

fn add_refusal(table: &mut Table) {
    table.side_chain(REFUSE);
    table.rule(REFUSE, Rule::new().protocol(TCP).reset());
    table.rule(REFUSE, Rule::new().reject());
}

/// The prefix of one address.
fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

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
