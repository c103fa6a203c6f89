//! What a tool is answered with: text for a model, the same as data, and errors that say what to do.

use palisade_service::Problem;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

/// What a tool did.
#[derive(Clone, Debug)]
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    /// As its output schema says.
    pub(crate) data: Value,
    /// Whether something went wrong that a denial may explain.
    pub(crate) may_be_denied: bool,
}

impl ToolAnswer {
    pub(crate) fn new(text: impl Into<String>, data: &impl Serialize) -> Result<Self, ToolError> {
        let data = serde_json::to_value(data).map_err(|error| ToolError::new(error.to_string()))?;
        Ok(Self { text: text.into(), data, may_be_denied: false })
    }
}

/// Why a tool did not do it, in words that a model can act on.
#[derive(Clone, Debug)]
pub(crate) struct ToolError {
    pub(crate) text: String,
    pub(crate) may_be_denied: bool,
}

impl ToolError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), may_be_denied: false }
    }
}

impl From<Problem> for ToolError {
    fn from(problem: Problem) -> Self {
        let mut text = problem.detail().to_owned();
        if let Some(held) = problem.held() {
            text.push('\n');
            text.push_str(&held.to_string());
        }
        Self { text, may_be_denied: true }
    }
}

/// The result of a call. An error of a tool is a result, too: the protocol's own errors never reach the model.
pub(crate) fn result(done: Result<ToolAnswer, ToolError>, denials: &[String]) -> CallToolResult {
    let with_denials = |text: String| match denials {
        [] => text,
        _ => format!("{text}\n\n{}", denials.join("\n")),
    };
    match done {
        Ok(answer) => {
            let mut result =
                CallToolResult::success(vec![ContentBlock::text(with_denials(answer.text))]);
            result.structured_content = Some(answer.data);
            result
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(with_denials(error.text))]),
    }
}
