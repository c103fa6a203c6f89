//! Sandboxes that are there: listed, shown, given more time and ended.

use super::Document;
use super::create::check_timeout;
use super::model::{Listed, Reachable};
use super::query::ListQuery;
use crate::access::access_token;
use crate::error::ApiError;
use crate::face::{Face, Shared};
use crate::store::KeptSandbox;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::time::Duration;

const NEXT_TOKEN: HeaderName = HeaderName::from_static("x-next-token");

pub(super) async fn list(
    State(face): State<Shared>,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::invalid(error.body_text()))?;
    let mut running = Vec::new();
    for kept in face.store.list() {
        if face.is_alive(&kept.id).await? {
            running.push(kept);
        }
    }
    let (page, next) = query.page(running)?;
    let listed: Vec<Listed> = page.into_iter().map(Listed::from).collect();
    let mut response = Document(listed).into_response();
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        response.headers_mut().insert(NEXT_TOKEN, next);
    }
    Ok(response)
}

async fn living(face: &Face, id: &str) -> Result<KeptSandbox, ApiError> {
    face.living(id).await?.ok_or_else(|| ApiError::no_sandbox(id))
}

pub(super) async fn show(
    State(face): State<Shared>,
    Path(id): Path<String>,
) -> Result<Document<Listed>, ApiError> {
    let mut shown = Listed::from(living(&face, &id).await?);
    shown.envd_access_token = Some(access_token(&face.host, &id)?);
    Ok(Document(shown))
}

pub(super) async fn end(
    State(face): State<Shared>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let kept = living(&face, &id).await?;
    // Goes on if the client is gone.
    let removing = tokio::spawn(async move { face.remove(&kept.id).await });
    let removed = removing.await;
    removed.map_err(|error| palisade_service::Problem::internal(error.to_string()))??;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize)]
pub(super) struct Timeout {
    timeout: u64,
}

pub(super) async fn set_timeout(
    State(face): State<Shared>,
    Path(id): Path<String>,
    Document(wanted): Document<Timeout>,
) -> Result<StatusCode, ApiError> {
    let kept = living(&face, &id).await?;
    stay(&face, kept, wanted.timeout).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// From now on.
async fn stay(face: &Face, mut kept: KeptSandbox, seconds: u64) -> Result<KeptSandbox, ApiError> {
    kept.end_at = check_timeout(seconds)?;
    face.host.extend(&kept.id, Duration::from_secs(seconds)).await?;
    face.store.save(&kept)?;
    Ok(kept)
}

#[derive(Debug, Deserialize)]
pub(super) struct Refresh {
    duration: Option<u64>,
}

/// What E2B calls keeping a sandbox alive.
pub(super) async fn refresh(
    State(face): State<Shared>,
    Path(id): Path<String>,
    Document(wanted): Document<Refresh>,
) -> Result<StatusCode, ApiError> {
    let kept = living(&face, &id).await?;
    stay_at_least(&face, kept, wanted.duration).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Never shorter than it may stay already.
async fn stay_at_least(
    face: &Face,
    kept: KeptSandbox,
    seconds: Option<u64>,
) -> Result<KeptSandbox, ApiError> {
    match seconds {
        Some(seconds) if check_timeout(seconds)? > kept.end_at => stay(face, kept, seconds).await,
        _ => Ok(kept),
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Connection {
    timeout: Option<u64>,
}

pub(super) async fn connect(
    State(face): State<Shared>,
    Path(id): Path<String>,
    Document(wanted): Document<Connection>,
) -> Result<Document<Reachable>, ApiError> {
    let kept = living(&face, &id).await?;
    let kept = stay_at_least(&face, kept, wanted.timeout).await?;
    let token = access_token(&face.host, &id)?;
    Ok(Document(Reachable::new(&kept, token)))
}
