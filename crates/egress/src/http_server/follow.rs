//! Redirects that the proxy follows itself, if the policy enables it. Each hop is admitted like a separate
//! request, so a chain of redirects cannot reach a host that a request could not (NET-4, N08).

use super::answer::{self, Shape};
use super::connection::{Connection, Last, Plain, Readable, Writable, within};
use super::exchange::{After, Answering, Begun, Failure};
use super::serve::forwarded;
use crate::engine::{Admitted, Engine, Wanted};
use crate::http::head::{Framing, RequestHead, Scheme};
use crate::http::redirect::{MAX_REDIRECTS, WebAddress, leads_to};
use palisade_record::network::Via;
use std::cell::Cell;
use std::rc::Rc;
use tokio::io::AsyncWriteExt as _;

/// Fields that are meant for one host only.
const PERSONAL: [&str; 2] = ["authorization", "cookie"];

enum Hop {
    /// The response was sent to the client.
    Done,
    LeadsTo(WebAddress),
}

/// Whether the request can be repeated elsewhere unchanged.
pub(crate) fn may(head: &RequestHead) -> bool {
    matches!(head.method.as_str(), "GET" | "HEAD")
        && head.body == Framing::NONE
        && head.upgrade().is_none()
}

/// Sends the request and follows redirects. An error says how to end the client's connection.
pub(crate) async fn follow(
    engine: &Rc<Engine>,
    client: &mut Plain,
    head: &RequestHead,
    place: &WebAddress,
    server: Plain,
    admitted: Admitted,
) -> Result<(), Last> {
    let shape = Shape::for_method(&head.method);
    let mut head = head.clone();
    let mut place = place.clone();
    let mut done = hop(engine, client, &head, &place, server, &admitted).await?;
    drop(admitted);
    for _ in 0..MAX_REDIRECTS {
        let next = match done {
            Hop::Done => return Ok(()),
            Hop::LeadsTo(next) => next,
        };
        // Another port may be another service (CVE-2022-27774).
        let is_same_host = next.authority.host == place.authority.host;
        if !is_same_host || next.scheme != place.scheme || next.port() != place.port() {
            PERSONAL.iter().for_each(|name| head.fields.remove(name));
        }
        place = next;
        // The rules may have changed while it waited for the response.
        let engine = &engine.now();
        head.target = place.target();
        let wanted =
            Wanted { via: Via::Http, host: place.authority.host.clone(), port: place.port() };
        let refuse = |refused| Last::Words(answer::refused(&refused, shape));
        let admitted = tokio::select! {
            biased;
            admitted = engine.admit_redirect(wanted) => admitted.map_err(refuse)?,
            // A person may be asked meanwhile: nobody needs the answer any more.
            () = client.until_gone() => return Err(Last::Cut),
        };
        let stream = engine.dial(&admitted).await.map_err(refuse)?;
        done = match place.scheme {
            Scheme::Http => {
                hop(engine, client, &head, &place, Plain::over(stream, Vec::new()), &admitted)
                    .await?
            }
            Scheme::Https if admitted.is_forwarded() => {
                let reason = "the upstream proxy makes no tunnel to this port";
                return Err(Last::Words(answer::bad(502, reason, shape)));
            }
            Scheme::Https => {
                let opening = engine.intercept.open(stream, &admitted.host);
                let words = |status, why: &str| Last::Words(answer::bad(status, why, shape));
                let opened = within(&engine.config, opening)
                    .await
                    .ok_or_else(|| words(504, "the host did not answer in TLS"))?
                    .map_err(|error| words(502, &error.to_string()))?;
                hop(engine, client, &head, &place, Connection::of(opened), &admitted).await?
            }
        };
    }
    match done {
        Hop::Done => Ok(()),
        Hop::LeadsTo(_) => {
            Err(Last::Words(answer::bad(502, "the redirects do not come to an end", shape)))
        }
    }
}

async fn hop<R: Readable, W: Writable>(
    engine: &Engine,
    client: &mut Plain,
    head: &RequestHead,
    place: &WebAddress,
    mut server: Connection<R, W>,
    admitted: &Admitted,
) -> Result<Hop, Last> {
    let shape = Shape::for_method(&head.method);
    let fail = |failure: Failure| failure.last(engine, admitted, shape);
    let request = forwarded(engine, head, admitted, place.scheme).map_err(Last::Words)?;
    let asked = async {
        admitted.sent(request.len() as u64)?;
        server.outgoing.write_all(&request).await?;
        server.outgoing.flush().await
    };
    asked.await.map_err(|error| fail(Failure::with_server(&error)))?;
    let begun = Cell::new(Begun::No);
    let mut answering = Answering {
        incoming: &mut server.incoming,
        outgoing: &mut client.outgoing,
        admitted,
        begun: &begun,
    };
    let answer = answering.head(head).await.map_err(fail)?;
    if let Some(next) = leads_to(&answer, place) {
        return Ok(Hop::LeadsTo(next));
    }
    match answering.rest(head, &answer).await.map_err(fail)? {
        After::Another => Ok(Hop::Done),
        After::Close | After::Upgraded => Err(Last::Close),
    }
}
