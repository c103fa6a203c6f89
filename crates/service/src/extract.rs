//! Bodies and queries of requests, with a problem for whatever is wrong with them.

use crate::limits::MAX_BODY_BYTES;
use crate::problem::Problem;
use crate::service::Shared;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// A JSON document, of a request or of an answer.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// The same, where there may be none.
pub(crate) struct MaybeJson<T>(pub(crate) T);

/// The part after the question mark.
pub(crate) struct Parameters<T>(pub(crate) T);

/// The name by which a client knows a request that it may have to repeat.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

const MAX_KEY: usize = 255;

async fn body(request: Request, patience: Duration) -> Result<Bytes, Problem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let too_large = || Problem::too_large(format!("a body may have {} KiB", MAX_BODY_BYTES >> 10));
    if length.is_some_and(|length| length > MAX_BODY_BYTES as u64) {
        return Err(too_large());
    }
    match timeout(patience, to_bytes(request.into_body(), MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_length_limit(&error) => Err(too_large()),
        Ok(Err(error)) => Err(Problem::malformed(format!("the body cannot be read: {error}"))),
        Err(_) => Err(Problem::slow(format!(
            "the body was not there after {} seconds",
            patience.as_secs()
        ))),
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

/// A page of another site can send any body, but not this type without being asked first.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = given.map(|value| value.split(';').next().unwrap_or_default().trim());
    match essence {
        Some(essence) if essence.eq_ignore_ascii_case("application/json") => Ok(()),
        _ => Err(Problem::wrong_type("send the header `Content-Type: application/json`")),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::invalid(error.to_string()),
        _ => Problem::malformed(format!("the body is not JSON: {error}")),
    })
}

impl<T: DeserializeOwned> FromRequest<Shared> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Problem> {
        check_type(request.headers())?;
        Ok(Self(parse(&body(request, service.client_timeout).await?)?))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Problem::internal(error.to_string()).into_response(),
        }
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Shared> for MaybeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Problem> {
        let typed = check_type(request.headers());
        let bytes = body(request, service.client_timeout).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        typed?;
        Ok(Self(parse(&bytes)?))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(rejection) => Err(Problem::malformed(rejection.body_text())),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("idempotency-key") else { return Ok(Self(None)) };
        match value.to_str() {
            Ok(key) if !key.is_empty() && key.len() <= MAX_KEY => Ok(Self(Some(key.to_owned()))),
            _ => Err(Problem::malformed(format!(
                "an Idempotency-Key has 1 to {MAX_KEY} visible ASCII characters"
            ))),
        }
    }
}
