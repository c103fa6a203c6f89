//! Addresses that are ours in a sandbox's network: those who set it up, those who serve it and those who tell programs of it
//! have them from here. None of them is ever dialled.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Set apart for measuring networks (RFC 2544): it leads nowhere on the internet.
pub const OURS_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
/// A local range (RFC 4193).
pub const OURS_V6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 0), 48);
/// The half of ours that pairs of interfaces are numbered from; the egress process has the other.
pub const VETH_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 19, 0, 0), 16);
/// The resolver and the explicit proxy answer here.
pub const INSIDE_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub const INSIDE_V6: Ipv6Addr = Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 1);
/// Where programs that know of proxies find one.
pub const PROXY_PORT: u16 = 3128;

/// Of the ranges above: the address of something in a sandbox's network, or one that stands for a name there.
pub fn is_ours(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => OURS_V4.contains(&address),
        IpAddr::V6(address) => OURS_V6.contains(&address),
    }
}

#[cfg(test)]
#[path = "inside_tests.rs"]
mod tests;
