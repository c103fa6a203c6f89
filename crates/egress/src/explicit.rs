//! The explicit proxy, for programs that support proxies: `CONNECT`, absolute URLs, and SOCKS 5.
//!
//! It is one more front end of the engine, which decides what may be reached; the content of a tunnel is
//! inspected as if the program had connected directly. Rules may be reloaded while a client is connected: each
//! of its requests must be judged by the current rules.

use crate::engine::{Admitted, Cause, Engine, Refused, Wanted};
use crate::http::head::{Authority, Framing, RequestHead, Scheme, Target};
use crate::http::redirect::WebAddress;
use crate::http_server::answer::{self, Shape};
use crate::http_server::connection::{Last, NoHead, Plain, within};
use crate::http_server::exchange::{After, exchange};
use crate::http_server::follow;
use crate::http_server::serve::{forwarded, upgraded};
use crate::passage;
use crate::socks::{self, Reply, Request};
use palisade_hosts::Host;
use palisade_record::network::Via;
use std::rc::Rc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const WHAT_THIS_IS: &str =
    "this is the sandbox's proxy, no server: set it as HTTP_PROXY, HTTPS_PROXY or ALL_PROXY";

/// Serves one client of the proxy until it or its host closes the connection.
pub async fn serve(engine: Rc<Engine>, client: TcpStream) {
    let mut client = Plain::over(client, Vec::new());
    if !matches!(within(&engine.config, client.incoming.fill()).await, Some(Ok(1..))) {
        return;
    }
    match client.incoming.bytes().first() {
        Some(&socks::VERSION) => serve_socks(&engine, client).await,
        Some(&socks::OLD_VERSION) => client.finish(&socks::OLD_REFUSAL).await,
        _ => serve_http(&engine, client).await,
    }
}

async fn serve_socks(engine: &Rc<Engine>, mut client: Plain) {
    let read = socks::read(&mut client.incoming, &mut client.outgoing);
    let Some(Ok(Some(request))) = within(&engine.config, read).await else { return };
    let engine = &engine.now();
    let (host, port) = match request {
        Request::Connect { host, port } => (host, port),
        Request::Refused(reply) => return client.finish(&socks::reply(reply)).await,
    };
    match reach(engine, &mut client, Wanted { via: Via::Socks, host, port }).await {
        None => {}
        Some(Ok((admitted, upstream))) => {
            tunnel(engine, client, upstream, admitted, &socks::reply(Reply::Succeeded)).await;
        }
        Some(Err(refused)) => {
            let reply = match refused.cause {
                Cause::Denied | Cause::Address | Cause::Disagrees => Reply::NotAllowed,
                Cause::Limit => Reply::Failed,
                Cause::Lookup | Cause::TimedOut => Reply::HostUnreachable,
                Cause::Unreachable => Reply::ConnectionRefused,
            };
            client.finish(&socks::reply(reply)).await;
        }
    }
}

/// A program that resolved a name inside passes its synthetic address, which is mapped back to the name.
pub(crate) fn meant(engine: &Engine, host: Host) -> Host {
    match host {
        Host::Address(address) => engine.dns.name_of(address).map_or(host, Host::Name),
        Host::Name(_) => host,
    }
}

/// Connects to the host if it is allowed. `None` if the client left while a person was being asked.
async fn reach(
    engine: &Rc<Engine>,
    client: &mut Plain,
    mut wanted: Wanted,
) -> Option<Result<(Admitted, TcpStream), Refused>> {
    wanted.host = meant(engine, wanted.host);
    let admitted = match engine.admit_while_there(wanted, client.until_gone()).await? {
        Ok(admitted) => admitted,
        Err(refused) => return Some(Err(refused)),
    };
    let dialled = engine.dial(&admitted).await;
    Some(dialled.map(|upstream| (admitted, upstream)))
}

/// Tells the client that the tunnel is open, and passes the connection to the inspection of its first bytes.
async fn tunnel(
    engine: &Rc<Engine>,
    mut client: Plain,
    upstream: TcpStream,
    admitted: Admitted,
    ready: &[u8],
) {
    if client.outgoing.write_all(ready).await.is_err() {
        return;
    }
    let Ok((client, first)) = client.into_stream() else { return };
    passage::carry(Rc::clone(engine), client, upstream, first, admitted).await;
}

/// A connection that was made for one host, and may carry further requests to it.
struct Open {
    server: Plain,
    admitted: Admitted,
}

impl Open {
    fn may_serve(&self, engine: &Engine, place: &WebAddress) -> bool {
        let host = meant(engine, place.authority.host.clone());
        self.admitted.host == host
            && self.admitted.port == place.port()
            && engine.readmit(&self.admitted).is_ok()
    }
}

async fn serve_http(engine: &Rc<Engine>, mut client: Plain) {
    let mut open: Option<Open> = None;
    loop {
        let head = match next_head(&engine.now(), &mut client, &mut open).await {
            Ok(head) => head,
            Err(NoHead::Gone) => return,
            Err(NoHead::Answer(answer)) => return client.finish(&answer).await,
        };
        // The rules may have changed while it waited for the head.
        let engine = &engine.now();
        let place = match &head.target {
            Target::Authority(target) => {
                return connect(engine, client, &head, target.clone()).await;
            }
            Target::Absolute { scheme: Scheme::Http, .. } => WebAddress::of(&head.target),
            Target::Absolute { .. } | Target::Origin(_) | Target::Asterisk => None,
        };
        let shape = Shape::for_method(&head.method);
        let Some(place) = place else {
            let why = match head.target {
                Target::Absolute { .. } => "https is reached with CONNECT",
                _ => WHAT_THIS_IS,
            };
            return client.finish(&answer::bad(400, why, shape)).await;
        };
        match request(engine, &mut client, &head, &place, open.take()).await {
            Ok(kept) => open = kept,
            Err(last) => return client.end(last).await,
        }
    }
}

/// The next head. If the server closes the connection meanwhile, it is dropped.
async fn next_head(
    engine: &Engine,
    client: &mut Plain,
    open: &mut Option<Open>,
) -> Result<Box<RequestHead>, NoHead> {
    let next = client.next_head(&engine.config);
    tokio::pin!(next);
    if let Some(kept) = open {
        kept.admitted.wait();
        kept.server.incoming.settle();
        tokio::select! {
            head = &mut next => {
                kept.admitted.resume();
                return head;
            }
            _unasked = kept.server.incoming.fill() => *open = None,
        }
    }
    next.await
}

/// One request with an absolute URL. Returns the connection for the next one; an error says how to end the
/// client's connection.
async fn request(
    engine: &Rc<Engine>,
    client: &mut Plain,
    head: &RequestHead,
    place: &WebAddress,
    open: Option<Open>,
) -> Result<Option<Open>, Last> {
    let shape = Shape::for_method(&head.method);
    let mut open = match open.filter(|kept| kept.may_serve(engine, place)) {
        Some(kept) => kept,
        None => {
            let (host, port) = (place.authority.host.clone(), place.port());
            let reached = reach(engine, client, Wanted { via: Via::Http, host, port }).await;
            let (admitted, stream) = reached
                .ok_or(Last::Close)?
                .map_err(|refused| Last::Words(answer::refused(&refused, shape)))?;
            Open { server: Plain::over(stream, Vec::new()), admitted }
        }
    };
    if engine.config.follow_redirects && follow::may(head) {
        return follow::follow(engine, client, head, place, open.server, open.admitted)
            .await
            .map(|()| None);
    }
    let bytes = forwarded(engine, head, &open.admitted, Scheme::Http).map_err(Last::Words)?;
    match exchange(client, &mut open.server, head, &bytes, &open.admitted).await {
        Ok(After::Another) => Ok(Some(open)),
        Ok(After::Close) => Err(Last::Close),
        Ok(After::Upgraded) => {
            upgraded(engine, client, &mut open.server, &open.admitted).await;
            Err(Last::Close)
        }
        Err(failure) => Err(failure.last(engine, &open.admitted, shape)),
    }
}

async fn connect(engine: &Rc<Engine>, mut client: Plain, head: &RequestHead, target: Authority) {
    // Some servers would read a body as the first bytes of the tunnel.
    if head.body != Framing::NONE {
        return client.finish(&answer::bad(400, "CONNECT has no body", Shape::Whole)).await;
    }
    let Some(port) = target.port else { return };
    match reach(engine, &mut client, Wanted { via: Via::Connect, host: target.host, port }).await {
        None => {}
        Some(Ok((admitted, upstream))) => {
            tunnel(engine, client, upstream, admitted, ESTABLISHED).await;
        }
        Some(Err(refused)) => client.finish(&answer::refused(&refused, Shape::Whole)).await,
    }
}

#[cfg(test)]
#[path = "explicit_tests.rs"]
mod tests;
