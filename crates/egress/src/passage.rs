//! From admission to forwarding: inspects the client's first bytes. The host that they name must be the one
//! that was admitted (NET-4, N09).
//!
//! Must never forward a request or a ClientHello before its host is checked. On the usual ports of the web,
//! must never forward a byte before its protocol is known.

use crate::engine::{Admitted, Engine, tell_if_spent, tunnel};
use crate::peek::{First, ProtocolKind};
use crate::ports::{is_usual_for_http, is_usual_for_tls};
use crate::{http_server, intercept};
use palisade_hosts::Host;
use std::io;
use std::rc::Rc;
use tokio::net::TcpStream;

/// The first bytes of HTTP/2 (RFC 9113, 3.4). Its servers may send before their clients do.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Serves a connection that was admitted and dialled. `read` was already read from the client.
pub async fn carry(
    engine: Rc<Engine>,
    client: TcpStream,
    upstream: TcpStream,
    read: Vec<u8>,
    admitted: Admitted,
) {
    let mut first = First::new(read);
    if admitted.is_forwarded() {
        return carry_requests(engine, client, upstream, first, admitted).await;
    }
    admitted.wait();
    let kind = tokio::select! {
        biased;
        kind = decide(&engine, &admitted, &mut first, &client) => kind,
        // A protocol in which the server sends first.
        _ = upstream.readable() => {
            admitted.resume();
            return carry_meanwhile(&engine, client, upstream, first, &admitted).await;
        }
    };
    admitted.resume();
    let Ok(kind) = kind else { return };
    match kind {
        ProtocolKind::Http => {
            http_server::serve_plain(engine, client, upstream, admitted, first.bytes).await;
        }
        ProtocolKind::Unclear => carry_meanwhile(&engine, client, upstream, first, &admitted).await,
        kind => match agree(&engine, &admitted, &kind, &first.bytes).await {
            Ok(()) if is_opened(&engine, &admitted, &kind) => {
                intercept::serve(engine, client, upstream, admitted, first.bytes).await;
            }
            Ok(()) => {
                let carried = tunnel::relay(client, upstream, &first.bytes, &admitted).await;
                tell_if_spent(&engine, &admitted, carried);
            }
            Err(reason) => {
                engine.disagrees(&admitted, reason);
                tunnel::reset(client);
            }
        },
    }
}

/// The other end is the upstream proxy itself. It gets only complete requests, serialised again.
async fn carry_requests(
    engine: Rc<Engine>,
    client: TcpStream,
    upstream: TcpStream,
    mut first: First,
    admitted: Admitted,
) {
    admitted.wait();
    let kind = first.decide(&client, engine.head_limit()).await;
    admitted.resume();
    if let Ok(ProtocolKind::Http) = kind {
        return http_server::serve_plain(engine, client, upstream, admitted, first.bytes).await;
    }
    if kind.is_ok() {
        let reason = "the upstream proxy makes no tunnel to this port".to_owned();
        engine.disagrees(&admitted, reason);
    }
    tunnel::reset(client);
}

/// The protocol of the client's first bytes. On a port for the web, unclear bytes are held back until the
/// protocol is known.
async fn decide(
    engine: &Engine,
    admitted: &Admitted,
    first: &mut First,
    client: &TcpStream,
) -> io::Result<ProtocolKind> {
    loop {
        let kind = first.decide(client, engine.head_limit()).await?;
        if kind != ProtocolKind::Unclear || !is_for_the_web(engine, admitted) {
            return Ok(kind);
        }
        first.read(client).await?;
    }
}

/// The server sends, or the client waits for it to send, before the protocol of the client's first bytes is
/// known.
async fn carry_meanwhile(
    engine: &Rc<Engine>,
    client: TcpStream,
    upstream: TcpStream,
    mut first: First,
    admitted: &Admitted,
) {
    let opening = async |client: &TcpStream, upstream: &TcpStream| {
        open(engine, admitted, &mut first, client, upstream).await
    };
    let carried = tunnel::relay_after(client, upstream, opening, admitted).await;
    tell_if_spent(engine, admitted, carried);
}

/// Forwards bytes while their protocol is unclear. Returns the bytes not yet forwarded once the protocol is
/// known and accepted.
async fn open(
    engine: &Rc<Engine>,
    admitted: &Admitted,
    first: &mut First,
    client: &TcpStream,
    upstream: &TcpStream,
) -> io::Result<Vec<u8>> {
    let mut passed = 0;
    loop {
        let kind = match decide(engine, admitted, first, client).await? {
            ProtocolKind::Unclear => {
                let words = first.bytes.get(passed..).unwrap_or_default();
                tunnel::send(upstream, words, admitted).await?;
                passed = first.bytes.len();
                first.read(client).await?;
                continue;
            }
            ProtocolKind::Http if first.bytes.starts_with(HTTP2) => {
                ProtocolKind::Bad("HTTP/2 passes in TLS only")
            }
            // No other HTTP server sends first, and a request of which parts were already forwarded cannot be
            // parsed as a whole.
            ProtocolKind::Http => ProtocolKind::Bad("a request where none was to be expected"),
            kind => kind,
        };
        if let Err(reason) = agree(engine, admitted, &kind, &first.bytes).await {
            engine.disagrees(admitted, reason);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        return Ok(first.bytes.split_off(passed));
    }
}

fn is_opened(engine: &Engine, admitted: &Admitted, kind: &ProtocolKind) -> bool {
    matches!(kind, ProtocolKind::Tls(_))
        && intercept::wanted(&engine.config, &admitted.host, admitted.port)
}

/// Whether only protocols that name their host may pass. No list of what lenient servers accept is ever
/// complete. If a server reads a request in bytes that we do not classify as one, nothing after them is
/// inspected (N10). So this applies to the usual ports of web servers. On other ports any protocol passes.
fn is_for_the_web(engine: &Engine, admitted: &Admitted) -> bool {
    let port = admitted.port;
    engine.config.checks.strict_http && (is_usual_for_http(port) || is_usual_for_tls(port))
}

/// The first line of SSH (RFC 4253, 4.2), which people also run on port 443. It has at most two words and no
/// target, so an HTTP server does not answer it before hanging up.
fn is_ssh(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_text = line.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'/');
    let words = line.split(|byte| *byte == b' ').count();
    is_text && words <= 2 && (line.starts_with(b"SSH-2.0-") || line.starts_with(b"SSH-1.99-"))
}

/// Checks that the client's first bytes name the host that it was admitted to. The error is the reason.
async fn agree(
    engine: &Rc<Engine>,
    admitted: &Admitted,
    kind: &ProtocolKind,
    said: &[u8],
) -> Result<(), String> {
    if *kind == ProtocolKind::Other
        && is_for_the_web(engine, admitted)
        && !(said.is_empty() || is_ssh(said))
    {
        let port = admitted.port;
        return Err(format!(
            "only TLS, HTTP and SSH pass on port {port}, and this is none of them"
        ));
    }
    if !engine.config.checks.agreement {
        return Ok(());
    }
    let named = match kind {
        ProtocolKind::Other | ProtocolKind::Unclear | ProtocolKind::Http => return Ok(()),
        ProtocolKind::Bad(why) => return Err((*why).to_owned()),
        ProtocolKind::Tls(named) => named,
    };
    match (&admitted.host, named) {
        (host, Some(named)) if host == named => Ok(()),
        (Host::Address(_), None) => Ok(()),
        (host, None) => Err(format!("TLS names no server, which must be {host}")),
        (Host::Address(address), Some(Host::Name(name))) => {
            let disagrees = || format!("TLS server name {name} does not agree with {address}");
            if !engine.judge(&Host::Name(name.clone()), admitted.port).is_allowed() {
                return Err(disagrees());
            }
            let found = engine.find(name, admitted.via).await.map_err(|_| disagrees())?;
            if found.addresses.contains(address) { Ok(()) } else { Err(disagrees()) }
        }
        (host, Some(named)) => Err(format!("TLS server name {named} does not agree with {host}")),
    }
}

#[cfg(test)]
#[path = "passage_tests.rs"]
mod tests;
