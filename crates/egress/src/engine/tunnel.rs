//! Copies bytes in both directions, uninspected, until both have ended.
//!
//! Between two sockets the bytes never enter our memory (`splice(2)`). An orderly end is forwarded as an end
//! and an abort as a reset: a truncated transfer must never look complete.

use crate::engine::{Admitted, out_of_bytes};
use crate::pipes::{CAPACITY, Pipe};
use rustix::net::sockopt;
use std::cell::Cell;
use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Idle time before keepalive probes start. They detect a peer that vanished without closing the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Polling interval at the end of a run.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// For streams that cannot be spliced.
const BUFFER: usize = 16 * 1024;

/// Counts the bytes carried and limits them.
pub trait Meter {
    /// Bytes towards the side that was dialled. An error ends the tunnel.
    fn sent(&self, bytes: u64) -> io::Result<()>;
    fn received(&self, bytes: u64) -> io::Result<()>;
    /// How many bytes may still be carried.
    fn left(&self) -> u64;
    fn insider(&self) -> Insider {
        Insider::Client
    }
}

/// Which of the two sides is in the sandbox. It may end before everything it sent was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insider {
    Client,
    Upstream,
}

impl Meter for Admitted {
    fn sent(&self, bytes: u64) -> io::Result<()> {
        Self::sent(self, bytes)
    }

    fn received(&self, bytes: u64) -> io::Result<()> {
        Self::received(self, bytes)
    }

    fn left(&self) -> u64 {
        Self::left(self)
    }
}

/// Copies bytes both ways until both sides have ended. `first` was already read from the client.
pub async fn relay(
    client: TcpStream,
    upstream: TcpStream,
    first: &[u8],
    meter: &impl Meter,
) -> io::Result<()> {
    relay_after(client, upstream, async |_: &TcpStream, _: &TcpStream| Ok(first), meter).await
}

/// The same, but nothing from the client is forwarded before `opening` returns its first bytes. `opening` gets
/// both sides. Bytes from the other side are forwarded immediately.
pub async fn relay_after<B: AsRef<[u8]>>(
    client: TcpStream,
    upstream: TcpStream,
    opening: impl AsyncFnOnce(&TcpStream, &TcpStream) -> io::Result<B>,
    meter: &impl Meter,
) -> io::Result<()> {
    let ends = Ends::default();
    let (unsent_out, unsent_back) = match meter.insider() {
        Insider::Client => (Some(Unsent::begin()), None),
        Insider::Upstream => (None, Some(Unsent::begin())),
    };
    let out = async {
        let first = opening(&client, &upstream).await?;
        send(&upstream, first.as_ref(), meter).await?;
        drop(first);
        while pass(&client, &upstream, u64::MAX, meter, |bytes| meter.sent(bytes)).await? > 0 {}
        end_sending(&upstream)?;
        drop(unsent_out);
        ends.one(&client).await
    };
    let back = async {
        while pass(&upstream, &client, u64::MAX, meter, |bytes| meter.received(bytes)).await? > 0 {}
        end_sending(&client)?;
        drop(unsent_back);
        ends.one(&upstream).await
    };
    let ended = tokio::try_join!(out, back);
    if ended.is_err() {
        reset(client);
        reset(upstream);
    }
    ended.map(drop)
}

/// A side in the sandbox may have sent bytes that are not forwarded yet. They are still forwarded after the
/// sender has ended, as on any network.
#[derive(Debug)]
struct Unsent;

thread_local! {
    static UNSENT: Cell<usize> = const { Cell::new(0) };
}

impl Unsent {
    fn begin() -> Self {
        UNSENT.set(UNSENT.get() + 1);
        Self
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        UNSENT.set(UNSENT.get().saturating_sub(1));
    }
}

/// Returns when everything that was sent inside is forwarded. Called when no process is left inside to send
/// more.
pub(crate) async fn all_is_sent() {
    while UNSENT.get() > 0 {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// The same for streams that are not plain sockets.
pub async fn relay_streams<C, U>(
    client: C,
    upstream: U,
    first: &[u8],
    meter: &impl Meter,
) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite,
    U: AsyncRead + AsyncWrite,
{
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_upstream, mut to_upstream) = tokio::io::split(upstream);
    let out = async {
        if !first.is_empty() {
            meter.sent(first.len() as u64)?;
            to_upstream.write_all(first).await?;
        }
        copy(&mut from_client, &mut to_upstream, |bytes| meter.sent(bytes)).await
    };
    let back = copy(&mut from_upstream, &mut to_client, |bytes| meter.received(bytes));
    tokio::try_join!(out, back).map(drop)
}

/// Moves one batch of at most `most` bytes and returns its length. Zero means end of stream.
pub async fn pass(
    from: &TcpStream,
    to: &TcpStream,
    most: u64,
    meter: &impl Meter,
    count: impl Fn(u64) -> io::Result<()>,
) -> io::Result<u64> {
    let allowed = || match meter.left().min(most) {
        0 => Err(out_of_bytes()),
        left => Ok(usize::try_from(left).unwrap_or(CAPACITY).min(CAPACITY)),
    };
    // A pipe is only borrowed while there are bytes to move, so that thousands of idle tunnels hold none.
    let filled = from
        .async_io(Interest::READABLE, || {
            let most = allowed()?;
            let mut pipe = match Pipe::lend() {
                Ok(pipe) => pipe,
                Err(error) if is_scarce(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            match pipe.fill(from, most) {
                Ok(_) => Ok(Some(pipe)),
                Err(error) => {
                    pipe.give_back();
                    Err(error)
                }
            }
        })
        .await?;
    let Some(mut pipe) = filled else {
        return pass_by_copy(from, to, allowed()?, count).await;
    };
    let bytes = pipe.holds() as u64;
    count(bytes)?;
    while pipe.holds() > 0 {
        to.async_io(Interest::WRITABLE, || pipe.drain(to)).await?;
    }
    pipe.give_back();
    Ok(bytes)
}

/// Used when no pipe can be created because descriptors have run out.
async fn pass_by_copy(
    from: &TcpStream,
    to: &TcpStream,
    most: usize,
    count: impl Fn(u64) -> io::Result<()>,
) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER.min(most)];
    let taken = from.async_io(Interest::READABLE, || from.try_read(&mut buffer)).await?;
    count(taken as u64)?;
    write_all(to, buffer.get(..taken).unwrap_or_default()).await?;
    Ok(taken as u64)
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: impl Fn(u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let taken = from.read(&mut buffer).await?;
        if taken == 0 {
            return to.shutdown().await;
        }
        count(taken as u64)?;
        to.write_all(buffer.get(..taken).unwrap_or_default()).await?;
        to.flush().await?;
    }
}

/// Writes bytes from the client to the other side.
pub async fn send(to: &TcpStream, bytes: &[u8], meter: &impl Meter) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    meter.sent(bytes.len() as u64)?;
    write_all(to, bytes).await
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Records which of the two directions have ended.
#[derive(Debug, Default)]
struct Ends {
    first: Cell<bool>,
    both: Notify,
}

impl Ends {
    /// Records that one direction has ended. Returns when the other one has ended too, or with an error if the
    /// side that stopped sending resets the connection, because then nobody receives the rest.
    async fn one(&self, side: &TcpStream) -> io::Result<()> {
        if self.first.replace(true) {
            self.both.notify_one();
            return Ok(());
        }
        tokio::select! {
            () = self.both.notified() => Ok(()),
            () = broken(side) => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
}

async fn broken(side: &TcpStream) {
    if side.ready(Interest::ERROR).await.is_err() {
        pending::<()>().await;
    }
}

fn end_sending(to: &TcpStream) -> io::Result<()> {
    match rustix::net::shutdown(to, rustix::net::Shutdown::Write) {
        // The peer has closed the connection meanwhile; the other direction reports how.
        Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Options of all our sockets, which accepted connections inherit from a listener. Bytes are sent without
/// delay, and a peer that vanished does not keep its slot.
pub(crate) fn settle(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEP_ALIVE)?;
    Ok(())
}

/// Closes with a reset, so that the peer cannot mistake it for an orderly end.
pub fn reset(side: TcpStream) {
    let _best_effort = side.set_zero_linger();
    drop(side);
}

fn is_scarce(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(
        errno,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE | rustix::io::Errno::NOMEM)
    )
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;
