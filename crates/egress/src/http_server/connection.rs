//! Both ends of a connection: waiting for a head, and forwarding a body from one to the other.

use super::answer::{self, Shape};
use crate::config::Config;
use crate::engine::Admitted;
use crate::engine::tunnel;
use crate::http::body::{Body, BodyFault, Frames};
use crate::http::head::{self, MAX_HEAD_BYTES, Parsed, RequestHead};
use crate::http::incoming::Incoming;
use std::future::{Future, pending};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// How long a client may still send after the last response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Connection<R, W> {
    pub(crate) incoming: Incoming<R>,
    pub(crate) outgoing: W,
}

pub(crate) type Plain = Connection<OwnedReadHalf, OwnedWriteHalf>;

impl Plain {
    pub(crate) fn over(stream: TcpStream, first: Vec<u8>) -> Self {
        let (reader, outgoing) = stream.into_split();
        Self { incoming: Incoming::new(reader, first), outgoing }
    }

    /// The stream, and the bytes that were read from it and not taken.
    pub(crate) fn into_stream(self) -> io::Result<(TcpStream, Vec<u8>)> {
        let (reader, rest) = self.incoming.into_parts();
        let stream = reader.reunite(self.outgoing).map_err(io::Error::other)?;
        Ok((stream, rest))
    }

    /// Returns when the client has hung up. Until then, keeps what it sends, up to the maximum length of a head.
    pub(crate) async fn until_gone(&mut self) {
        while self.incoming.bytes().len() <= MAX_HEAD_BYTES {
            if !matches!(self.incoming.fill().await, Ok(1..)) {
                return;
            }
        }
        pending::<()>().await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<ReadHalf<S>, WriteHalf<S>> {
    pub(crate) fn of(stream: S) -> Self {
        let (reader, outgoing) = tokio::io::split(stream);
        Self { incoming: Incoming::new(reader, Vec::new()), outgoing }
    }
}

/// Why there is no head.
#[derive(Debug)]
pub(crate) enum NoHead {
    /// The client has closed the connection; nothing to answer.
    Gone,
    /// The last response to the client.
    Answer(Vec<u8>),
}

/// How a client's connection ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// The last response is complete.
    Close,
    Words(Vec<u8>),
    /// A response is incomplete and must never look complete.
    Cut,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Way> Connection<R, W> {
    /// Takes the next head. Its first byte may arrive at any time; the rest must arrive within the time limit.
    pub(crate) async fn next_head(&mut self, config: &Config) -> Result<Box<RequestHead>, NoHead> {
        self.incoming.settle();
        if self.incoming.bytes().is_empty() {
            self.more().await?;
        }
        let head = within(config, self.whole_head()).await.unwrap_or_else(|| {
            Err(NoHead::Answer(answer::bad(408, "the head did not come in time", Shape::Whole)))
        });
        let mut head = head?;
        if config.checks.strict_http {
            head.end_connection_if_it_has_a_body();
        }
        Ok(head)
    }

    async fn whole_head(&mut self) -> Result<Box<RequestHead>, NoHead> {
        let mut read = 0;
        loop {
            let bytes = self.incoming.bytes();
            // Only a line ending can complete the head. A client that sends byte by byte must not cause the
            // whole head to be parsed again for each of them.
            let worth = read == 0 || bytes[read..].contains(&b'\n') || bytes.len() > MAX_HEAD_BYTES;
            read = bytes.len();
            match if worth { head::parse(bytes) } else { Parsed::NeedMore } {
                Parsed::Head(head) => {
                    self.incoming.take(head.size);
                    return Ok(head);
                }
                Parsed::Bad(fault) => return Err(NoHead::Answer(answer::fault(fault))),
                Parsed::NeedMore => self.more().await?,
            }
        }
    }

    async fn more(&mut self) -> Result<(), NoHead> {
        match self.incoming.fill().await {
            Ok(0) | Err(_) => Err(NoHead::Gone),
            Ok(_) => Ok(()),
        }
    }

    pub(crate) async fn end(self, last: Last) {
        match last {
            Last::Close => self.finish(b"").await,
            Last::Words(words) => self.finish(&words).await,
            Last::Cut => self.outgoing.cut(),
        }
    }

    /// Sends the last response and closes. Reads for a while what the client still sends: closing with unread
    /// bytes would reset the connection, and the client might never see the response.
    pub(crate) async fn finish(mut self, last: &[u8]) {
        let said = async {
            self.outgoing.write_all(last).await?;
            self.outgoing.shutdown().await?;
            loop {
                let unread = self.incoming.bytes().len();
                self.incoming.take(unread);
                if self.incoming.fill().await? == 0 {
                    return io::Result::Ok(());
                }
            }
        };
        // The connection ends, whether the client has read the response or not.
        let _ = timeout(CLOSE_TIMEOUT, said).await;
    }
}

/// Limits `work` to the time that a head may take.
pub(crate) async fn within<T>(config: &Config, work: impl Future<Output = T>) -> Option<T> {
    if config.checks.bounded {
        timeout(config.limits.head, work).await.ok()
    } else {
        Some(work.await)
    }
}

#[derive(Debug)]
pub(crate) enum Broken {
    /// The sender closed the connection.
    Reading,
    Fault(BodyFault),
    /// The receiver closed the connection, or the byte limit is reached.
    Writing(io::Error),
}

/// The direction that is read.
pub(crate) trait Readable: AsyncRead + Unpin + Way {}
impl<T: AsyncRead + Unpin + Way> Readable for T {}

/// The direction that is written.
pub(crate) trait Writable: AsyncWrite + Unpin + Way {}
impl<T: AsyncWrite + Unpin + Way> Writable for T {}

/// One direction of a connection, which may be a plain socket.
pub(crate) trait Way {
    /// The socket, if its bytes can be forwarded without inspection.
    fn socket(&self) -> Option<&TcpStream> {
        None
    }

    /// Ends it so that it does not look like an orderly end. TLS needs nothing: a missing `close_notify` shows
    /// it.
    fn cut(self)
    where
        Self: Sized,
    {
    }
}

impl Way for OwnedReadHalf {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self.as_ref())
    }
}

impl Way for OwnedWriteHalf {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self.as_ref())
    }

    fn cut(self) {
        // If this fails, the connection is closed normally, which is all that can be done.
        let _ = self.as_ref().set_zero_linger();
        // Dropping it would send an orderly end first.
        self.forget();
    }
}

impl<S> Way for ReadHalf<S> {}
impl<S> Way for WriteHalf<S> {}

/// Forwards a body with new framing. `count` is called for every piece.
pub(crate) async fn pass_body<R: Readable, W: Writable>(
    incoming: &mut Incoming<R>,
    outgoing: &mut W,
    mut body: Body,
    frames: Frames,
    admitted: &Admitted,
    count: impl Fn(u64) -> io::Result<()>,
) -> Result<(), Broken> {
    while !body.is_done() {
        let plain =
            body.unframed().filter(|_| incoming.bytes().is_empty() && frames == Frames::Bare);
        if let (Some(most), Some(from), Some(to)) =
            (plain, incoming.reader().socket(), outgoing.socket())
        {
            // Which side failed no longer matters: the head is sent, and a partial body is useless.
            let passed =
                tunnel::pass(from, to, most, admitted, &count).await.map_err(Broken::Writing)?;
            match passed {
                0 => body.end().map_err(Broken::Fault)?,
                passed => body.passed(passed),
            }
            continue;
        }
        let piece = body.advance(incoming.bytes()).map_err(Broken::Fault)?;
        if piece.content > 0 {
            count(piece.content as u64).map_err(Broken::Writing)?;
            let content = &incoming.bytes()[piece.framing..piece.framing + piece.content];
            let written = match frames {
                Frames::Bare => outgoing.write_all(content).await,
                Frames::Chunks => outgoing.write_all(&Frames::chunk(content)).await,
            };
            written.map_err(Broken::Writing)?;
        }
        incoming.take(piece.framing + piece.content);
        let starved = piece.framing + piece.content == 0 && !body.is_done();
        if starved && incoming.fill().await.map_err(|_| Broken::Reading)? == 0 {
            body.end().map_err(Broken::Fault)?;
        }
    }
    outgoing.write_all(frames.at_the_end()).await.map_err(Broken::Writing)?;
    outgoing.flush().await.map_err(Broken::Writing)
}
