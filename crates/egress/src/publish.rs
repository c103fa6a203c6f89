//! Published ports: connections from the host into the sandbox, to published ports only (NET-9).
//!
//! A socket belongs to the namespace it was created in, so sockets for connections into the sandbox are created
//! inside and passed out. Must never connect to anything but the sandbox's own loopback.

use crate::accept;
use crate::config::Config;
use crate::engine::out_of_bytes;
use crate::engine::tunnel::{self, Insider, Meter};
use crate::error::{EgressError, While as _};
use crate::events::Events;
use crate::limits::Load;
use crate::line::{Line, line};
use crate::wire::EgressEvent;
use palisade_record::network::{ConnectionClosed, NetworkAction, NetworkAttempt, Via};
use palisade_sys::fdpass::recv_with_fds;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Resource, getrlimit};
use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream as StdStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The loopback inside answers immediately, unless its queue is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Descriptors used by one connection: two sockets, and a pipe for each direction.
pub const FILES_A_CONNECTION: u64 = 6;

/// A port of the host that is forwarded to a port inside.
#[derive(Debug)]
pub struct Published {
    pub listener: OwnedFd,
    pub inner: u16,
}

/// Connection to the process that creates sockets inside. It receives `4` or `6` and answers with a TCP socket
/// of that family.
#[derive(Debug)]
pub(crate) struct Maker {
    asking: Mutex<Asking>,
}

#[derive(Debug)]
struct Asking {
    line: Line,
    /// Answers not yet received. A caller that stops waiting leaves one behind.
    due: u32,
}

impl Maker {
    pub(crate) fn new(fd: OwnedFd) -> Result<Self, EgressError> {
        let line = line(fd).doing("use the maker's socket")?;
        Ok(Self { asking: Mutex::new(Asking { line, due: 0 }) })
    }

    async fn socket(&self, family: &[u8]) -> io::Result<TcpSocket> {
        let mut asking = self.asking.lock().await;
        asking.line.send(family).await.map_err(|_| gone())?;
        asking.due += 1;
        // Answers arrive in the order of the requests, so the last one is ours. A failed answer counts too.
        let answer = loop {
            let answer = asking.answer().await;
            asking.due -= 1;
            if asking.due == 0 {
                break answer?;
            }
        };
        let fd = answer
            .into_iter()
            .next()
            .ok_or_else(|| io::Error::other("no socket is left inside"))?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(TcpSocket::from_std_stream(StdStream::from(fd)))
    }

    async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = match self.socket(b"4").await?.connect(v4).await {
            Ok(stream) => stream,
            Err(refused) => {
                let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
                self.socket(b"6").await?.connect(v6).await.map_err(|_| refused)?
            }
        };
        tunnel::settle(&stream)?;
        Ok(stream)
    }
}

impl Asking {
    async fn answer(&self) -> io::Result<Vec<OwnedFd>> {
        let mut byte = [0; 1];
        let receive = || recv_with_fds(&self.line, &mut byte).map_err(|error| error.errno.into());
        let (length, fds) = self.line.async_io(Interest::READABLE, receive).await?;
        if length == 0 {
            return Err(gone());
        }
        Ok(fds)
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "what makes connections into the sandbox has ended")
}

/// State shared by all published ports.
#[derive(Debug)]
pub(crate) struct Inbound {
    events: Events,
    load: Rc<Load>,
    maker: Maker,
    /// `None` means no limit.
    most: Option<usize>,
    open: Cell<usize>,
}

impl Inbound {
    /// Incoming connections may use at most half of the connection limit and of the descriptors, so that they
    /// cannot block outgoing ones.
    pub(crate) fn new(
        events: Events,
        load: Rc<Load>,
        maker: OwnedFd,
        config: &Config,
    ) -> Result<Self, EgressError> {
        let descriptors =
            getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / FILES_A_CONNECTION;
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let share = (config.limits.connections.min(descriptors) / 2).max(1);
        let most = config.checks.bounded.then_some(share);
        Ok(Self { events, load, maker: Maker::new(maker)?, most, open: Cell::new(0) })
    }

    /// Reports if the process that creates sockets ends before the run does. Otherwise this would go unnoticed
    /// until the next connection, perhaps for hours.
    pub(crate) async fn watch(self: Rc<Self>, maker: OwnedFd) {
        let Ok(line) = line(maker) else { return };
        let end = || match recv(&line, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            // An answer for another task.
            Ok((1.., _)) => Err(io::ErrorKind::WouldBlock.into()),
            ended => ended.map(drop).map_err(io::Error::from),
        };
        let _ended = line.async_io(Interest::READABLE, end).await;
        self.events.tell(EgressEvent::Attempt(NetworkAttempt {
            action: NetworkAction::ProxyDenied,
            via: Via::Published,
            host: "(published ports)".to_owned(),
            address: None,
            port: 0,
            rule: None,
            allow: None,
            reason: Some(gone().to_string()),
            count: 1,
        }));
    }

    /// A slot for one more connection, if one is free.
    fn enter(self: &Rc<Self>) -> Option<InboundSlot> {
        let open = self.open.get();
        if self.most.is_some_and(|most| open >= most) {
            return None;
        }
        self.open.set(open + 1);
        Some(InboundSlot(Rc::clone(self)))
    }
}

struct InboundSlot(Rc<Inbound>);

impl Drop for InboundSlot {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
    }
}

/// Accepts connections from outside until the process ends.
pub(crate) async fn accept(inbound: Rc<Inbound>, listener: TcpListener, inner: u16) {
    loop {
        inbound.events.room().await;
        let (from, peer) = accept::next(&listener).await;
        let (events, load) = (inbound.events.clone(), Rc::clone(&inbound.load));
        let carried = Carried::new(events, load, peer, inner);
        if carried.left() == 0 {
            carried.tell_attempt(Some(out_of_bytes().to_string()));
            tunnel::reset(from);
            continue;
        }
        match inbound.enter() {
            Some(place) => drop(tokio::task::spawn_local(serve(place, from, carried))),
            None => {
                let most = inbound.most.unwrap_or_default();
                let reason =
                    format!("{most} connections by published ports are open, which is the limit");
                carried.tell_attempt(Some(reason));
                tunnel::reset(from);
            }
        }
    }
}

async fn serve(place: InboundSlot, from: TcpStream, carried: Carried) {
    let connected = timeout(CONNECT_LIMIT, place.0.maker.connect(carried.inner)).await;
    let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let reason = connected.as_ref().err().map(|error| format!("nobody answers inside: {error}"));
    carried.tell_attempt(reason);
    match connected {
        Ok(inside) => {
            let ended = tunnel::relay(from, inside, &[], &carried).await;
            let spent = ended.err().filter(|error| error.kind() == io::ErrorKind::QuotaExceeded);
            if let Some(spent) = spent {
                carried.tell_attempt(Some(spent.to_string()));
            }
            carried.tell_closed();
        }
        Err(_) => tunnel::reset(from),
    }
}

/// Counts the bytes of a published port in both directions. Both count against the byte limit.
struct Carried {
    events: Events,
    load: Rc<Load>,
    peer: SocketAddr,
    inner: u16,
    since: Instant,
    /// Into the sandbox.
    inwards: Cell<u64>,
    outwards: Cell<u64>,
}

impl Carried {
    fn new(events: Events, load: Rc<Load>, peer: SocketAddr, inner: u16) -> Self {
        let (inwards, outwards) = (Cell::new(0), Cell::new(0));
        Self { events, load, peer, inner, since: Instant::now(), inwards, outwards }
    }

    fn carried(&self, bytes: u64) -> io::Result<()> {
        if self.load.carry(bytes) { Ok(()) } else { Err(out_of_bytes()) }
    }

    fn tell_attempt(&self, reason: Option<String>) {
        let action =
            if reason.is_none() { NetworkAction::ProxyAllowed } else { NetworkAction::ProxyDenied };
        self.events.tell(EgressEvent::Attempt(NetworkAttempt {
            action,
            via: Via::Published,
            host: self.peer.ip().to_string(),
            address: Some(self.peer.ip()),
            port: self.inner,
            rule: None,
            allow: None,
            reason,
            count: 1,
        }));
    }

    fn tell_closed(&self) {
        let duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.events.tell(EgressEvent::Closed(ConnectionClosed {
            via: Via::Published,
            host: self.peer.ip().to_string(),
            address: Some(self.peer.ip()),
            port: self.inner,
            sent: self.outwards.get(),
            received: self.inwards.get(),
            duration_ms,
            count: 1,
        }));
    }
}

impl Meter for Carried {
    fn sent(&self, bytes: u64) -> io::Result<()> {
        self.inwards.set(self.inwards.get().saturating_add(bytes));
        self.carried(bytes)
    }

    fn received(&self, bytes: u64) -> io::Result<()> {
        self.outwards.set(self.outwards.get().saturating_add(bytes));
        self.carried(bytes)
    }

    fn left(&self) -> u64 {
        self.load.left()
    }

    fn insider(&self) -> Insider {
        Insider::Upstream
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
