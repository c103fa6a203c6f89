//! Whether an address belongs to this host: a connection to it would bypass the host's firewall.
//!
//! The kernel is asked each time, because a host's addresses change while a proxy serves. Must be created
//! before the process is confined: such a socket cannot be opened later.

use crate::engine::dial::is_of_this_host;
use palisade_hosts::{BlockedAddress, IpNet};
use palisade_netlink::{Socket, is_local};
use std::net::{IpAddr, SocketAddr};

/// Arbitrary: nothing is sent to it.
const ANY_PORT: u16 = 9;

#[derive(Debug)]
pub(crate) struct OwnAddresses {
    /// `None` if the kernel does not provide such a socket. Then a bind decides.
    routes: Option<Socket>,
}

impl OwnAddresses {
    pub(crate) fn new() -> Self {
        Self { routes: Socket::route().ok() }
    }

    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        let event = self.routes.as_ref().and_then(|routes| is_local(routes, address).ok());
        event.unwrap_or_else(|| is_of_this_host(SocketAddr::new(address, ANY_PORT)))
    }

    pub(crate) fn check(&self, address: IpAddr) -> Result<(), BlockedAddress> {
        if self.holds(address) {
            return Err(BlockedAddress {
                range: IpNet::from(address),
                what: "an address of this host",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_addresses_are_known() {
        for own in [OwnAddresses::new(), OwnAddresses { routes: None }] {
            for address in ["127.0.0.1", "127.1.2.3"] {
                assert!(own.holds(address.parse().unwrap()), "{address}");
            }
            for address in ["192.0.2.77", "2001:db8:77::1"] {
                assert!(!own.holds(address.parse().unwrap()), "{address}");
            }
        }
    }
}
