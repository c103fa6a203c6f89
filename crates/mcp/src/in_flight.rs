//! Request ids of clients over HTTP. JSON-RPC tells answers apart by the id of the request, so an id whose request is not answered yet
//! must not be used for another one of the same session: the answer to the first would reach the second.
//!
//! Must never refuse what has no session: revision 2026-07-28 answers each request on its own connection.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

const SESSION: &str = "mcp-session-id";
/// "Invalid Request" of JSON-RPC.
const INVALID_REQUEST: i32 = -32600;

/// The ids of all sessions whose requests are not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct RequestsInFlight {
    known: Arc<Mutex<HashSet<(String, String)>>>,
    /// Of one message.
    max_bytes: usize,
}

/// One of them. Dropped with the last copy, when nobody works on the request and its answer was sent.
#[derive(Clone, Debug)]
struct InFlight(Arc<Entry>);

#[derive(Debug)]
struct Entry {
    known: Arc<Mutex<HashSet<(String, String)>>>,
    key: (String, String),
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// What tells a request from an answer and from a notification.
#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
    method: Option<IgnoredAny>,
}

impl RequestsInFlight {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { known: Arc::default(), max_bytes }
    }

    /// None: this session has a request of this id that is not answered yet.
    fn begin(&self, session: &str, id: &Value) -> Option<InFlight> {
        // As JSON, so that 1 and "1" are two ids.
        let key = (session.to_owned(), id.to_string());
        let is_new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then(|| InFlight(Arc::new(Entry { known: Arc::clone(&self.known), key })))
    }
}

/// In front of the protocol: refuses a request whose id is in flight already in its session.
pub(crate) async fn refuse_repeated(
    State(requests): State<RequestsInFlight>,
    request: Request,
    next: Next,
) -> Response {
    let session = request.headers().get(SESSION).and_then(|value| value.to_str().ok());
    let Some(session) = session.map(str::to_owned).filter(|_| request.method() == Method::POST)
    else {
        return next.run(request).await;
    };
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, requests.max_bytes).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    // What is no request is answered by the protocol.
    let id = match serde_json::from_slice(&body) {
        Ok(Envelope { id: Some(id), method: Some(_) }) => id,
        _ => return next.run(Request::from_parts(parts, body.into())).await,
    };
    let Some(in_flight) = requests.begin(&session, &id) else {
        return repeated(&id);
    };
    // The protocol keeps what comes with a request until the request has been worked on, and that goes on if the client is gone.
    parts.extensions.insert(in_flight.clone());
    let response = next.run(Request::from_parts(parts, body.into())).await;
    response.map(|body| until_sent(body, in_flight))
}

/// The same body. The request is in flight until all of it was sent, or nobody takes it any more.
fn until_sent(body: Body, in_flight: InFlight) -> Body {
    Body::from_stream(body.into_data_stream().map(move |part| {
        // Moved in here, it is dropped with the body.
        let InFlight(_entry) = &in_flight;
        part
    }))
}

fn repeated(id: &Value) -> Response {
    let message = format!(
        "a request with the id {id} is in flight in this session already; wait for its answer, or use another id"
    );
    let error = json!({ "code": INVALID_REQUEST, "message": message });
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let is_json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, is_json, answer.to_string()).into_response()
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
