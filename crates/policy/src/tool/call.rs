//! One call of a declared tool: its input checked, and the command that it becomes.

use super::built_in::BuiltIn;
use super::declaration::{Action, ToolDeclaration};
use super::input::{InputError, InputValues};
use super::pattern::PatternError;
use super::template::TemplateError;
use serde_json::Value;

/// A call that is in order.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub values: InputValues,
    pub work: Work,
}

/// What has to be done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    Command {
        argv: Vec<String>,
        /// What the command reads at standard input.
        stdin: Option<String>,
    },
    /// A built-in tool that a process of ours inside the sandbox does.
    Files(BuiltIn),
}

/// Why a call is refused before anything runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("the input of {tool} is wrong: {}", list(.errors))]
    Input { tool: String, errors: Vec<InputError> },
    #[error("the input of {tool} is wrong: {error}")]
    Template { tool: String, error: TemplateError },
    #[error("{tool} does not run this: {error}")]
    Pattern { tool: String, error: PatternError },
}

impl CallError {
    /// Whether the declaration forbids it; otherwise the input is no input of this tool.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Pattern { error, .. } => !matches!(error, PatternError::TooLong { .. }),
            Self::Input { .. } | Self::Template { .. } => false,
        }
    }
}

impl ToolDeclaration {
    /// Checks an input and makes the command of it.
    pub fn call(&self, input: &Value) -> Result<ToolCall, CallError> {
        let tool = || self.name.clone();
        let values =
            self.input.check(input).map_err(|errors| CallError::Input { tool: tool(), errors })?;
        let (template, stdin) = match &self.action {
            Action::Command { template, stdin } => (Some(template.clone()), stdin.as_deref()),
            Action::BuiltIn(built_in) => (built_in.command(), None),
        };
        let work = match (template, &self.action) {
            (Some(template), action) => {
                let argv = template
                    .fill(&values)
                    .map_err(|error| CallError::Template { tool: tool(), error })?;
                // What a person would have typed.
                let line = match action {
                    Action::BuiltIn(BuiltIn::Bash) => {
                        values.text("command").unwrap_or_default().to_owned()
                    }
                    _ => command_line(&argv),
                };
                self.patterns
                    .check(&line)
                    .map_err(|error| CallError::Pattern { tool: tool(), error })?;
                let stdin = stdin.and_then(|name| values.text(name)).map(str::to_owned);
                Work::Command { argv, stdin }
            }
            (None, Action::BuiltIn(built_in)) => Work::Files(*built_in),
            (None, Action::Command { .. }) => Work::Command { argv: Vec::new(), stdin: None },
        };
        Ok(ToolCall { values, work })
    }
}

/// Arguments as one line, in the way a shell would read them back.
fn command_line(argv: &[String]) -> String {
    let is_plain = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte))
    };
    let quoted = |word: &String| match is_plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn list(errors: &[InputError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
