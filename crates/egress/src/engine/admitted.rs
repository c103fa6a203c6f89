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

/// Permission to connect. Dropping it ends the connection, and reports the bytes carried.
#[derive(Debug)]
pub struct Admitted {
    pub via: Via,
    pub host: Host,
    pub port: u16,
    /// Checked and pinned. Empty for names that an upstream proxy resolves.
    pub addresses: Vec<SocketAddr>,
    /// The CNAME targets of the host's name, also checked.
    pub(crate) aliases: Vec<Name>,
    /// The rule that allowed it, as it was written.
    pub rule: String,
    engine: Rc<Engine>,
    permit: Permit,
    since: Instant,
    sent: Cell<u64>,
    received: Cell<u64>,
    /// Whether the connection ends at the upstream proxy, which accepts requests but no tunnel.
    forwarded: Cell<bool>,
}

impl Admitted {
    /// Only the engine creates one, with addresses that it has checked.
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

    /// The engine that admitted it.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The destination that was requested.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { via: self.via, host: self.host.clone(), port: self.port }
    }

    /// Counts bytes sent to the host. Fails if the byte limit is exceeded.
    pub fn sent(&self, bytes: u64) -> io::Result<()> {
        self.sent.set(self.sent.get().saturating_add(bytes));
        self.carried(bytes)
    }

    /// Counts bytes received from the host.
    pub fn received(&self, bytes: u64) -> io::Result<()> {
        self.received.set(self.received.get().saturating_add(bytes));
        self.carried(bytes)
    }

    /// Records that the upstream proxy itself was dialled.
    pub(crate) fn forward(&self) {
        self.forwarded.set(true);
    }

    /// Whether only complete requests may be sent: anything else would address the upstream proxy itself.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.forwarded.get()
    }

    /// Neither side has sent anything yet: until then, another connection may displace this one.
    pub(crate) fn wait(&self) {
        self.permit.wait();
    }

    pub(crate) fn resume(&self) {
        self.permit.resume();
    }

    /// How many bytes may still be carried.
    pub fn left(&self) -> u64 {
        self.engine.load.left()
    }

    fn carried(&self, bytes: u64) -> io::Result<()> {
        if self.engine.load.carry(bytes) { Ok(()) } else { Err(out_of_bytes()) }
    }
}

/// The error of a relay when the byte limit is reached.
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

/// Reports it if the byte limit ended the connection.
pub(crate) fn tell_if_spent(engine: &Engine, admitted: &Admitted, carried: io::Result<()>) {
    if let Err(error) = carried
        && error.kind() == io::ErrorKind::QuotaExceeded
    {
        engine.spent(admitted);
    }
}
