//! A new sandbox, from nothing or from another one. It is made by our own program: this process has threads.

use super::new_sandbox::{CREATE_PATIENCE, NewSandbox};
use super::prepared::claim;
use super::{Sandbox, look};
use crate::caller_span::CallerSpan;
use crate::extract::{IdempotencyKey, Json, MaybeJson};
use crate::idempotency::{Claim, MadeAnswer};
use crate::own_program::Invocation;
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct NewFork {
    /// The checkpoint to begin with; 0 is the project without changes. The present state if nothing is said.
    at: Option<u32>,
    /// Another word for it, unique among those that run.
    name: Option<String>,
}

/// What our own program prints.
#[derive(Debug, Deserialize)]
struct Created {
    id: String,
}

/// Make a sandbox
///
/// It stays until it is ended or its time is over, whatever becomes of this server. A repetition with the same `Idempotency-Key` gets the
/// first answer.
#[utoipa::path(post, path = "/v1/sandboxes", tag = "sandboxes", params(("Idempotency-Key" = Option<String>, Header, description = "A name for this request, in case it has to be repeated")), request_body = NewSandbox, responses((status = 201, body = Sandbox)))]
pub(crate) async fn create_sandbox(
    State(service): State<Shared>,
    IdempotencyKey(key): IdempotencyKey,
    caller: CallerSpan,
    Json(wanted): Json<NewSandbox>,
) -> Result<Response, Problem> {
    // Before anything is made or claimed: it must be able to be made.
    let create = wanted.invocation(&service)?;
    let made = wanted.clone();
    make(service, "create", key, &wanted, |service| async move {
        new(&service, &made, create, caller).await
    })
    .await
}

/// Make a sandbox from the state of another one
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fork", tag = "sandboxes", params(("id" = String, Path, description = "Its id or its name"), ("Idempotency-Key" = Option<String>, Header, description = "A name for this request, in case it has to be repeated")), request_body = Option<NewFork>, responses((status = 201, body = Sandbox)))]
pub(crate) async fn fork_sandbox(
    State(service): State<Shared>,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    caller: CallerSpan,
    MaybeJson(wanted): MaybeJson<NewFork>,
) -> Result<Response, Problem> {
    let (directory, _) = service.find(&id).await?;
    let scope = format!("fork {}", directory.id());
    let fork = Invocation::new(["fork", "--json", "--quiet"])
        .option_if("at", wanted.at.map(|number| number.to_string()))
        .option_if("name", wanted.name.as_ref())
        .word(directory.id())
        .variables(caller.variables())
        .within(CREATE_PATIENCE);
    make(service, &scope, key, &wanted, |service| async move { made_by(&service, fork).await })
        .await
}

/// The id of a new sandbox: one that was prepared, or one that these words make.
async fn new(
    service: &Shared,
    wanted: &NewSandbox,
    create: Invocation,
    caller: CallerSpan,
) -> Result<String, Problem> {
    match claim(service, wanted, false, caller.clone()).await {
        Some(claimed) => {
            service.counters.sandbox_made();
            Ok(claimed.id)
        }
        None => made_by(service, create.variables(caller.variables())).await,
    }
}

/// Makes a sandbox as a request does, and says its id.
pub(crate) async fn create(
    service: &Shared,
    wanted: &NewSandbox,
    caller: CallerSpan,
) -> Result<String, Problem> {
    new(service, wanted, wanted.invocation(service)?, caller).await
}

/// The id of the sandbox that this makes.
pub(crate) async fn made_by(service: &Shared, invocation: Invocation) -> Result<String, Problem> {
    let created: Created = service.program.done(invocation).await?.json()?;
    service.counters.sandbox_made();
    Ok(created.id)
}

/// Goes on if the client is gone: who repeats the request gets this sandbox, and not a second one.
async fn make<F>(
    service: Shared,
    scope: &str,
    key: Option<String>,
    wanted: &impl Serialize,
    making: impl FnOnce(Shared) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<String, Problem>> + Send + 'static,
{
    let first = match service.keys.claim(scope, key.as_deref(), wanted)? {
        Claim::Repeat(response) => return Ok(response),
        Claim::CarryOut(first) => first,
    };
    let making = making(Arc::clone(&service));
    let task = tokio::spawn(async move {
        let id = making.await?;
        let sandbox: Sandbox = look(&service, &id).await?;
        let answer = MadeAnswer::json(StatusCode::CREATED, &sandbox)?;
        first.answered(&answer);
        Ok(answer)
    });
    let answer = task.await.map_err(|error| Problem::internal(error.to_string()))?;
    answer.map(MadeAnswer::into_response)
}
