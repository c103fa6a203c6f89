//! What one client may use of the service, and how long it may take: numbers, and the stream that gives up on a client that
//! does not take what it is sent.

use axum::body::BodyDataStream;
use futures_util::StreamExt as _;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Of a request.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;
/// Of a file that is written.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;
/// Of all headers of a request together. hyper's own least is 8 KiB.
pub(crate) const MAX_HEADER_BYTES: usize = 16 << 10;
/// For the head of a request, which is also how long a connection may be idle; for its body; and for taking something of the answer.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections at once. Further ones wait to be accepted. With everything that one of them may have open, this many stay below
/// 1024 descriptors.
pub(crate) const MAX_CONNECTIONS: usize = 256;
/// Answers at once that go on until somebody ends them.
pub(crate) const MAX_STREAMS: usize = 96;
/// Commands at once whose end a request waits for.
pub(crate) const MAX_WAITING_COMMANDS: usize = 64;
/// Processes of ours at once.
pub(crate) const MAX_PROGRAMS: usize = 16;
/// How long a request waits for one of these places.
pub(crate) const PLACE_TIMEOUT: Duration = Duration::from_secs(30);
/// What requests may take when the server ends.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// A stream without events says that it is there.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Of a body that nobody wants, what is read nevertheless, and for how long. A connection whose request was not read to its end is
/// closed after the answer, and the client may be about to use it again.
const MAX_DRAINED: usize = 1 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the rest of a body, within limits.
pub(crate) async fn drain(mut parts: BodyDataStream) {
    let mut left = MAX_DRAINED;
    let rest = async {
        while let Some(Ok(part)) = parts.next().await {
            match left.checked_sub(part.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    // Who sends on and on is cut off.
    let _ = timeout(DRAIN_TIMEOUT, rest).await;
}

/// The same, while the request is answered already.
pub fn drain_later(parts: BodyDataStream) {
    tokio::spawn(drain(parts));
}

/// A connection whose other end has to take what is written to it.
pub(crate) struct Impatient<S> {
    stream: S,
    /// Running while a write waits.
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
    patience: Duration,
}

impl<S> Impatient<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, timer: Box::pin(sleep(patience)), is_waiting: false, patience }
    }

    /// An error if it waits for too long.
    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::Impatient;
    use std::io::ErrorKind;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = Impatient::new(ours, Duration::from_millis(20));
        ours.write_all(b"12345678").await.unwrap();
        let mut taken = [0; 4];
        theirs.read_exact(&mut taken).await.unwrap();
        ours.write_all(b"9012").await.unwrap();
        let error = ours.write_all(b"3").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
