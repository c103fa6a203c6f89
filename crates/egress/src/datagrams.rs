//! What the packet filter inside rejected: datagrams and everything else that is neither TCP nor a look-up.
//! The kernel counts; here it is only read and told, a sum for each destination (N12).

use crate::events::Events;
use crate::wire::Told;
use palisade_netlink::{Refusal, Socket};
use palisade_record::network::{Action, NetworkAttempt, Via};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// While nothing changes a look costs one small message.
const LOOK_SELDOM: Duration = Duration::from_secs(5);

pub(crate) struct Counters {
    socket: Socket,
    told: RefCell<Counts>,
}

/// Packets by destination, and those to destinations that the kernel did not remember.
type Counts = BTreeMap<Option<(IpAddr, u16, u8)>, u64>;

impl Counters {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket: Socket::from(socket), told: RefCell::default() }
    }

    pub(crate) async fn watch(self: Rc<Self>, events: Events) {
        loop {
            let changed = self.tell_new(&events);
            sleep(if changed { LOOK_EVERY } else { LOOK_SELDOM }).await;
        }
    }

    /// Tells what came since the last look. Whether something did.
    pub(crate) fn tell_new(&self, events: &Events) -> bool {
        // The namespace is gone, and with it everybody who could be refused something.
        let Ok(refusals) = palisade_netlink::refusals(&self.socket) else { return false };
        let attempts =
            new_attempts(&mut self.told.borrow_mut(), &refusals.destinations, refusals.packets);
        let changed = !attempts.is_empty();
        for attempt in attempts {
            events.tell(Told::Attempt(attempt));
        }
        changed
    }
}

fn new_attempts(told: &mut Counts, destinations: &[Refusal], packets: u64) -> Vec<NetworkAttempt> {
    let known: u64 = destinations.iter().map(|refusal| refusal.packets).sum();
    let by_destination = destinations
        .iter()
        .map(|refusal| (Some((refusal.address, refusal.port, refusal.protocol)), refusal.packets));
    let others = std::iter::once((None, packets.saturating_sub(known)));
    let mut attempts = Vec::new();
    for (destination, packets) in by_destination.chain(others) {
        let before = told.insert(destination, packets).unwrap_or_default();
        if packets > before {
            attempts.push(attempt(destination, packets - before));
        }
    }
    attempts
}

fn attempt(destination: Option<(IpAddr, u16, u8)>, count: u64) -> NetworkAttempt {
    let address = destination.map(|(address, ..)| address);
    let (port, protocol) = destination.map_or((0, 0), |(_, port, protocol)| (port, protocol));
    NetworkAttempt {
        action: Action::ProxyDenied,
        via: Via::Datagram,
        host: address.map_or_else(|| "(others)".to_owned(), |address| address.to_string()),
        address,
        port,
        rule: None,
        allow: None,
        reason: Some(format!("only TCP and look-ups get out, not {}", protocol_name(protocol))),
        count,
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
