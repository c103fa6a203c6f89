//! `sandbox_diff`, `sandbox_apply`, `sandbox_checkpoint`, `sandbox_rollback` and `sandbox_status`: the sandbox itself.

use super::answer::{ToolAnswer, ToolError};
use crate::context::CallContext;
use crate::text::{Shortened, listed, lossy, named};
use palisade_service::{
    ApplyRequest, CheckpointPurpose, DiffFormat, DiffQuery, OnConflict, ProblemKind,
    RollbackRequest,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

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

/// What the sandbox changed, as `sandbox diff --json` prints it.
#[derive(Debug, Default, Deserialize)]
struct Changed {
    changes: Vec<ChangedPath>,
    #[serde(default)]
    renames: Vec<RenamedPath>,
}

#[derive(Debug, Deserialize)]
struct ChangedPath {
    path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct RenamedPath {
    from: PathBuf,
    to: PathBuf,
}

impl Changed {
    /// How many changes these paths stand for; both ends of a rename belong together. A path that stands for none is an error:
    /// a model wrote it, and a person is not asked about words of a model.
    fn count(&self, paths: &[String]) -> Result<usize, ToolError> {
        let mut chosen = BTreeSet::new();
        for path in paths {
            let inside = inside_project(path);
            let is_below = |it: &Path| inside.as_ref().is_some_and(|above| it.starts_with(above));
            let mut found = self
                .changes
                .iter()
                .map(|it| it.path.as_path())
                .filter(|it| is_below(it))
                .peekable();
            if found.peek().is_none() {
                return Err(ToolError::wrong(format!(
                    "nothing was changed at {}: name paths of the project as sandbox_diff shows them, or none for everything",
                    named(path)
                )));
            }
            chosen.extend(found);
        }
        for rename in &self.renames {
            let ends = [rename.from.as_path(), rename.to.as_path()];
            if ends.iter().any(|end| chosen.contains(end)) {
                chosen.extend(ends);
            }
        }
        Ok(chosen.len())
    }

    /// What a person is asked to agree to.
    fn told(&self, paths: &[String]) -> Result<String, ToolError> {
        let counted = |count| match count {
            1 => "1 change".to_owned(),
            count => format!("{count} changes"),
        };
        if paths.is_empty() {
            return Ok(format!("everything that it changed ({})", counted(self.changes.len())));
        }
        let count = counted(self.count(paths)?);
        let names: Vec<String> = paths.iter().map(|path| named(path)).collect();
        Ok(format!("{count} at {} of its paths: {}", paths.len(), listed(&names)))
    }
}

/// None: not below the project. The project itself is no path below it: it would be everything under another name.
fn inside_project(path: &str) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => inside.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!inside.as_os_str().is_empty()).then_some(inside)
}

pub(crate) async fn apply(call: &CallContext, wanted: Apply) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let mut request = ApplyRequest {
        paths: wanted.paths,
        checkpoint: None,
        on_conflict: wanted.on_conflict,
        skip_refused: false,
        dry_run: wanted.dry_run,
    };
    if !wanted.dry_run && !call.server.may_apply {
        // Commands go on while a person looks: what is agreed to is a state that they cannot change.
        let kept = match call.can_ask() {
            true => Some(keep_for_review(call, &sandbox.id).await?),
            false => None,
        };
        let query = DiffQuery {
            format: DiffFormat::Json,
            from: kept.map(|_| 0),
            to: kept,
            ..DiffQuery::default()
        };
        let changed = call.server.operations.diff(&sandbox.id, &query).await?;
        let changed: Changed = serde_json::from_slice(&changed)
            .map_err(|error| ToolError::ours(format!("what was changed is not known: {error}")))?;
        let range = kept.map(|number| format!(" 0..{number}")).unwrap_or_default();
        let message = format!(
            "Apply to {} what sandbox {1} changed: {2}? `sandbox diff {1}{range}` shows it.",
            named(&sandbox.project.to_string_lossy()),
            sandbox.id,
            changed.told(&request.paths)?,
        );
        // What cannot be applied is nothing to ask about.
        request.checkpoint = kept;
        if kept.is_some() {
            let preview = ApplyRequest { dry_run: true, ..request.clone() };
            call.server.operations.apply(&sandbox.id, &preview).await?;
        }
        if !call.confirm(message).await {
            return Err(ToolError::new(
                ProblemKind::Security,
                format!(
                    "nothing was applied: a person has to agree. A person can look at the changes with `sandbox diff {0}` and \
                 apply them with `sandbox apply {0}`; a server that is started with --allow-apply does not ask",
                    sandbox.id
                ),
            ));
        }
    }
    let applied = call.server.operations.apply(&sandbox.id, &request).await?;
    ToolAnswer::new(applied.to_string(), &json!({ "applied": !wanted.dry_run, "details": applied }))
}

/// Keeps the present state, and returns its number.
async fn keep_for_review(call: &CallContext, sandbox: &str) -> Result<u32, ToolError> {
    let made =
        call.server.operations.checkpoint(sandbox, None, CheckpointPurpose::ForReview).await?;
    let number = made["number"].as_u64().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| ToolError::ours("the checkpoint that was kept has no number".to_owned()))
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
    let (message, purpose) = (wanted.message.as_deref(), CheckpointPurpose::ToKeep);
    let made = call.server.operations.checkpoint(&sandbox.id, message, purpose).await?;
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
        serde_json::to_value(&sandbox).map_err(|error| ToolError::ours(error.to_string()))?;
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

#[cfg(test)]
mod tests {
    use super::{Changed, inside_project};
    use serde_json::json;

    #[test]
    fn a_person_is_asked_about_paths_that_were_changed_only() {
        let changed: Changed = serde_json::from_value(json!({
            "changes": [{ "path": "a/x" }, { "path": "a/y" }, { "path": "from" }, { "path": "to" }, { "path": "o\u{202e}dd" }],
            "renames": [{ "from": "from", "to": "to", "similarity": 100 }],
        }))
        .unwrap();
        let told = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
            changed.told(&paths).map_err(|error| error.text)
        };
        assert_eq!(told(&[]).unwrap(), "everything that it changed (5 changes)");
        assert_eq!(told(&["./a", "a/x"]).unwrap(), "2 changes at 2 of its paths: ./a, a/x");
        assert_eq!(told(&["to"]).unwrap(), "2 changes at 1 of its paths: to");
        assert!(told(&["o\u{202e}dd"]).unwrap().ends_with(r"'o\u{202e}dd'"));
        for wrong in ["", ".", "/", "b", "a/../to", "a/x\nand nothing else", "/a/x"] {
            assert!(
                told(&["a", wrong]).unwrap_err().starts_with("nothing was changed at "),
                "{wrong}"
            );
        }
        assert_eq!(inside_project("a//./b/"), Some("a/b".into()));
    }
}
