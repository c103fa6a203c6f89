//! Connect RPC over HTTP, with messages in JSON: procedures that answer once, and procedures whose answer goes on.
//! <https://connectrpc.com/docs/protocol>

use crate::access;
use crate::envelope::{self, MAX_MESSAGE, Messages};
use crate::error::{Code, RpcError};
use crate::face::Shared;
use crate::store::KeptSandbox;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::poll_fn;
use palisade_service::{CallerSpan, drain_later};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

const UNARY: &str = "application/json";
const STREAM: &str = "application/connect+json";
/// Messages that wait for the client.
const WAITING_MESSAGES: usize = 8;
/// Between messages of a request that goes on.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(600);
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A request to a procedure of a sandbox that runs.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) sandbox: KeptSandbox,
    headers: HeaderMap,
    body: Body,
    patience: Duration,
    began: Instant,
}

impl FromRequest<Shared> for Call {
    type Rejection = Response;

    async fn from_request(request: Request, face: &Shared) -> Result<Self, Response> {
        let id = access::sandbox_of(face, &request);
        let (parts, body) = request.into_parts();
        let sandbox = match face.living_or_gone(id).await {
            Ok(sandbox) => sandbox,
            Err(error) => {
                drain_later(body.into_data_stream());
                return Err(error.into_response());
            }
        };
        let (headers, patience) = (parts.headers, face.host.client_timeout());
        Ok(Self { sandbox, headers, body, patience, began: Instant::now() })
    }
}

impl Call {
    /// How long the client waits for all of it.
    pub(crate) fn deadline(&self) -> Result<Option<Instant>, RpcError> {
        let Some(value) = self.headers.get("connect-timeout-ms") else { return Ok(None) };
        let time = value.to_str().ok().and_then(|text| text.parse::<u64>().ok());
        let time = time.ok_or_else(|| RpcError::invalid("Connect-Timeout-Ms: milliseconds"))?;
        Ok((time > 0).then(|| self.began + Duration::from_millis(time).min(A_YEAR)))
    }

    /// After which silence the client wants to hear that somebody is there.
    pub(crate) fn keepalive(&self) -> Duration {
        let wanted = self.headers.get("keepalive-ping-interval");
        let seconds = wanted.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        Duration::from_secs(seconds.unwrap_or(90).clamp(1, 3600))
    }

    /// The span of the client that this is a part of.
    pub(crate) fn caller(&self) -> CallerSpan {
        CallerSpan::of(&self.headers)
    }

    fn check(&self, expected: &str) -> Result<(), RpcError> {
        let given = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = given.map(|value| value.split(';').next().unwrap_or_default().trim());
        if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case(expected)) {
            let what = format!("this procedure takes the type {expected}; protobuf is not spoken");
            return Err(RpcError::new(Code::Unimplemented, what));
        }
        for name in ["connect-content-encoding", "content-encoding"] {
            let encoding = self.headers.get(name);
            if encoding.is_some_and(|encoding| encoding != "identity") {
                let what = format!("{name}: not supported here; send messages as they are");
                return Err(RpcError::new(Code::Unimplemented, what));
            }
        }
        Ok(access::check_user_header(&self.headers)?)
    }
}

fn parse<M: DeserializeOwned>(text: &[u8]) -> Result<M, RpcError> {
    serde_json::from_slice(text)
        .map_err(|error| RpcError::invalid(format!("no message of this procedure: {error}")))
}

/// A procedure that answers once.
pub(crate) async fn unary<M, A, D>(
    mut call: Call,
    carry_out: impl FnOnce(KeptSandbox, M) -> D,
) -> Response
where
    M: DeserializeOwned,
    A: Serialize,
    D: Future<Output = Result<A, RpcError>>,
{
    let answered = async {
        // A request is read to its end before anything is said about it, so that the connection can be used again.
        let body = std::mem::take(&mut call.body);
        let body = timeout(call.patience, to_bytes(body, MAX_MESSAGE)).await;
        let body = body.map_err(|_| RpcError::new(Code::DeadlineExceeded, "the body is late"))?;
        let body = body.map_err(|error| match is_length_limit(&error) {
            true => RpcError::new(
                Code::ResourceExhausted,
                format!("a message may have {} MiB", MAX_MESSAGE >> 20),
            ),
            false => RpcError::invalid(format!("the body cannot be read: {error}")),
        })?;
        call.check(UNARY)?;
        let deadline = call.deadline()?;
        let done = carry_out(call.sandbox, parse(&body)?);
        match deadline {
            None => done.await,
            Some(deadline) => timeout_at(deadline, done).await.unwrap_or_else(|_| {
                Err(RpcError::new(Code::DeadlineExceeded, "it was not done in time"))
            }),
        }
    };
    match answered.await.map(|answer| serde_json::to_vec(&answer)) {
        Ok(Ok(body)) => ([(header::CONTENT_TYPE, UNARY)], body).into_response(),
        Ok(Err(error)) => RpcError::new(Code::Internal, error.to_string()).into_response(),
        Err(error) => error.into_response(),
    }
}

fn is_length_limit(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = source {
        if cause.to_string().contains("length limit exceeded") {
            return true;
        }
        source = cause.source();
    }
    false
}

/// The client's end of an answer that goes on.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) to: mpsc::Sender<Bytes>,
    pub(crate) keepalive: Duration,
    pub(crate) deadline: Option<Instant>,
    _place: OwnedSemaphorePermit,
}

impl Answer {
    /// Whether the client is still there.
    pub(crate) async fn send(&self, content: &impl Serialize) -> bool {
        self.to.send(envelope::message(content)).await.is_ok()
    }

    /// Ends it.
    pub(crate) async fn end(self, outcome: Result<(), RpcError>) {
        // Whoever is gone needs no end.
        let _ = self.to.send(envelope::end(&outcome)).await;
    }
}

/// A procedure whose answer goes on: `begin` does what can fail at once, and what it returns writes the answer. Both go on if the
/// client is gone: what was begun has to be followed, and ended when its time is over.
pub(crate) async fn stream<M, B, W>(
    face: &Shared,
    call: Call,
    begin: impl FnOnce(KeptSandbox, M) -> B + Send + 'static,
) -> Response
where
    M: DeserializeOwned + Send + 'static,
    B: Future<Output = Result<W, RpcError>> + Send + 'static,
    W: WriteAnswer + Send + 'static,
{
    let (to, mut parts) = mpsc::channel::<Bytes>(WAITING_MESSAGES);
    let (told, begun) = oneshot::channel();
    let face = Arc::clone(face);
    tokio::spawn(async move {
        match begin_stream(&face, call, begin).await {
            Ok((writer, keepalive, deadline, place)) => {
                // If nobody waits for it, the writer finds out.
                let _ = told.send(Ok(()));
                writer.write(Answer { to, keepalive, deadline, _place: place }).await;
            }
            Err(error) => drop(told.send(Err(error))),
        }
    });
    let lost = |_| Err(RpcError::new(Code::Internal, "the request was given up"));
    match begun.await.unwrap_or_else(lost) {
        Ok(()) => {
            let parts =
                poll_fn(move |cx| parts.poll_recv(cx).map(|part| part.map(Ok::<_, Infallible>)));
            answer(Body::from_stream(parts))
        }
        // With the status of success, as the protocol has it: an answer that goes on says at its end what went wrong.
        error => answer(Body::from(envelope::end(&error))),
    }
}

type Begun<W> = (W, Duration, Option<Instant>, OwnedSemaphorePermit);

async fn begin_stream<M, B, W>(
    face: &Shared,
    mut call: Call,
    begin: impl FnOnce(KeptSandbox, M) -> B,
) -> Result<Begun<W>, RpcError>
where
    M: DeserializeOwned,
    B: Future<Output = Result<W, RpcError>>,
{
    let mut messages = Messages::of(std::mem::take(&mut call.body));
    let message = timeout(call.patience, messages.next()).await;
    messages.finish();
    call.check(STREAM)?;
    let (keepalive, deadline) = (call.keepalive(), call.deadline()?);
    let place = face.host.stream_place()?;
    let message = message.map_err(|_| RpcError::new(Code::DeadlineExceeded, "nothing came"))??;
    let message = message.ok_or_else(|| RpcError::invalid("a request has one message"))?;
    let writer = begin(call.sandbox, parse(&message)?).await?;
    Ok((writer, keepalive, deadline, place))
}

/// What writes an answer that goes on.
pub(crate) trait WriteAnswer {
    fn write(self, answer: Answer) -> impl Future<Output = ()> + Send + 'static;
}

/// A procedure whose request goes on, and that answers once.
pub(crate) async fn client_stream<M, D>(
    face: &Shared,
    mut call: Call,
    mut carry_out: impl FnMut(KeptSandbox, M) -> D,
) -> Response
where
    M: DeserializeOwned,
    D: Future<Output = Result<(), RpcError>>,
{
    let mut messages = Messages::of(std::mem::take(&mut call.body));
    let checked = call.check(STREAM).and_then(|()| call.deadline());
    let sandbox = call.sandbox;
    let done = async {
        let deadline = checked?.unwrap_or_else(|| Instant::now() + A_YEAR);
        let _place = face.host.stream_place()?;
        let late = |_| RpcError::new(Code::DeadlineExceeded, "the request did not go on in time");
        loop {
            let until = deadline.min(Instant::now() + MESSAGE_PATIENCE);
            let next = timeout_at(until, messages.next()).await.map_err(late)??;
            let Some(message) = next else { return Ok(()) };
            let taken = carry_out(sandbox.clone(), parse(&message)?);
            timeout_at(deadline, taken).await.map_err(late)??;
        }
    };
    let done: Result<(), RpcError> = done.await;
    messages.finish();
    let mut body = Vec::new();
    if done.is_ok() {
        body.extend_from_slice(&envelope::message(&json!({})));
    }
    body.extend_from_slice(&envelope::end(&done));
    answer(Body::from(body))
}

fn answer(body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
