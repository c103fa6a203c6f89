//! Addresses that are ours in a sandbox's network: those who set it up, those who serve it and those who tell programs of it
//! have them from here.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The resolver and the explicit proxy answer here. Part of the range that is set apart for measuring networks
/// (RFC 2544), which leads nowhere on the internet.
pub const INSIDE_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The same for IPv6, in a local range (RFC 4193), which is never dialled.
pub const INSIDE_V6: Ipv6Addr = Ipv6Addr::new(0xfd53, 0x616e, 0x6442, 0, 0, 0, 0, 1);
/// Where programs that know of proxies find one.
pub const PROXY_PORT: u16 = 3128;
