//! The REST API: makes sandboxes, lists them, gives them more time and ends them. <https://e2b.dev/docs/api-reference>

mod create;
mod model;
mod query;
mod sandboxes;
mod templates;

use crate::error::ApiError;
use crate::face::Shared;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use palisade_service::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Of a request.
const MAX_BODY: usize = 1 << 20;

pub(crate) fn routes(face: Shared) -> Router {
    let unsupported = |what: &'static str| any(move || async move { ApiError::unsupported(what) });
    let sandboxes = Router::new()
        .route("/sandboxes", post(create::create).get(sandboxes::list))
        .route("/v2/sandboxes", post(create::create).get(sandboxes::list))
        .route("/sandboxes/{id}", get(sandboxes::show).delete(sandboxes::end))
        .route("/sandboxes/{id}/timeout", post(sandboxes::set_timeout))
        .route("/sandboxes/{id}/refreshes", post(sandboxes::refresh))
        .route("/sandboxes/{id}/connect", post(sandboxes::connect))
        .route("/v2/sandboxes/{id}/connect", post(sandboxes::connect))
        .route("/sandboxes/{id}/pause", unsupported("pausing a sandbox"))
        .route("/sandboxes/{id}/resume", unsupported("resuming a sandbox"))
        .route("/sandboxes/{id}/snapshots", unsupported("snapshots of sandboxes"))
        .route("/sandboxes/{id}/fork", unsupported("forking a sandbox"))
        .route("/sandboxes/{id}/network", unsupported("changing the network of a sandbox"))
        .route("/sandboxes/{id}/metrics", unsupported("metrics of sandboxes"))
        .route("/sandboxes/{id}/logs", unsupported("logs of sandboxes"))
        .route("/v2/sandboxes/{id}/logs", unsupported("logs of sandboxes"))
        .route("/sandboxes/metrics", unsupported("metrics of sandboxes"));
    let others = [
        ("/snapshots", "snapshots of sandboxes"),
        ("/templates", "building templates"),
        ("/v2/templates", "building templates"),
        ("/v3/templates", "building templates"),
        ("/volumes", "volumes"),
        ("/volumecontent", "volumes"),
        ("/secrets", "stored secrets"),
        ("/teams", "teams"),
        ("/api-keys", "keys: the key is the token of the server"),
    ];
    others
        .into_iter()
        .fold(sandboxes, |routes, (path, what)| {
            let below = format!("{path}/{{*rest}}");
            routes.route(path, unsupported(what)).route(&below, unsupported(what))
        })
        .with_state(face)
}

/// A document of a request. What it has beyond what we know is left out: later clients say more.
pub(crate) struct Document<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Document<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, face: &Shared) -> Result<Self, ApiError> {
        let body = timeout(face.host.client_timeout(), to_bytes(request.into_body(), MAX_BODY));
        let body = body.await.map_err(|_| ApiError::invalid("the body did not come in time"))?;
        let body = body.map_err(|error| {
            ApiError::invalid(format!("a body may have {} KiB: {error}", MAX_BODY >> 10))
        })?;
        let text = if body.is_empty() { b"{}".as_slice() } else { &body };
        serde_json::from_slice(text).map(Self).map_err(|error| ApiError::invalid(error.to_string()))
    }
}

impl<T: Serialize> IntoResponse for Document<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Problem::internal(error.to_string()).into_response(),
        }
    }
}
