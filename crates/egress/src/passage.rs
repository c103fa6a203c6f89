//! From admitted to carried: the client's first bytes are looked at, and what they name must be what was
//! admitted (NET-4, N09).
//!
//! Must never pass on a byte of the client's before it is clear whom it is for.

use crate::engine::{Admitted, Engine};
use crate::peek::{First, Kind};
use crate::{http, intercept, tunnel};
use palisade_hosts::Host;
use std::io;
use std::rc::Rc;
use tokio::net::TcpStream;

/// Carries a connection that was admitted and dialled; `read` was read from the client already.
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
        kind = first.decide(&client, engine.head_limit()) => kind,
        // A protocol in which the server speaks first.
        _ = upstream.readable() => {
            admitted.resume();
            return carry_meanwhile(&engine, client, upstream, first, &admitted).await;
        }
    };
    admitted.resume();
    let Ok(kind) = kind else { return };
    match kind {
        Kind::Http => http::serve_plain(engine, client, upstream, admitted, first.bytes).await,
        Kind::Unclear => carry_meanwhile(&engine, client, upstream, first, &admitted).await,
        kind => match agree(&engine, &admitted, &kind).await {
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

/// The other end is the upstream proxy itself: it gets whole requests, which are written anew, and nothing else.
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
    if let Ok(Kind::Http) = kind {
        return http::serve_plain(engine, client, upstream, admitted, first.bytes).await;
    }
    if kind.is_ok() {
        let reason = "the upstream proxy makes no tunnel to this port".to_owned();
        engine.disagrees(&admitted, reason);
    }
    tunnel::reset(client);
}

/// The server speaks, or the client waits for it to, while it is not clear yet what the client's first bytes are.
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

/// Passes words on as long as they are nothing else, until it is clear what they begin. Gives what is left of them.
async fn open(
    engine: &Rc<Engine>,
    admitted: &Admitted,
    first: &mut First,
    client: &TcpStream,
    upstream: &TcpStream,
) -> io::Result<Vec<u8>> {
    let mut passed = 0;
    loop {
        let kind = match first.decide(client, engine.head_limit()).await? {
            Kind::Unclear => {
                let words = first.bytes.get(passed..).unwrap_or_default();
                tunnel::send(upstream, words, admitted).await?;
                passed = first.bytes.len();
                first.read(client).await?;
                continue;
            }
            // No server of HTTP speaks first, and a request that begins in pieces could not be read as a whole.
            Kind::Http => Kind::Bad("a request where none was to be expected"),
            kind => kind,
        };
        if let Err(reason) = agree(engine, admitted, &kind).await {
            engine.disagrees(admitted, reason);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        return Ok(first.bytes.split_off(passed));
    }
}

fn tell_if_spent(engine: &Engine, admitted: &Admitted, carried: io::Result<()>) {
    if let Err(error) = carried
        && error.kind() == io::ErrorKind::QuotaExceeded
    {
        engine.spent(admitted);
    }
}

fn is_opened(engine: &Engine, admitted: &Admitted, kind: &Kind) -> bool {
    matches!(kind, Kind::Tls(_)) && intercept::wanted(&engine.config, &admitted.host)
}

/// Whether what the client said first fits the host that it was admitted to. An error: why not.
async fn agree(engine: &Rc<Engine>, admitted: &Admitted, kind: &Kind) -> Result<(), String> {
    if !engine.config.checks.agreement {
        return Ok(());
    }
    let named = match kind {
        Kind::Other | Kind::Unclear | Kind::Http => return Ok(()),
        Kind::Bad(why) => return Err((*why).to_owned()),
        Kind::Tls(named) => named,
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
            let pinned = engine.lookup.addresses(name).await.map_err(|_| disagrees())?;
            if pinned.addresses.contains(address) { Ok(()) } else { Err(disagrees()) }
        }
        (host, Some(named)) => Err(format!("TLS server name {named} does not agree with {host}")),
    }
}

#[cfg(test)]
#[path = "passage_tests.rs"]
mod tests;
