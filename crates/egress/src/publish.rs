//! Published ports: connections from the host into the sandbox. Only what was published leads in (NET-9).
//!
//! A socket belongs to the namespace that it was made in, so those that lead in are made inside and handed
//! out. Must never connect to anything but the sandbox's own loopback.

use crate::accept;
use crate::error::{EgressError, While as _};
use crate::events::Events;
use crate::line::{Line, line};
use crate::tunnel::{self, Meter};
use crate::wire::Told;
use palisade_record::network::{Action, ConnectionClosed, NetworkAttempt, Via};
use palisade_sys::fdpass::recv_with_fds;
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

/// The loopback inside answers at once, or is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A port of the host that leads to one inside.
#[derive(Debug)]
pub struct Published {
    pub listener: OwnedFd,
    pub inner: u16,
}

/// The one that makes sockets inside: it is sent `4` or `6` and answers with a TCP socket of that family.
#[derive(Debug)]
pub(crate) struct Maker {
    asking: Mutex<Asking>,
}

#[derive(Debug)]
struct Asking {
    line: Line,
    /// Answers that have not come yet. Whoever waits no more leaves one behind.
    due: u32,
}

impl Maker {
    pub(crate) fn new(fd: OwnedFd) -> Result<Self, EgressError> {
        let line = line(fd).doing("use the maker's socket")?;
        Ok(Self { asking: Mutex::new(Asking { line, due: 0 }) })
    }

    async fn socket(&self, family: &[u8]) -> io::Result<TcpSocket> {
        let mut asking = self.asking.lock().await;
        asking.line.send(family).await?;
        asking.due += 1;
        // They come in the order they were asked for, so the last one is ours.
        let fds = loop {
            let fds = asking.answer().await?;
            asking.due -= 1;
            if asking.due == 0 {
                break fds;
            }
        };
        let fd = fds.into_iter().next().ok_or(io::ErrorKind::UnexpectedEof)?;
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
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(fds)
    }
}

/// Takes connections from outside until the process ends.
pub(crate) async fn accept(events: Events, listener: TcpListener, inner: u16, maker: Rc<Maker>) {
    loop {
        let (from, peer) = accept::next(&listener).await;
        let serving = serve(events.clone(), from, peer, inner, Rc::clone(&maker));
        tokio::task::spawn_local(serving);
    }
}

async fn serve(events: Events, from: TcpStream, peer: SocketAddr, inner: u16, maker: Rc<Maker>) {
    events.room().await;
    let connected = timeout(CONNECT_LIMIT, maker.connect(inner)).await;
    let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let carried = Carried::new(events, peer, inner);
    let reason = connected.as_ref().err().map(|error| format!("nobody answers inside: {error}"));
    carried.tell_attempt(reason);
    match connected {
        Ok(inside) => {
            // How it ended is in what was carried.
            let _ended = tunnel::relay(from, inside, &[], &carried).await;
            carried.tell_closed();
        }
        Err(_) => tunnel::reset(from),
    }
}

/// Counts what comes in by a published port, which no limit of the way out bounds.
struct Carried {
    events: Events,
    peer: SocketAddr,
    inner: u16,
    since: Instant,
    /// Into the sandbox.
    inwards: Cell<u64>,
    outwards: Cell<u64>,
}

impl Carried {
    fn new(events: Events, peer: SocketAddr, inner: u16) -> Self {
        let (inwards, outwards) = (Cell::new(0), Cell::new(0));
        Self { events, peer, inner, since: Instant::now(), inwards, outwards }
    }

    fn tell_attempt(&self, reason: Option<String>) {
        let action = if reason.is_none() { Action::ProxyAllowed } else { Action::ProxyDenied };
        self.events.tell(Told::Attempt(NetworkAttempt {
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
        self.events.tell(Told::Closed(ConnectionClosed {
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
        Ok(())
    }

    fn received(&self, bytes: u64) -> io::Result<()> {
        self.outwards.set(self.outwards.get().saturating_add(bytes));
        Ok(())
    }

    fn left(&self) -> u64 {
        u64::MAX
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
