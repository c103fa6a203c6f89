//! The addresses reserved for a sandbox's network. The code that sets the network up, serves it or configures
//! programs for it takes them from here. None of them is ever dialled.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reserved for benchmarking (RFC 2544): not routed on the internet.
pub const OURS_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
/// A unique local range (RFC 4193).
pub const OURS_V6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 0), 48);
/// The half of [`OURS_V4`] that veth pairs are numbered from. The egress process uses the other half.
pub const VETH_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 19, 0, 0), 16);
/// Where the resolver and the explicit proxy listen.
pub const INSIDE_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub const INSIDE_V6: Ipv6Addr = Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 1);
/// The port of the explicit proxy.
pub const PROXY_PORT: u16 = 3128;

/// Whether the address is in one of the ranges above: an address in a sandbox's network, or a synthetic address
/// that stands for a name there.
pub fn is_ours(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => OURS_V4.contains(&address),
        IpAddr::V6(address) => OURS_V6.contains(&address),
    }
}

#[cfg(test)]
#[path = "inside_tests.rs"]
mod tests;
