//! Declared tools that the server was asked to offer: each call runs in a sandbox of its own, under the tool's policy, and not in the
//! sandbox of the other tools.

use super::answer::{ToolAnswer, ToolError};
use crate::context::CallContext;
use crate::options::OfferedTool;
use crate::text::lossy;
use palisade_service::ToolToRun;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// Of the violations that a model is told about.
const MAX_TOLD: usize = 10;

/// A call with its arguments, which the declaration's own schema checks.
#[derive(Debug)]
pub(crate) struct DeclaredCall {
    pub(crate) name: String,
    /// Of the declaration that was offered.
    pub(crate) sha256: String,
    pub(crate) input: JsonObject,
}

/// What clients are told about one.
pub(crate) fn tool(offered: &OfferedTool) -> Tool {
    let object = |schema: Value| match schema {
        Value::Object(members) => Arc::new(members),
        _ => Arc::default(),
    };
    // What it does is not known here, so clients ask as for the worst.
    let annotations = ToolAnnotations::with_title(&offered.name).read_only(false).destructive(true);
    Tool::new(offered.name.clone(), offered.description.clone(), object(offered.input.clone()))
        .with_raw_output_schema(object(output_schema()))
        .with_annotations(annotations)
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool": { "type": "string" },
            "sessionId": { "type": "string", "description": "The sandbox in which it ran" },
            "outcome": { "type": "string", "description": "completed, signalled, timeout and others" },
            "exitCode": { "type": "integer" },
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
            "truncated": { "type": "boolean", "description": "Whether there was more output" },
            "usage": { "type": "object" },
            "violations": { "type": "array", "description": "What it tried and was not allowed", "items": { "type": "object" } },
            "transaction": { "type": "object", "description": "Changes that wait to be applied" },
            "failure": { "type": "object", "description": "Why it was stopped" },
        },
        "required": ["tool", "sessionId", "outcome", "exitCode", "stdout", "stderr", "truncated", "violations"],
    })
}

pub(crate) async fn run(call: &CallContext, wanted: DeclaredCall) -> Result<ToolAnswer, ToolError> {
    let server = &call.server;
    let input = Value::Object(wanted.input);
    let tool =
        ToolToRun { name: &wanted.name, files: &server.tool_files, sha256: Some(&wanted.sha256) };
    let result = server.operations.run_tool(tool, &input, call.trace_variables()).await?;
    ToolAnswer::new(text_of(&result), &result)
}

fn text_of(result: &Value) -> String {
    let word = |name: &str| result[name].as_str().unwrap_or_default();
    let mut text = lossy(word("stdout").as_bytes());
    let errors = lossy(word("stderr").as_bytes());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&errors);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a text does not fail.
    let _ = match word("outcome") {
        "completed" => write!(text, "[exit code {}]", result["exitCode"]),
        other => write!(text, "[{other}; exit code {}]", result["exitCode"]),
    };
    if result["truncated"] == json!(true) {
        text.push_str(" [the rest of the output was left out]");
    }
    if let Some(message) = result["failure"]["message"].as_str() {
        let _ = write!(text, "\n{}", lossy(message.as_bytes()));
    }
    for violation in result["violations"].as_array().into_iter().flatten().take(MAX_TOLD) {
        let part = |name: &str| lossy(violation[name].as_str().unwrap_or_default().as_bytes());
        let _ = write!(
            text,
            "\n[not allowed: {} {} {}]",
            part("kind"),
            part("access"),
            part("subject")
        );
    }
    if let Some(count) = result["transaction"]["waitingChanges"].as_u64().filter(|it| *it > 0) {
        let _ = write!(text, "\n[{count} changes wait in session {}]", word("sessionId"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text_of;
    use serde_json::json;

    #[test]
    fn a_model_is_told_what_the_tool_said_and_what_it_was_not_allowed() {
        let result = json!({
            "sessionId": "s", "outcome": "completed", "exitCode": 1, "stdout": "one", "stderr": "two\n",
            "truncated": false, "violations": [{ "kind": "access", "access": "read", "subject": "/x", "count": 1 }],
            "transaction": { "waitingChanges": 2, "appliedChanges": 0 },
        });
        let told =
            "one\ntwo\n[exit code 1]\n[not allowed: access read /x]\n[2 changes wait in session s]";
        assert_eq!(text_of(&result), told);
    }
}
