//! Sandboxes: made, found, given more time, forked and ended.

mod create;
mod model;
mod new_sandbox;
mod prepared;

pub(crate) use create::{
    __path_create_sandbox, __path_fork_sandbox, create, create_sandbox, fork_sandbox, made_by,
};
pub use model::{Sandbox, SandboxStatus};
pub(crate) use new_sandbox::CREATE_PATIENCE;
pub use new_sandbox::{AskPeople, NewSandbox, Transaction};
pub(crate) use prepared::{claim, keep_prepared};

use crate::control::ControlConnection;
use crate::extract::{Json, Parameters};
use crate::own_program::Invocation;
use crate::problem::Problem;
use crate::service::{Service, Shared};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use palisade_session::sessions;
use palisade_session::supervise::interface::{Request, Response};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// Longer than any grace time that somebody would wait for in a request.
const END_PATIENCE: Duration = Duration::from_secs(120);
const REMOVE_PATIENCE: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Also those that are over.
    #[serde(default)]
    all: bool,
    /// How many at most, up to 1000; 100 if nothing is said.
    limit: Option<usize>,
    /// Only those that were made after the one with this id: `next` of the answer before.
    after: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxList {
    /// Oldest first.
    sandboxes: Vec<Sandbox>,
    /// What to give as `after` to get the next ones. None: these were all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List sandboxes
///
/// What runs in each of them is told by the request for one.
#[utoipa::path(get, path = "/v1/sandboxes", tag = "sandboxes", params(ListQuery), responses((status = 200, body = SandboxList)))]
pub(crate) async fn list_sandboxes(
    State(service): State<Shared>,
    Parameters(query): Parameters<ListQuery>,
) -> Result<Json<SandboxList>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("limit: 1 to {MAX_LIMIT}")));
    }
    let list = service.blocking(move |service| list(service, &query, limit)).await?;
    Ok(Json(list))
}

fn list(
    service: &Service,
    query: &ListQuery,
    limit: usize,
) -> Result<SandboxList, palisade_session::SessionError> {
    let after = query.after.as_deref().unwrap_or_default();
    let found = sessions::list(&service.places)?;
    let found = found.into_iter().filter(|(_, record)| record.id.as_str() > after);
    let mut sandboxes = found
        .map(|(directory, record)| Sandbox::of(&directory, record))
        .filter(|sandbox| query.all || sandbox.is_running);
    let page: Vec<Sandbox> = sandboxes.by_ref().take(limit).collect();
    let next = sandboxes.next().and(page.last().map(|last| last.id.clone()));
    Ok(SandboxList { sandboxes: page, next })
}

/// Look at a sandbox
#[utoipa::path(get, path = "/v1/sandboxes/{id}", tag = "sandboxes", params(("id" = String, Path, description = "Its id or its name")), responses((status = 200, body = Sandbox)))]
pub(crate) async fn get_sandbox(
    State(service): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<Sandbox>, Problem> {
    Ok(Json(look(&service, &id).await?))
}

/// A sandbox as it is now, with what runs in it.
pub(crate) async fn look(service: &Shared, named: &str) -> Result<Sandbox, Problem> {
    let (directory, record) = service.find(named).await?;
    let mut sandbox = Sandbox::of(&directory, record);
    // One that does not answer is still there.
    if sandbox.is_running
        && let Ok(mut connection) = ControlConnection::open(&directory).await
        && let Ok(Response::Inspected(status)) = connection.ask(&Request::Inspect, &[]).await
    {
        sandbox.status = Some(status.into());
    }
    Ok(sandbox)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct EndQuery {
    /// End its commands at once instead of asking them first.
    #[serde(default)]
    pub(crate) kill: bool,
    /// Also forget changes that wait to be applied, and checkpoints.
    #[serde(default)]
    pub(crate) discard: bool,
}

/// End a sandbox and remove it
///
/// Its commands are asked to end, and killed when the grace time is over. If changes or checkpoints wait, the sandbox is ended and
/// what it changed is kept: the answer is 409, until the changes are applied or discarded, or `discard` is given.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}", tag = "sandboxes", params(("id" = String, Path, description = "Its id or its name"), EndQuery), responses((status = 204, description = "Nothing of it is left"), (status = 409, body = Problem, content_type = "application/problem+json", description = "It has ended, and its changes wait")))]
pub(crate) async fn end_sandbox(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<EndQuery>,
) -> Result<StatusCode, Problem> {
    end(&service, &id, &query).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a sandbox and removes it.
pub(crate) async fn end(service: &Shared, id: &str, query: &EndQuery) -> Result<(), Problem> {
    let (directory, record) = service.find(id).await?;
    if !record.is_over() && directory.is_alive() {
        let word = if query.kill { "kill" } else { "stop" };
        let end = Invocation::new([word, directory.id()]).within(END_PATIENCE);
        let ended = service.program.finish(end).await?;
        // It may have ended by itself meanwhile.
        if ended.code != Some(0) && directory.is_alive() {
            return Err(ended.problem());
        }
    }
    let remove = Invocation::new(["rm"]).flag("force", query.discard).word(directory.id());
    let removed = service.program.finish(remove.within(REMOVE_PATIENCE)).await?;
    match removed.code {
        Some(0) => Ok(()),
        _ => Err(removed.problem().into_conflict()),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoreTime {
    /// How long it may stay from now on.
    #[schema(minimum = 1)]
    seconds: u64,
}

/// Give a sandbox more time
#[utoipa::path(post, path = "/v1/sandboxes/{id}/extend", tag = "sandboxes", params(("id" = String, Path, description = "Its id or its name")), request_body = MoreTime, responses((status = 200, body = Sandbox)))]
pub(crate) async fn extend_sandbox(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Json(wanted): Json<MoreTime>,
) -> Result<Json<Sandbox>, Problem> {
    let milliseconds = wanted.seconds.checked_mul(1000).filter(|time| *time > 0);
    let milliseconds = milliseconds.ok_or_else(|| Problem::invalid("seconds: at least 1"))?;
    extend(&service, &id, milliseconds).await?;
    Ok(Json(look(&service, &id).await?))
}

/// How long a sandbox may stay from now on.
pub(crate) async fn extend(service: &Shared, id: &str, milliseconds: u64) -> Result<(), Problem> {
    let (directory, _) = service.find(id).await?;
    let mut connection = ControlConnection::open(&directory).await?;
    connection.ask(&Request::Extend { milliseconds }, &[]).await?;
    Ok(())
}
