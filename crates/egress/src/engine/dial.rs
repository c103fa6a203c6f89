//! Outgoing connections: only to addresses that were checked, or through the upstream proxy.
//!
//! Must never resolve the destination's name again: only the pinned addresses are dialled.

use super::{tunnel, upstream};
use crate::engine::{Admitted, Cause, Engine, Refused};
use crate::refused::refusal;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// If an address has not answered by then, the next one is tried in parallel (RFC 8305, 5).
const NEXT_AFTER: Duration = Duration::from_millis(250);

pub(crate) async fn dial(engine: &Engine, admitted: &Admitted) -> Result<TcpStream, Refused> {
    let config = &engine.config;
    let connected = timeout(config.limits.dial, async {
        match &config.upstream {
            Some(proxy) => upstream::connect(engine, proxy, admitted).await,
            None => first_of(&admitted.addresses).await,
        }
    })
    .await;
    match connected {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(refusal(&admitted.wanted(), Cause::Unreachable, error.to_string())),
        Err(_late) => {
            let limit = config.limits.dial.as_secs();
            Err(refusal(
                &admitted.wanted(),
                Cause::TimedOut,
                format!("no answer within {limit} seconds"),
            ))
        }
    }
}

/// Whether a connection would end on this machine. Nothing is sent: connecting a datagram socket only selects
/// the source address of its packets, and to an own address that is the address itself. In a range that is
/// local as a whole (ip-address(8), on `lo`) the source differs, but every address of the range can be bound.
pub(crate) fn is_of_this_host(address: SocketAddr) -> bool {
    if UdpSocket::bind((address.ip(), 0)).is_ok() {
        return true;
    }
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address.ip())
}

/// Connects to the first address that answers. Each gets a short head start before the next one is tried too.
async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return connect(*only).await;
    }
    let mut tried = JoinSet::new();
    let mut failed = None;
    for address in addresses {
        tried.spawn_local(connect(*address));
        tokio::select! {
            Some(Ok(done)) = tried.join_next() => match done {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = Some(error),
            },
            () = sleep(NEXT_AFTER) => {}
        }
    }
    while let Some(done) = tried.join_next().await {
        match done {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = Some(error),
            Err(_cancelled) => {}
        }
    }
    Err(failed.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    tunnel::settle(&stream)?;
    Ok(stream)
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
