//! Connections that exceed the limit or were displaced: reported, and answered where possible (NET-7).
//!
//! Must never delay connections that are served: only a few are answered at a time, the others are reset.

use crate::engine::{Cause, Engine, Refused, tunnel};
use crate::http::head::{RequestHead, Target};
use crate::http::redirect::WebAddress;
use crate::http_server::answer::{self, Shape};
use crate::http_server::connection::Plain;
use crate::limits::{Client, Destination};
use crate::wire::EgressEvent;
use crate::{explicit, socks};
use palisade_record::network::{NetworkAction, Via};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long to wait for a request, so that its destination can be reported.
const REQUEST_WITHIN: Duration = Duration::from_millis(300);
/// SOCKS 5: no acceptable authentication method (RFC 1928, 3).
const NO_WAY_IN: [u8; 2] = [socks::VERSION, 0xff];
/// Reported instead of a host that is not known yet.
pub(crate) const UNNAMED: &str = "(unnamed)";

/// Answers a client of the explicit proxy with 429. `from` is reported if the clients are not all in one
/// sandbox.
pub(crate) async fn answer(engine: Rc<Engine>, client: TcpStream, from: Option<IpAddr>) {
    let reason = with_client(engine.load.full_for(from.map(Client::of)), from);
    let Some(_turned_away) = engine.load.turn_away() else {
        tell(&engine, Via::Http, (UNNAMED.to_owned(), 0), reason);
        return tunnel::reset(client);
    };
    let mut client = Plain::over(client, Vec::new());
    let head = timeout(REQUEST_WITHIN, client.next_head(&engine.config)).await;
    let head = head.ok().and_then(Result::ok);
    let (via, destination) = head.as_deref().map_or_else(unnamed, |head| named(&engine, head));
    let refused = tell(&engine, via, destination, reason);
    if client.incoming.bytes().first() == Some(&socks::VERSION) {
        return client.finish(&NO_WAY_IN).await;
    }
    let shape = head.map_or(Shape::Whole, |head| Shape::for_method(&head.method));
    client.finish(&answer::refused(&refused, shape)).await;
}

fn unnamed() -> (Via, Destination) {
    (Via::Http, (UNNAMED.to_owned(), 0))
}

/// The destination of a request.
fn named(engine: &Engine, head: &RequestHead) -> (Via, Destination) {
    let (via, host, port) = match &head.target {
        Target::Authority(target) => {
            (Via::Connect, target.host.clone(), target.port.unwrap_or_default())
        }
        target => match WebAddress::of(target) {
            Some(place) => (Via::Http, place.authority.host.clone(), place.port()),
            None => return unnamed(),
        },
    };
    (via, (explicit::meant(engine, host).to_string(), port))
}

/// The reason, followed by the client's address.
pub(crate) fn with_client(reason: String, from: Option<IpAddr>) -> String {
    match from {
        Some(from) => reason + &format!("; asked by {from}"),
        None => reason,
    }
}

pub(crate) fn tell(
    engine: &Engine,
    via: Via,
    (host, port): Destination,
    reason: String,
) -> Refused {
    let (cause, action) = (Cause::Limit, NetworkAction::ProxyDenied);
    let refused = Refused { cause, action, host, port, reason, rule: None, flag: None };
    engine.events.tell(EgressEvent::Attempt(refused.attempt(via)));
    refused
}

#[cfg(test)]
#[path = "turned_away_tests.rs"]
mod tests;
