//! Answers that go on: server-sent events (text/event-stream), one JSON document an event.
//!
//! A client that reads slowly is waited for: nothing is collected for it beyond a few events.

use crate::limits::KEEP_ALIVE;
use crate::own_program::{Invocation, Lines};
use crate::problem::Problem;
use crate::service::Shared;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::poll_fn;
use serde::Serialize;
use std::convert::Infallible;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Events that wait for the client.
const WAITING_EVENTS: usize = 8;

/// The end of a stream that events go into.
pub(crate) struct EventSender {
    to: mpsc::Sender<Bytes>,
    stopping: watch::Receiver<bool>,
}

/// There is nobody to send to.
#[derive(Debug)]
pub(crate) struct Gone;

impl EventSender {
    /// `id` is what the client names to go on from there.
    pub(crate) async fn send(
        &self,
        name: &str,
        id: Option<u64>,
        data: &impl Serialize,
    ) -> Result<(), Gone> {
        // Compact JSON has no line breaks.
        let data = serde_json::to_string(data).map_err(|_| Gone)?;
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let text = format!("{id}event: {name}\ndata: {data}\n\n");
        self.to.send(text.into()).await.map_err(|_| Gone)
    }

    /// Waits for something, as long as the client is there. None: the client or the server is not there any more.
    pub(crate) async fn until_gone<T>(&self, waited: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(waited);
        let mut stopping = self.stopping.clone();
        let stopped = async {
            // If nobody can say it any more, the server is gone.
            drop(stopping.wait_for(|is_stopping| *is_stopping).await);
        };
        tokio::pin!(stopped);
        loop {
            tokio::select! {
                done = timeout(KEEP_ALIVE, &mut waited) => match done {
                    Ok(done) => return Some(done),
                    Err(_) => self.to.send(Bytes::from_static(b":\n\n")).await.ok()?,
                },
                () = self.to.closed() => return None,
                () = &mut stopped => return None,
            }
        }
    }
}

/// An answer whose events `write` sends.
pub(crate) fn respond<W>(
    service: &Shared,
    write: impl FnOnce(EventSender) -> W,
) -> Result<Response, Problem>
where
    W: Future<Output = Result<(), Gone>> + Send + 'static,
{
    let place = service.stream_place()?;
    let (to, mut events) = mpsc::channel(WAITING_EVENTS);
    let writing = write(EventSender { to, stopping: service.stopping.clone() });
    tokio::spawn(async move {
        // Whoever is gone needs no more.
        let _ = writing.await;
        drop(place);
    });
    let body = poll_fn(move |cx| events.poll_recv(cx).map(|event| event.map(Ok::<_, Infallible>)));
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The lines that our own program prints, each a JSON document, as events. `of` says the name of an event and its number.
pub(crate) fn respond_with_lines(
    service: &Shared,
    invocation: &Invocation,
    of: impl Fn(&serde_json::Value) -> (String, Option<u64>) + Send + Sync + 'static,
) -> Result<Response, Problem> {
    let lines = service.program.lines(invocation)?;
    respond(service, |to| relay(to, lines, of))
}

async fn relay(
    to: EventSender,
    mut lines: Lines,
    of: impl Fn(&serde_json::Value) -> (String, Option<u64>),
) -> Result<(), Gone> {
    loop {
        match to.until_gone(lines.next()).await {
            None => return Ok(()),
            Some(Ok(Some(line))) => {
                let Ok(event) = serde_json::from_slice(&line) else { continue };
                let (name, id) = of(&event);
                to.send(&name, id, &event).await?;
            }
            Some(Ok(None) | Err(_)) => break,
        }
    }
    match lines.problem().await {
        Some(problem) => to.send("problem", None, &problem).await,
        None => Ok(()),
    }
}
