//! Address ranges that are blocked, whatever name resolves to them and even if a list contains `*` (NET-3, N04,
//! N06). Only an approval opens parts of the private ranges.
//!
//! An IPv6 address that embeds an IPv4 address is either treated as that address (IPv4-mapped) or not dialled
//! at all, because a tunnel or translator on the way would reach the embedded address.

use crate::inside::{OURS_V4, OURS_V6};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedAddress {
    pub range: IpNet,
    pub what: &'static str,
}

impl fmt::Display for BlockedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.range)
    }
}

/// Whether an approval can open a part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Never,
    /// Networks that organisations assign addresses in themselves.
    ByApproval,
}

pub(crate) struct BlockedRange {
    range: IpNet,
    what: &'static str,
    opening: Opening,
}

const METADATA: &str = "metadata of a cloud";
const TUNNEL: &str = "an IPv4 address inside IPv6";

/// The first range that contains an address gives the reason, so single addresses come before the ranges that
/// contain them.
static ALWAYS_BLOCKED: &[BlockedRange] = &[
    never(v4(169, 254, 169, 254, 32), METADATA),
    never(v4(100, 100, 100, 200, 32), METADATA),
    // Azure's host agent hands out a machine's certificates, and its address is public.
    never(v4(168, 63, 129, 16, 32), METADATA),
    never(v4(0, 0, 0, 0, 8), "this host"),
    never(v4(127, 0, 0, 0, 8), "loopback"),
    never(v4(169, 254, 0, 0, 16), "link-local"),
    by_approval(v4(10, 0, 0, 0, 8), "private"),
    by_approval(v4(172, 16, 0, 0, 12), "private"),
    by_approval(v4(192, 168, 0, 0, 16), "private"),
    by_approval(v4(100, 64, 0, 0, 10), "carrier-grade NAT"),
    never(v4(192, 0, 0, 0, 24), "protocol assignments"),
    // Also the sandbox's own network: synthetic addresses are assigned from it.
    never(IpNet::V4(OURS_V4), "benchmarking"),
    never(v4(224, 0, 0, 0, 4), "multicast"),
    never(v4(255, 255, 255, 255, 32), "broadcast"),
    never(v4(240, 0, 0, 0, 4), "reserved"),
    never(v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), METADATA),
    never(v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), METADATA),
    never(IpNet::V6(OURS_V6), "the sandbox's own"),
    never(v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "this host"),
    never(v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    // IPv4-compatible (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052, RFC 8215), Teredo, 6to4.
    never(v6([0, 0, 0, 0, 0, 0, 0, 0], 96), TUNNEL),
    never(v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), TUNNEL),
    never(v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), TUNNEL),
    never(v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), TUNNEL),
    never(v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), TUNNEL),
    never(v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), TUNNEL),
    by_approval(v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "private"),
    never(v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    never(v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local"),
    never(v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
];

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length))
}

const fn v6(s: [u16; 8], length: u8) -> IpNet {
    let base = Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]);
    IpNet::V6(Ipv6Net::new_assert(base, length))
}

const fn never(range: IpNet, what: &'static str) -> BlockedRange {
    BlockedRange { range, what, opening: Opening::Never }
}

const fn by_approval(range: IpNet, what: &'static str) -> BlockedRange {
    BlockedRange { range, what, opening: Opening::ByApproval }
}

/// The blocked range that contains the address, if any. An approval may still open a private range.
pub fn always_blocked(address: IpAddr) -> Option<BlockedAddress> {
    find(address).map(|(blocked, _)| blocked)
}

/// All blocked ranges, for packet rules that reject them.
pub fn blocked_ranges() -> impl Iterator<Item = IpNet> {
    ALWAYS_BLOCKED.iter().map(|blocked| blocked.range)
}

/// The blocked ranges that an approval can open, in whole or in part.
pub fn private_ranges() -> impl Iterator<Item = IpNet> {
    let opens = |blocked: &&BlockedRange| blocked.opening == Opening::ByApproval;
    ALWAYS_BLOCKED.iter().filter(opens).map(|blocked| blocked.range)
}

pub(crate) fn find(address: IpAddr) -> Option<(BlockedAddress, Opening)> {
    let address = address.to_canonical();
    let found = ALWAYS_BLOCKED.iter().find(|blocked| blocked.range.contains(&address))?;
    Some((BlockedAddress { range: found.range, what: found.what }, found.opening))
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
