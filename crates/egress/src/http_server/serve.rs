//! Plain HTTP on a connection that was admitted for one host: every request must be for that host, and is
//! serialised again in a form that all servers read alike (NET-4, N10). If the rules were reloaded since, the
//! current ones must allow the request.

use super::answer::{self, Shape};
use super::connection::{Connection, Last, NoHead, Plain, Readable, Writable};
use super::exchange::{After, exchange};
use super::loose;
use crate::config::Secret;
use crate::credentials;
use crate::engine::{Admitted, Engine, Refused, tell_if_spent, tunnel};
use crate::http::head::{Authority, Framing, RequestHead, Scheme, Target};
use crate::wire::EgressEvent;
use std::rc::Rc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Answers a refused request; `first` was already read.
pub(crate) async fn refuse(client: TcpStream, first: &[u8], refused: &Refused) {
    let shape = if first.starts_with(b"HEAD ") { Shape::HeadOnly } else { Shape::Whole };
    Plain::over(client, Vec::new()).finish(&answer::refused(refused, shape)).await;
}

/// Serves a connection whose first bytes look like a request. `first` was already read.
pub(crate) async fn serve_plain(
    engine: Rc<Engine>,
    client: TcpStream,
    upstream: TcpStream,
    admitted: Admitted,
    first: Vec<u8>,
) {
    if !engine.config.checks.strict_http && !admitted.is_forwarded() {
        return loose::serve(&engine, client, upstream, &admitted, first).await;
    }
    let client = Plain::over(client, first);
    let server = Plain::over(upstream, Vec::new());
    serve_requests(&engine, client, server, &admitted, Scheme::Http).await;
}

/// Serves until one side closes, or a request is for another host or no longer allowed.
pub(crate) async fn serve_requests<CR: Readable, CW: Writable, SR: Readable, SW: Writable>(
    engine: &Rc<Engine>,
    mut client: Connection<CR, CW>,
    mut server: Connection<SR, SW>,
    admitted: &Admitted,
    scheme: Scheme,
) {
    loop {
        // Between two requests the connection may be displaced at the limit.
        admitted.wait();
        server.incoming.settle();
        let before = engine.now();
        let head = tokio::select! {
            head = client.next_head(&before.config) => head,
            // No request is pending: after a close or unexpected bytes this connection cannot be used again.
            _unasked = server.incoming.fill() => return,
        };
        let head = match head {
            Ok(head) => head,
            Err(NoHead::Gone) => return,
            Err(NoHead::Answer(answer)) => return client.finish(&answer).await,
        };
        admitted.resume();
        let engine = &engine.now();
        let shape = Shape::for_method(&head.method);
        if let Err(refused) = engine.readmit(admitted) {
            engine.events.tell(EgressEvent::Attempt(refused.attempt(admitted.via)));
            return client.finish(&answer::refused(&refused, shape)).await;
        }
        if let Err(refused) = agreement(engine, &head, admitted, scheme) {
            return client.finish(&answer::refused(&refused, shape)).await;
        }
        let request = match forwarded(engine, &head, admitted, scheme) {
            Ok(request) => request,
            Err(answer) => return client.finish(&answer).await,
        };
        match exchange(&mut client, &mut server, &head, &request, admitted).await {
            Ok(After::Another) => {}
            Ok(After::Close) => return client.end(Last::Close).await,
            Ok(After::Upgraded) => {
                return upgraded(engine, &mut client, &mut server, admitted).await;
            }
            Err(failure) => return client.end(failure.last(engine, admitted, shape)).await,
        }
    }
}

/// Forwards bytes after an upgrade, until one side ends the connection.
pub(crate) async fn upgraded<CR: Readable, CW: Writable, SR: Readable, SW: Writable>(
    engine: &Engine,
    client: &mut Connection<CR, CW>,
    server: &mut Connection<SR, SW>,
    admitted: &Admitted,
) {
    let (from_client, first) = client.incoming.rest();
    let (from_server, early) = server.incoming.rest();
    let carried = async {
        admitted.received(early.len() as u64)?;
        client.outgoing.write_all(&early).await?;
        let inside = tokio::io::join(from_client, &mut client.outgoing);
        let outside = tokio::io::join(from_server, &mut server.outgoing);
        tunnel::relay_streams(inside, outside, &first, admitted).await
    };
    // The first side that fails ends it. Nobody inside is left to report to.
    tell_if_spent(engine, admitted, carried.await);
}

/// Whether the request is for the host that this connection was admitted for.
fn agreement(
    engine: &Engine,
    head: &RequestHead,
    admitted: &Admitted,
    scheme: Scheme,
) -> Result<(), Refused> {
    if !engine.config.checks.agreement {
        return Ok(());
    }
    let named = match &head.target {
        Target::Absolute { scheme: own, authority, .. } => {
            (*own == scheme).then_some(()).ok_or_else(|| {
                engine.disagrees(
                    admitted,
                    "the URL's scheme is not that of the connection".to_owned(),
                )
            })?;
            Some(authority)
        }
        Target::Authority(authority) => Some(authority),
        Target::Origin(_) | Target::Asterisk => head.host.as_ref(),
    };
    let Some(named) = named else { return Ok(()) };
    // Without a port, the connection's port applies: many clients omit it.
    if named.host == admitted.host && named.port.is_none_or(|port| port == admitted.port) {
        return Ok(());
    }
    let reason = format!(
        "the request is for {named}, the connection for {}:{}",
        admitted.host, admitted.port
    );
    Err(engine.disagrees(admitted, reason))
}

/// Whether a server's response contains the request itself, including inserted secrets.
fn is_echoed(method: &str) -> bool {
    ["TRACE", "TRACK"].iter().any(|own| method.eq_ignore_ascii_case(own))
}

/// The credentials that the upstream proxy needs with every complete request.
fn login<'a>(engine: &'a Engine, admitted: &Admitted) -> Option<&'a Secret> {
    let upstream = engine.config.upstream.as_ref().filter(|_| admitted.is_forwarded())?;
    upstream.authorization.as_ref()
}

/// The serialised head for the server; the error is the response to a request that is not forwarded.
pub(crate) fn forwarded(
    engine: &Engine,
    head: &RequestHead,
    admitted: &Admitted,
    scheme: Scheme,
) -> Result<Vec<u8>, Vec<u8>> {
    let shape = Shape::for_method(&head.method);
    let gets_credential =
        credentials::are_due(&engine.config, &admitted.host, admitted.port, scheme);
    let login = login(engine, admitted);
    let gets_secret = gets_credential || login.is_some();
    if gets_secret && is_echoed(&head.method) {
        let reason = format!("{} would give a secret away", head.method);
        return Err(answer::refused(&engine.forbids(admitted, reason), shape));
    }
    let own = || Authority {
        host: admitted.host.clone(),
        port: (admitted.port != scheme.port()).then_some(admitted.port),
    };
    let (path, authority) = match &head.target {
        Target::Origin(path) => (path.as_str(), head.host.clone().unwrap_or_else(own)),
        Target::Asterisk => ("*", head.host.clone().unwrap_or_else(own)),
        Target::Absolute { authority, path, .. } => (path.as_str(), authority.clone()),
        Target::Authority(_) => {
            return Err(answer::bad(400, "CONNECT is for the proxy, which is elsewhere", shape));
        }
    };
    let mut fields = head.fields.clone();
    fields.keep_end_to_end();
    fields.remove("host");
    if gets_secret {
        // Where `Max-Forwards` reaches zero, that hop responds itself and may show the request.
        fields.remove("max-forwards");
    }
    if gets_credential {
        credentials::add(&engine.config, &admitted.host, admitted.port, &mut fields);
    }
    match head.body {
        Framing::Chunked => fields.push("transfer-encoding", b"chunked"),
        // A length of zero is sent only if the client sent it: some servers require it with POST.
        Framing::Length(length)
            if length > 0 || head.fields.all("content-length").next().is_some() =>
        {
            fields.push("content-length", length.to_string().as_bytes());
        }
        Framing::Length(_) | Framing::UntilClose => {}
    }
    if let Some(secret) = login {
        fields.push("proxy-authorization", format!("Basic {}", secret.reveal()).as_bytes());
    }
    match head.upgrade() {
        Some(protocol) if !admitted.is_forwarded() => {
            fields.push("connection", b"upgrade");
            fields.push("upgrade", protocol.as_bytes());
        }
        _ if !head.keeps_alive() => fields.push("connection", b"close"),
        _ => {}
    }
    let target = match (admitted.is_forwarded(), path) {
        (false, path) => path.to_owned(),
        (true, "*") => format!("http://{authority}"),
        (true, path) => format!("http://{authority}{path}"),
    };
    let mut bytes =
        format!("{} {target} HTTP/1.1\r\nhost: {authority}\r\n", head.method).into_bytes();
    fields.write(&mut bytes);
    bytes.extend_from_slice(b"\r\n");
    Ok(bytes)
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
