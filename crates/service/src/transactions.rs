//! What a sandbox changed in its project: shown, applied and discarded. Our own program does it, since there may be as much of it as
//! a command likes, and since an apply must not end with a connection.

use crate::documents::{ApplyResult, ChangeSet};
use crate::extract::{Json, MaybeJson, Parameters};
use crate::own_program::Invocation;
use crate::problem::Problem;
use crate::service::Shared;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const DIFF_PATIENCE: Duration = Duration::from_secs(120);
const APPLY_PATIENCE: Duration = Duration::from_secs(3600);
/// What `sandbox apply` ends with if something stands in the way.
const HELD: i32 = 1;

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiffFormat {
    /// The changes, one by one.
    #[default]
    Json,
    /// As `git diff` shows them.
    Patch,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DiffQuery {
    #[serde(default)]
    #[param(inline)]
    pub format: DiffFormat,
    /// Only what is below this path of the project.
    pub path: Option<String>,
    /// From this checkpoint on; 0 is the project without changes.
    pub from: Option<u32>,
    /// Up to this checkpoint.
    pub to: Option<u32>,
}

/// Show what a sandbox changed in its project
#[utoipa::path(get, path = "/v1/sandboxes/{id}/diff", tag = "transactions", params(("id" = String, Path, description = "The sandbox"), DiffQuery), responses((status = 200, content((ChangeSet = "application/json"), (String = "text/x-diff")), description = "As `sandbox diff` prints it, with `--json` or without")))]
pub(crate) async fn show_diff(
    State(service): State<Shared>,
    Path(id): Path<String>,
    Parameters(query): Parameters<DiffQuery>,
) -> Result<Response, Problem> {
    let shown = diff(&service, &id, &query).await?;
    match query.format {
        DiffFormat::Json => {
            Ok(([(header::CONTENT_TYPE, "application/json")], shown).into_response())
        }
        DiffFormat::Patch => Ok(([(header::CONTENT_TYPE, "text/x-diff")], shown).into_response()),
    }
}

/// What `sandbox diff` prints.
pub(crate) async fn diff(
    service: &Shared,
    id: &str,
    query: &DiffQuery,
) -> Result<Vec<u8>, Problem> {
    let (directory, _) = service.find(id).await?;
    let mut diff = Invocation::new(["diff"])
        .flag("json", matches!(query.format, DiffFormat::Json))
        .word(directory.id())
        .within(DIFF_PATIENCE);
    if query.from.is_some() || query.to.is_some() {
        let number = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
        let from = query.from.or(Some(0));
        diff = diff.word(format!("{}..{}", number(from), number(query.to)));
    }
    if let Some(path) = &query.path {
        diff = diff.word("--").word(path);
    }
    Ok(service.program.done(diff).await?.stdout)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Apply nothing.
    #[default]
    Refuse,
    /// Take the sandbox's version.
    Force,
    /// Keep the host's version.
    Ours,
    /// Merge both by the version in git.
    Merge,
}

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ApplyRequest {
    /// Only these paths of the project, and what is below them. Everything if there are none.
    pub paths: Vec<String>,
    /// What becomes of files that changed on the host, too.
    pub on_conflict: OnConflict,
    /// Apply this checkpoint, whatever the sandbox has changed since.
    pub checkpoint: Option<u32>,
    /// Apply the rest if something is refused.
    pub skip_refused: bool,
    /// Apply nothing; say what stands in the way.
    pub dry_run: bool,
}

/// Apply what a sandbox changed to its project
///
/// All of it or nothing. If something stands in the way, the answer is 409, and `held` says what.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/apply", tag = "transactions", params(("id" = String, Path, description = "The sandbox")), request_body = Option<ApplyRequest>, responses((status = 200, body = ApplyResult, description = "As `sandbox apply --json` prints it"), (status = 409, body = Problem, content_type = "application/problem+json", description = "Nothing was applied")))]
pub(crate) async fn apply_changes(
    State(service): State<Shared>,
    Path(id): Path<String>,
    MaybeJson(wanted): MaybeJson<ApplyRequest>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(apply(&service, &id, &wanted).await?))
}

/// What `sandbox apply --json` prints.
pub(crate) async fn apply(
    service: &Shared,
    id: &str,
    wanted: &ApplyRequest,
) -> Result<Value, Problem> {
    let (directory, _) = service.find(id).await?;
    let mut apply = Invocation::new(["apply", "--json"])
        .flag("force", wanted.on_conflict == OnConflict::Force)
        .flag("ours", wanted.on_conflict == OnConflict::Ours)
        .flag("merge", wanted.on_conflict == OnConflict::Merge)
        .flag("skip-refused", wanted.skip_refused)
        .flag("dry-run", wanted.dry_run)
        .word(directory.id())
        .within(APPLY_PATIENCE);
    if let Some(number) = wanted.checkpoint {
        apply = apply.option("checkpoint", number.to_string());
    }
    if !wanted.paths.is_empty() {
        apply = wanted.paths.iter().fold(apply.word("--"), Invocation::word);
    }
    let answer = service.program.finish(apply).await?;
    match answer.code {
        Some(0) => answer.json(),
        Some(HELD) => Err(Problem::conflict("nothing was applied: something stands in the way")
            .with_held(answer.json()?)),
        _ => Err(answer.problem().into_conflict()),
    }
}

/// Discard what a sandbox changed
#[utoipa::path(post, path = "/v1/sandboxes/{id}/discard", tag = "transactions", params(("id" = String, Path, description = "The sandbox")), responses((status = 204, description = "The project is as it was")))]
pub(crate) async fn discard_changes(
    State(service): State<Shared>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let (directory, _) = service.find(&id).await?;
    let discard = Invocation::new(["discard", directory.id()]).within(APPLY_PATIENCE);
    let answer = service.program.finish(discard).await?;
    match answer.code {
        Some(0) => Ok(StatusCode::NO_CONTENT),
        _ => Err(answer.problem().into_conflict()),
    }
}
