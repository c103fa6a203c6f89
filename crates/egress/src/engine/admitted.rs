//! An open outgoing connection: its destination, what it carried, and the event that reports its end.

use crate::engine::Engine;
use crate::limits::Permit;
use crate::lookup::Resolved;
use crate::refused::Wanted;
use crate::wire::EgressEvent;
use palisade_hosts::{Host, Name};
use palisade_record::network::{ConnectionClosed, Via};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

/// May go there. Dropped, it is over, which is told with what was carried.
#[derive(Debug)]
pub struct Admitted {
    pub via: Via,
    pub host: Host,
    pub port: u16,
    /// Checked, and pinned. Empty for names that an upstream proxy looks up.
    pub addresses: Vec<SocketAddr>,
    /// The names that the host's is an alias of, checked too.
    pub(crate) aliases: Vec<Name>,
    /// The rule that allowed it, as it was written.
    pub rule: String,
    engine: Rc<Engine>,
    permit: Permit,
    since: Instant,
    sent: Cell<u64>,
    received: Cell<u64>,
    /// Whether the connection ends at the upstream proxy, which takes requests but makes no tunnel.
    forwarded: Cell<bool>,
}

impl Admitted {
    /// Only the engine makes one, of addresses that it checked.
    pub(crate) fn new(
        engine: &Rc<Engine>,
        wanted: &Wanted,
        resolved: Resolved,
        rule: String,
        permit: Permit,
    ) -> Self {
        let at_port = |address| SocketAddr::new(address, wanted.port);
        Self {
            via: wanted.via,
            host: wanted.host.clone(),
            port: wanted.port,
            addresses: resolved.addresses.into_iter().map(at_port).collect(),
            aliases: resolved.aliases,
            rule,
            engine: Rc::clone(engine),
            permit,
            since: Instant::now(),
            sent: Cell::new(0),
            received: Cell::new(0),
            forwarded: Cell::new(false),
        }
    }

    /// The one that admitted it.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What was asked for when it was admitted.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { via: self.via, host: self.host.clone(), port: self.port }
    }

    /// Counts what went to the host. An error: that was more than may be carried.
    pub fn sent(&self, bytes: u64) -> io::Result<()> {
        self.sent.set(self.sent.get().saturating_add(bytes));
        self.carried(bytes)
    }

    /// Counts what came from the host.
    pub fn received(&self, bytes: u64) -> io::Result<()> {
        self.received.set(self.received.get().saturating_add(bytes));
        self.carried(bytes)
    }

    /// What was dialled is the upstream proxy itself.
    pub(crate) fn forward(&self) {
        self.forwarded.set(true);
    }

    /// Whether only whole requests may go there: anything else would speak to the upstream proxy itself.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.forwarded.get()
    }

    /// Neither side has said anything yet: until it does, others may take this connection's place.
    pub(crate) fn wait(&self) {
        self.permit.wait();
    }

    pub(crate) fn resume(&self) {
        self.permit.resume();
    }

    /// So many bytes may still be carried.
    pub fn left(&self) -> u64 {
        self.engine.load.left()
    }

    fn carried(&self, bytes: u64) -> io::Result<()> {
        if self.engine.load.carry(bytes) { Ok(()) } else { Err(out_of_bytes()) }
    }
}

/// What a relay ends with when the limit of bytes is reached.
pub fn out_of_bytes() -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, "the limit of bytes is reached")
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.engine.events.tell(EgressEvent::Closed(ConnectionClosed {
            via: self.via,
            host: self.host.to_string(),
            address: self.addresses.first().map(SocketAddr::ip),
            port: self.port,
            sent: self.sent.get(),
            received: self.received.get(),
            duration_ms,
            count: 1,
        }));
    }
}

/// What ended it may be the limit of bytes, which people hear of.
pub(crate) fn tell_if_spent(engine: &Engine, admitted: &Admitted, carried: io::Result<()>) {
    if let Err(error) = carried
        && error.kind() == io::ErrorKind::QuotaExceeded
    {
        engine.spent(admitted);
    }
}
