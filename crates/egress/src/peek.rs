//! Reads what a client sends first, before a byte of it is forwarded.
//!
//! HTTP and TLS name their host, so they are distinguished from everything else here. In doubt the bytes are
//! HTTP: the strict parser may refuse them, which does no harm. Classifying them as something else could,
//! because a lenient server might find a request in them.

use crate::opening::{Opening, SoFar, look};
use crate::sni::{self, Hello};
use palisade_hosts::Host;
use std::io;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

/// A ClientHello split into many records is longer than one in a single record, but not by this much.
const MAX_BYTES: usize = 2 * sni::MAX_HELLO_BYTES;
const CHUNK: usize = 4 * 1024;
/// A client with more to send sends it by then; long enough for a line written in two pieces.
const PAUSE: Duration = Duration::from_millis(50);

/// Up to this length, inspection is cheap and needs no pause.
const CHEAP: usize = 2 * 1024;
/// Pause for each [`CHEAP`] bytes: for one client, at most 16 MiB per second are inspected.
const PAUSE_FOR_EACH: Duration = Duration::from_micros(125);
/// Inspecting again before the pause is over requires this fraction of new bytes.
const MORE: usize = 8;

/// The protocol of the first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolKind {
    Http,
    /// TLS, with the server name.
    Tls(Option<Host>),
    Other,
    /// Not a request or a ClientHello so far, followed by silence or by bytes that are not text. Further bytes
    /// may still make it one.
    Unclear,
    /// Invalid TLS, or bytes that arrive too slowly to classify.
    Bad(&'static str),
}

/// The first bytes of a client.
#[derive(Debug, Default)]
pub struct First {
    pub bytes: Vec<u8>,
    /// The client has ended its side.
    ended: bool,
    /// The time of the last inspection, and the length then.
    looked: Option<(Instant, usize)>,
}

impl First {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Reads until the protocol is known, or until a client waits for an answer to bytes that are still
    /// unclear. The first byte may take any time; the rest must arrive within `limit`. Cancel-safe: what was
    /// read is kept.
    pub async fn decide(
        &mut self,
        client: &TcpStream,
        limit: Option<Duration>,
    ) -> io::Result<ProtocolKind> {
        if self.bytes.is_empty() && !self.ended {
            self.read(client).await?;
        }
        let deciding = async {
            loop {
                self.pace(client).await?;
                match see(&self.bytes) {
                    Seen::Is(kind) => return Ok(kind),
                    Seen::Not(so_far) if self.ended => return Ok(so_far.at_the_end()),
                    Seen::Not(NotYet::Tls) => self.read(client).await?,
                    Seen::Not(NotYet::Request(SoFar::MayPass)) => return Ok(ProtocolKind::Unclear),
                    Seen::Not(NotYet::Request(_)) => {
                        match timeout(PAUSE, self.read(client)).await {
                            Ok(read) => read?,
                            Err(_silence) => return Ok(ProtocolKind::Unclear),
                        }
                    }
                }
            }
        };
        match limit {
            None => deciding.await,
            Some(limit) => {
                let late = ProtocolKind::Bad("first bytes that come too slowly");
                timeout(limit, deciding).await.unwrap_or(Ok(late))
            }
        }
    }

    /// Each inspection reads all bytes again. A client that sends them one at a time must not delay other
    /// connections. So bytes are collected first: for a time in proportion to the cost of the last inspection,
    /// or until there are considerably more.
    async fn pace(&mut self, client: &TcpStream) -> io::Result<()> {
        if let Some((when, size)) = self.looked.filter(|(_, size)| *size > CHEAP) {
            let due = when + pause_after(size);
            while !self.ended && self.bytes.len() < size + size / MORE {
                match timeout_at(due.into(), self.read(client)).await {
                    Ok(read) => read?,
                    Err(_due) => break,
                }
            }
        }
        self.looked = Some((Instant::now(), self.bytes.len()));
        Ok(())
    }

    /// Returns when the client has ended its side. Keeps what it sends until then, up to a limit.
    pub async fn end(&mut self, client: &TcpStream) {
        while !self.ended {
            if self.bytes.len() > MAX_BYTES {
                return std::future::pending().await;
            }
            if self.read(client).await.is_err() {
                return;
            }
        }
    }

    /// Waits for more bytes or the end.
    pub async fn read(&mut self, client: &TcpStream) -> io::Result<()> {
        self.bytes.reserve(CHUNK);
        loop {
            client.readable().await?;
            match client.try_read_buf(&mut self.bytes) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The pause after an inspection of `size` bytes.
fn pause_after(size: usize) -> Duration {
    PAUSE_FOR_EACH * u32::try_from(size / CHEAP).unwrap_or(u32::MAX)
}

/// `None` if more bytes are needed.
pub fn classify(bytes: &[u8]) -> Option<ProtocolKind> {
    match see(bytes) {
        Seen::Is(kind) => Some(kind),
        Seen::Not(_) => None,
    }
}

/// The protocol of the bytes, or what they may become.
enum Seen {
    Is(ProtocolKind),
    Not(NotYet),
}

#[derive(Clone, Copy)]
enum NotYet {
    Tls,
    Request(SoFar),
}

fn see(bytes: &[u8]) -> Seen {
    let not_yet = match sni::server_name(bytes) {
        Hello::Name(host) => return Seen::Is(ProtocolKind::Tls(host)),
        Hello::Bad(why) => return Seen::Is(ProtocolKind::Bad(why)),
        Hello::NeedMore if bytes.is_empty() => NotYet::Request(SoFar::Word),
        Hello::NeedMore => NotYet::Tls,
        Hello::NotTls => match look(bytes) {
            Opening::Request => return Seen::Is(ProtocolKind::Http),
            Opening::NoRequest => return Seen::Is(ProtocolKind::Other),
            Opening::Open(so_far) => NotYet::Request(so_far),
        },
    };
    let is_bounded = matches!(not_yet, NotYet::Request(SoFar::MayPass));
    if bytes.len() > MAX_BYTES && !is_bounded {
        return Seen::Is(ProtocolKind::Bad("a beginning without an end"));
    }
    Seen::Not(not_yet)
}

impl NotYet {
    /// The protocol if no further bytes follow.
    fn at_the_end(self) -> ProtocolKind {
        match self {
            Self::Request(SoFar::Word | SoFar::MayPass) => ProtocolKind::Other,
            Self::Request(SoFar::Line) => ProtocolKind::Bad("a line without an end"),
            Self::Tls => ProtocolKind::Bad("TLS that ends within its greeting"),
        }
    }
}

#[cfg(test)]
#[path = "peek_tests.rs"]
mod tests;
