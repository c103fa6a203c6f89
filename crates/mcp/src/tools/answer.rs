//! What a tool is answered with: text for a model, the same as data, and errors that say what to do. Their class and causes
//! are for programs, in `_meta` (ERR-1): some clients hold structured content against the output schema also where it is
//! that of an error.

use palisade_service::{Problem, ProblemKind};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::{Value, json};

/// The member of a result's `_meta` that has an error's class and causes.
const ERROR: &str = "palisade/error";

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
        let data =
            serde_json::to_value(data).map_err(|error| ToolError::ours(error.to_string()))?;
        Ok(Self { text: text.into(), data, may_be_denied: false })
    }
}

/// Why a tool did not do it, in words that a model can act on.
#[derive(Clone, Debug)]
pub(crate) struct ToolError {
    pub(crate) text: String,
    pub(crate) kind: ProblemKind,
    /// What led to it, nearest first.
    causes: Vec<String>,
    pub(crate) may_be_denied: bool,
}

impl ToolError {
    pub(crate) fn new(kind: ProblemKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind, causes: Vec::new(), may_be_denied: false }
    }

    /// The arguments ask for something that cannot be.
    pub(crate) fn wrong(text: impl Into<String>) -> Self {
        Self::new(ProblemKind::Validation, text)
    }

    /// Something failed that the call has no part in.
    pub(crate) fn ours(text: impl Into<String>) -> Self {
        Self::new(ProblemKind::Initialisation, text)
    }

    #[must_use]
    pub(crate) fn perhaps_denied(self) -> Self {
        Self { may_be_denied: true, ..self }
    }

    /// For programs.
    fn meta(&self) -> MetaObject {
        let mut about = json!({ "kind": self.kind });
        if !self.causes.is_empty() {
            about["causes"] = json!(self.causes);
        }
        let mut meta = MetaObject::default();
        meta.insert(ERROR.to_owned(), about);
        meta
    }
}

impl From<Problem> for ToolError {
    fn from(problem: Problem) -> Self {
        let mut text = problem.detail().to_owned();
        if let Some(held) = problem.held() {
            text.push('\n');
            text.push_str(&held.to_string());
        }
        let causes = problem.causes().to_vec();
        Self { text, kind: problem.kind(), causes, may_be_denied: true }
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
        Err(error) => {
            let meta = error.meta();
            let mut result =
                CallToolResult::error(vec![ContentBlock::text(with_denials(error.text))]);
            result.meta = Some(meta);
            result
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ProblemKind, ToolError, result};
    use serde_json::json;

    /// Proves: ERR-1 mcp
    #[test]
    fn an_error_tells_programs_its_class_and_what_led_to_it() {
        let causes = vec!["the disk is full".to_owned()];
        let error = ToolError { causes, ..ToolError::new(ProblemKind::Resource, "not written") };
        let told = serde_json::to_value(result(Err(error), &[])).unwrap();
        let about = json!({ "kind": "resource", "causes": ["the disk is full"] });
        assert_eq!(told["_meta"], json!({ "palisade/error": about }));
        assert_eq!(told["isError"], true);
    }
}
