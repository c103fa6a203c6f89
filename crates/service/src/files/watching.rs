//! What happens in a directory of a sandbox, as events.

use super::model::ChangeDocument;
use super::serving::start;
use crate::extract::Parameters;
use crate::problem::Problem;
use crate::service::Shared;
use crate::stream;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};
use utoipa::IntoParams;

/// Changes that wait for the client. Then the sandbox's own queue fills, and says so.
const WAITING_CHANGES: usize = 64;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WatchQuery {
    /// From the sandbox's project, unless it begins with a slash.
    path: String,
    /// Watch the directories below it, too.
    #[serde(default)]
    recursive: bool,
}

/// Follow what happens in a directory of a sandbox
///
/// Server-sent events: `watching` when it has begun, and `change` for each change, until the client is gone or the sandbox ends.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/watch", tag = "files", params(("id" = String, Path, description = "The sandbox"), WatchQuery), responses((status = 200, body = ChangeDocument, content_type = "text/event-stream")))]
pub(crate) async fn watch_directory(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<WatchQuery>,
) -> Result<Response, Problem> {
    let (begun, has_begun) = oneshot::channel();
    let (to, mut changes) = mpsc::channel(WAITING_CHANGES);
    let (work, given_up) = start(&service, &id, move |files| {
        files.watch(query.path.as_ref(), query.recursive)?;
        // Nobody may wait for it any more.
        let _ = begun.send(());
        loop {
            let (_, change) = files.next_change()?;
            if to.blocking_send(ChangeDocument::from(&change)).is_err() {
                return Ok(());
            }
        }
    })
    .await?;
    if has_begun.await.is_err() {
        let failed: Result<(), Problem> =
            work.await.map_err(|error| Problem::internal(error.to_string()))?;
        return Err(failed.err().unwrap_or_else(|| Problem::internal("nothing was watched")));
    }
    stream::respond(&service, move |to| async move {
        let _given_up = given_up;
        to.send("watching", None, &serde_json::json!({})).await?;
        while let Some(Some(change)) = to.until_gone(changes.recv()).await {
            to.send("change", None, &change).await?;
        }
        Ok(())
    })
}
