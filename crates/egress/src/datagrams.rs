//! What the packet filter inside rejected: datagrams and everything else that is neither TCP nor a DNS query
//! or, with NAT, packets to blocked addresses. The kernel counts; this module reads the counters and reports a
//! sum for each destination (N12).

use crate::events::Events;
use crate::wire::EgressEvent;
use palisade_hosts::{Reason, always_blocked};
use palisade_netlink::{Refusals, Socket};
use palisade_record::network::{NetworkAction, NetworkAttempt, OTHERS, Via};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// While the counters do not change; reading them then costs one small message.
const LOOK_SELDOM: Duration = Duration::from_secs(5);

/// Which packets the filter rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// All except TCP and DNS queries, which reach our listeners.
    Protocols,
    /// Packets to blocked addresses. There are no listeners: everything else leaves through NAT.
    Addresses,
}

pub(crate) struct Counters {
    socket: Socket,
    refused: Refused,
    event: RefCell<Counts>,
}

/// Address, port and protocol.
type Destination = (IpAddr, u16, u8);
/// Packets by destination. `None` counts those to destinations that the kernel did not record.
type Counts = BTreeMap<Option<Destination>, u64>;

impl Counters {
    pub(crate) fn new(socket: OwnedFd, refused: Refused) -> Self {
        Self { socket: Socket::from(socket), refused, event: RefCell::default() }
    }

    pub(crate) async fn watch(self: Rc<Self>, events: Events) {
        loop {
            let changed = self.tell_new(&events);
            sleep(if changed { LOOK_EVERY } else { LOOK_SELDOM }).await;
        }
    }

    /// Reports what was rejected since the last call. Returns whether there was anything.
    pub(crate) fn tell_new(&self, events: &Events) -> bool {
        // The namespace is gone, and with it every process whose packets could be rejected.
        let Ok(refusals) = palisade_netlink::refusals(&self.socket) else { return false };
        let new = new_packets(&mut self.event.borrow_mut(), &refusals);
        let attempts = new.into_iter().map(|(to, packets)| attempt(self.refused, to, packets));
        attempts.map(|attempt| events.tell(EgressEvent::Attempt(attempt))).count() > 0
    }
}

fn new_packets(event: &mut Counts, refusals: &Refusals) -> Vec<(Option<Destination>, u64)> {
    let Refusals { destinations, packets } = refusals;
    let known: u64 = destinations.iter().map(|refusal| refusal.packets).sum();
    let by_destination = destinations
        .iter()
        .map(|refusal| (Some((refusal.address, refusal.port, refusal.protocol)), refusal.packets));
    let others = std::iter::once((None, packets.saturating_sub(known)));
    let mut new = Vec::new();
    for (destination, packets) in by_destination.chain(others) {
        let before = event.insert(destination, packets).unwrap_or_default();
        if packets > before {
            new.push((destination, packets - before));
        }
    }
    new
}

fn attempt(refused: Refused, destination: Option<Destination>, count: u64) -> NetworkAttempt {
    let address = destination.map(|(address, ..)| address);
    let (port, protocol) = destination.map_or((0, 0), |(_, port, protocol)| (port, protocol));
    let (via, reason) = match refused {
        Refused::Protocols => (
            Via::Datagram,
            format!("only TCP and look-ups get out, not {}", protocol_name(protocol)),
        ),
        Refused::Addresses => (Via::Transparent, why_blocked(address)),
    };
    NetworkAttempt {
        action: NetworkAction::ProxyDenied,
        via,
        host: address.map_or_else(|| OTHERS.to_owned(), |address| address.to_string()),
        address,
        port,
        rule: None,
        allow: None,
        reason: Some(reason),
        count,
    }
}

fn why_blocked(address: Option<IpAddr>) -> String {
    match address.and_then(always_blocked) {
        Some(blocked) => Reason::Address(blocked).to_string(),
        None => "an address of the host, or one that the policy denies".to_owned(),
    }
}

/// As in `/etc/protocols`.
fn protocol_name(protocol: u8) -> String {
    match protocol {
        0 => "this".to_owned(),
        1 => "ICMP".to_owned(),
        17 => "UDP".to_owned(),
        58 => "ICMPv6".to_owned(),
        132 => "SCTP".to_owned(),
        other => format!("protocol {other}"),
    }
}

#[cfg(test)]
#[path = "datagrams_tests.rs"]
mod tests;
