//! `sandbox_diff`, `sandbox_apply`, `sandbox_checkpoint`, `sandbox_rollback` and `sandbox_status`: the sandbox itself.

use super::answer::{ToolAnswer, ToolError};
use super::cut::{Shortened, lossy};
use crate::call::CallContext;
use palisade_service::{ApplyRequest, DiffFormat, DiffQuery, OnConflict, RollbackRequest};
use serde::Deserialize;
use serde_json::{Value, json};

const MAX_DIFF: usize = 128 << 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diff {
    #[serde(default)]
    path: Option<String>,
    /// The checkpoint to begin with; 0 is the project without changes.
    #[serde(default)]
    from: Option<u32>,
    #[serde(default)]
    to: Option<u32>,
}

pub(crate) async fn diff(call: &CallContext, wanted: Diff) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let Diff { path, from, to } = wanted;
    let query = DiffQuery { format: DiffFormat::Patch, path, from, to };
    let patch = call.server.operations.diff(&sandbox.id, &query).await?;
    let shown = Shortened::of(&patch, MAX_DIFF);
    let text = shown.joined(|count| format!("\n[{count} bytes left out; name a path]\n"));
    let truncated = shown.left_out.is_some();
    let told = if patch.is_empty() { "nothing was changed".to_owned() } else { text.clone() };
    ToolAnswer::new(told, &json!({ "diff": text, "truncated": truncated }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Apply {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    on_conflict: OnConflict,
    #[serde(default)]
    dry_run: bool,
}

pub(crate) async fn apply(call: &CallContext, wanted: Apply) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    if !wanted.dry_run && !call.server.may_apply {
        let what = match wanted.paths.as_slice() {
            [] => "everything that it changed".to_owned(),
            paths => lossy(paths.join(", ").as_bytes()),
        };
        let message = format!(
            "Apply the changes of sandbox {} to {}: {what}? `sandbox diff {}` shows them.",
            sandbox.id,
            sandbox.project.display(),
            sandbox.id
        );
        if !call.confirm(message).await {
            return Err(ToolError::new(format!(
                "nothing was applied: a person has to agree. A person can look at the changes with `sandbox diff {0}` and \
                 apply them with `sandbox apply {0}`; a server that is started with --allow-apply does not ask",
                sandbox.id
            )));
        }
    }
    let request = ApplyRequest {
        paths: wanted.paths,
        on_conflict: wanted.on_conflict,
        skip_refused: false,
        dry_run: wanted.dry_run,
    };
    let applied = call.server.operations.apply(&sandbox.id, &request).await?;
    ToolAnswer::new(applied.to_string(), &json!({ "applied": !wanted.dry_run, "details": applied }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    #[serde(default)]
    message: Option<String>,
}

pub(crate) async fn checkpoint(
    call: &CallContext,
    wanted: Checkpoint,
) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let made = call.server.operations.checkpoint(&sandbox.id, wanted.message.as_deref()).await?;
    ToolAnswer::new(made.to_string(), &json!({ "checkpoint": made }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Rollback {
    checkpoint: u32,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    kill_commands: bool,
}

pub(crate) async fn rollback(
    call: &CallContext,
    wanted: Rollback,
) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let request = RollbackRequest { dry_run: wanted.dry_run, kill: wanted.kill_commands };
    let done = call.server.operations.roll_back(&sandbox.id, wanted.checkpoint, &request).await?;
    ToolAnswer::new(done.to_string(), &json!({ "rolledBack": !wanted.dry_run, "details": done }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {}

pub(crate) async fn status(call: &CallContext, _: Status) -> Result<ToolAnswer, ToolError> {
    let known = call.sandbox().await?;
    let operations = &call.server.operations;
    let sandbox = operations.look(&known.id).await?;
    let has_transaction = sandbox.has_transaction;
    let mut data =
        serde_json::to_value(&sandbox).map_err(|error| ToolError::new(error.to_string()))?;
    if has_transaction && let Ok(checkpoints) = operations.checkpoints(&known.id).await {
        data["checkpoints"] = checkpoints;
    }
    let mut text = format!(
        "sandbox {} for {}: {}",
        known.id,
        lossy(sandbox.project.as_bytes()),
        if sandbox.is_running { "running" } else { "over" }
    );
    if let Some(status) = &sandbox.status {
        text.push_str(&format!(
            ", {} commands, {} questions wait",
            status.running_commands, status.questions
        ));
    }
    text.push_str(match has_transaction {
        true => "\nThe project is kept as it is: changes wait until they are applied (sandbox_diff, sandbox_apply).",
        false => "\nThe project is written directly; there is nothing to apply.",
    });
    debug_assert!(matches!(data, Value::Object(_)));
    ToolAnswer::new(text, &data)
}
