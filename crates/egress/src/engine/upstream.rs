//! The upstream proxy that some organisations require, used with `CONNECT`.
//!
//! The user chooses it and no program inside names it, so no rule applies to it; what goes through it was
//! judged before. Names are looked up there, not here.

use super::tunnel;
use crate::config::Upstream;
use crate::engine::dns::Counted;
use crate::engine::{Admitted, Engine};
use crate::http::head::{Authority, MAX_HEAD_BYTES};
use crate::ports::is_usual_for_http;
use palisade_hosts::Host;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const END: &[u8] = b"\r\n\r\n";

/// Connects to an admitted destination through the proxy. The caller limits the time.
///
/// Many proxies open tunnels for TLS only. On a usual port for plain HTTP the connection then ends at the
/// proxy. This is recorded in `admitted`, and the proxy gets complete requests.
pub(crate) async fn connect(
    engine: &Engine,
    upstream: &Upstream,
    admitted: &Admitted,
) -> io::Result<TcpStream> {
    let mut stream = reach(engine, upstream).await?;
    stream.write_all(&request(upstream, &admitted.host, admitted.port)).await?;
    let head = answer(&mut stream).await?;
    let status = status(&head)?;
    match status {
        200..=299 => Ok(stream),
        400 | 403 | 405 | 501 if is_usual_for_http(admitted.port) => {
            admitted.forward();
            reach(engine, upstream).await
        }
        407 => Err(failed(
            "the upstream proxy requires a user and a password: http://USER:PASSWORD@HOST:PORT",
        )),
        _ => Err(failed(&format!("the upstream proxy answered {status}"))),
    }
}

fn failed(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

async fn reach(engine: &Engine, upstream: &Upstream) -> io::Result<TcpStream> {
    let addresses: Vec<IpAddr> = match Host::parse(&upstream.host).map_err(io::Error::other)? {
        Host::Address(address) => vec![address],
        Host::Name(name) => {
            let found = engine.look_up(&name, Counted::of_configuration()).await;
            let found = found.map_err(|error| failed(&format!("the upstream proxy: {error}")))?;
            found.resolved.addresses
        }
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(SocketAddr::new(address, upstream.port)).await {
            Ok(stream) => {
                tunnel::settle(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(&format!("the upstream proxy {}:{}: {last}", upstream.host, upstream.port)))
}

fn request(upstream: &Upstream, host: &Host, port: u16) -> Vec<u8> {
    let target = Authority { host: host.clone(), port: Some(port) };
    let mut head = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n");
    if let Some(secret) = &upstream.authorization {
        head.push_str(&format!("proxy-authorization: Basic {}\r\n", secret.reveal()));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Reads the head of the response and not one byte more: what follows comes from the host.
async fn answer(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut seen = [0; 1024];
    loop {
        let count = stream.peek(&mut seen).await?;
        if count == 0 {
            return Err(failed("the upstream proxy closed the connection"));
        }
        let before = head.len();
        head.extend_from_slice(&seen[..count]);
        let from = before.saturating_sub(END.len() - 1);
        let end = head[from..].windows(END.len()).position(|bytes| bytes == END);
        head.truncate(end.map_or(head.len(), |at| from + at + END.len()));
        // Reads only bytes that were peeked, so this does not wait.
        stream.read_exact(&mut seen[..head.len() - before]).await?;
        if end.is_some() {
            return Ok(head);
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(failed("the upstream proxy's answer is too long"));
        }
    }
}

fn status(head: &[u8]) -> io::Result<u16> {
    let mut slots = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut slots);
    let is_head = response.parse(head).is_ok();
    response
        .code
        .filter(|_| is_head)
        .ok_or_else(|| failed("the upstream proxy does not answer in HTTP/1"))
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
