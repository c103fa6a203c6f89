//! SOCKS 5 (RFC 1928) for outgoing connections: no authentication, `CONNECT` to a name or an address.
//!
//! It only parses requests and writes replies; the engine decides where a connection may go.

use crate::http::incoming::Incoming;
use palisade_hosts::Host;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

pub(crate) const VERSION: u8 = 5;
/// SOCKS 4, which does not support IPv6 and, as most clients implement it, names.
pub(crate) const OLD_VERSION: u8 = 4;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Reply codes (RFC 1928, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Succeeded = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Connect { host: Host, port: u16 },
    Refused(Reply),
}

/// Reads the greeting and the request. `None` if it is not SOCKS 5, or the client has closed the connection.
pub(crate) async fn read<R, W>(
    incoming: &mut Incoming<R>,
    outgoing: &mut W,
) -> io::Result<Option<Request>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Some(greeting) = exactly(incoming, 2).await? else { return Ok(None) };
    let Some(methods) = exactly(incoming, usize::from(greeting[1])).await? else { return Ok(None) };
    if greeting[0] != VERSION {
        return Ok(None);
    }
    if !methods.contains(&NO_AUTHENTICATION) {
        outgoing.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(None);
    }
    outgoing.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let Some(request) = exactly(incoming, 4).await? else { return Ok(None) };
    if request[0] != VERSION || request[2] != 0 {
        return Ok(None);
    }
    let host = match request[3] {
        1 => exactly(incoming, 4).await?.and_then(|bytes| {
            let address = <[u8; 4]>::try_from(bytes).ok()?;
            Some(Ok(Host::from(IpAddr::V4(Ipv4Addr::from(address)))))
        }),
        4 => exactly(incoming, 16).await?.and_then(|bytes| {
            let address = <[u8; 16]>::try_from(bytes).ok()?;
            Some(Ok(Host::from(IpAddr::V6(Ipv6Addr::from(address)))))
        }),
        3 => {
            let Some(length) = exactly(incoming, 1).await? else { return Ok(None) };
            // An invalid name is refused as a whole; a NUL or a space does not truncate it.
            exactly(incoming, usize::from(length[0])).await?.map(|bytes| {
                let text = String::from_utf8(bytes).map_err(|_| Reply::Failed)?;
                Host::parse(&text).map_err(|_| Reply::Failed)
            })
        }
        _ => return Ok(Some(Request::Refused(Reply::AddressNotSupported))),
    };
    let (Some(host), Some(port)) = (host, exactly(incoming, 2).await?) else { return Ok(None) };
    let port = u16::from_be_bytes([port[0], port[1]]);
    Ok(Some(match host {
        _ if request[1] != CONNECT => Request::Refused(Reply::CommandNotSupported),
        _ if port == 0 => Request::Refused(Reply::Failed),
        Ok(host) => Request::Connect { host, port },
        Err(reply) => Request::Refused(reply),
    }))
}

async fn exactly<R: AsyncRead + Unpin>(
    incoming: &mut Incoming<R>,
    count: usize,
) -> io::Result<Option<Vec<u8>>> {
    while incoming.bytes().len() < count {
        if incoming.fill().await? == 0 {
            return Ok(None);
        }
    }
    let bytes = incoming.bytes()[..count].to_vec();
    incoming.take(count);
    Ok(Some(bytes))
}

/// The reply to a request. It does not reveal to the sandbox which address the proxy connected from.
pub(crate) fn reply(reply: Reply) -> [u8; 10] {
    [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// The reply to any SOCKS 4 request: rejected.
pub(crate) const OLD_REFUSAL: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];

#[cfg(test)]
#[path = "socks_tests.rs"]
mod tests;
