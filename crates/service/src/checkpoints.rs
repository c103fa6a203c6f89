//! Kept states of a sandbox's project: listed, made and brought back.

use crate::documents::{Checkpoint, CheckpointList, RollbackResult};
use crate::extract::{Json, MaybeJson};
use crate::own_program::Invocation;
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

const PATIENCE: Duration = Duration::from_secs(3600);

/// List the kept states of a sandbox's project
#[utoipa::path(get, path = "/v1/sandboxes/{id}/checkpoints", tag = "checkpoints", params(("id" = String, Path, description = "The sandbox")), responses((status = 200, body = CheckpointList, description = "As `sandbox checkpoints --json` prints it")))]
pub(crate) async fn list_checkpoints(
    State(service): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(list(&service, &id).await?))
}

/// What `sandbox checkpoints --json` prints.
pub(crate) async fn list(service: &Shared, id: &str) -> Result<Value, Problem> {
    let (directory, _) = service.find(id).await?;
    let list = Invocation::new(["checkpoints", "--json", directory.id()]);
    service.program.done(list).await.map_err(Problem::into_conflict)?.json()
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct NewCheckpoint {
    /// What it is, for people.
    message: Option<String>,
    /// A person is asked about this state, which is then applied as it is. Only the last four of this kind are kept.
    for_review: bool,
}

/// Keep the present state of a sandbox's project
#[utoipa::path(post, path = "/v1/sandboxes/{id}/checkpoints", tag = "checkpoints", params(("id" = String, Path, description = "The sandbox")), request_body = Option<NewCheckpoint>, responses((status = 201, body = Checkpoint, description = "The checkpoint, with its number")))]
pub(crate) async fn make_checkpoint(
    State(service): State<Shared>,
    Path(id): Path<String>,
    MaybeJson(wanted): MaybeJson<NewCheckpoint>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let purpose = match wanted.for_review {
        true => CheckpointPurpose::ForReview,
        false => CheckpointPurpose::ToKeep,
    };
    let made = make(&service, &id, wanted.message.as_deref(), purpose).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPurpose {
    ToKeep,
    /// A person is asked about it. The last few of this kind are kept.
    ForReview,
}

/// What `sandbox checkpoint --json` prints.
pub(crate) async fn make(
    service: &Shared,
    id: &str,
    message: Option<&str>,
    purpose: CheckpointPurpose,
) -> Result<Value, Problem> {
    let (directory, _) = service.find(id).await?;
    let make = Invocation::new(["checkpoint", "--json"])
        .flag("for-review", purpose == CheckpointPurpose::ForReview)
        .option_if("message", message)
        .word(directory.id())
        .within(PATIENCE);
    let answer = service.program.finish(make).await?;
    match answer.code {
        Some(0) => answer.json(),
        _ => Err(answer.problem().into_conflict()),
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RollbackRequest {
    /// Change nothing; show what would change.
    pub dry_run: bool,
    /// Kill the commands that run. Otherwise nothing is done while there are any.
    pub kill: bool,
}

/// Bring a kept state of a sandbox's project back
///
/// The present state is kept first.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/checkpoints/{number}/rollback", tag = "checkpoints", params(("id" = String, Path, description = "The sandbox"), ("number" = u32, Path, description = "The checkpoint; 0 is the project without changes")), request_body = Option<RollbackRequest>, responses((status = 200, body = RollbackResult, description = "As `sandbox rollback --json` prints it")))]
pub(crate) async fn roll_back(
    State(service): State<Shared>,
    Path((id, number)): Path<(String, String)>,
    MaybeJson(wanted): MaybeJson<RollbackRequest>,
) -> Result<Json<Value>, Problem> {
    let number: u32 = number
        .parse()
        .map_err(|_| Problem::not_found(format!("`{number}` is not the number of a checkpoint")))?;
    Ok(Json(bring_back(&service, &id, number, &wanted).await?))
}

/// What `sandbox rollback --json` prints.
pub(crate) async fn bring_back(
    service: &Shared,
    id: &str,
    number: u32,
    wanted: &RollbackRequest,
) -> Result<Value, Problem> {
    if wanted.dry_run && wanted.kill {
        return Err(Problem::invalid("dryRun and kill do not go together"));
    }
    let (directory, _) = service.find(id).await?;
    let roll_back = Invocation::new(["rollback", "--json"])
        .flag("dry-run", wanted.dry_run)
        .flag("kill", wanted.kill)
        .word(directory.id())
        .word(number.to_string())
        .within(PATIENCE);
    let answer = service.program.finish(roll_back).await?;
    match answer.code {
        Some(0) => answer.json(),
        _ => Err(answer.problem().into_conflict()),
    }
}
