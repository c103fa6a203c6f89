//! What is wrong with a policy, where, and how to fix it.
//!
//! Every error of this crate is a [`Diagnostic`]: users must be able to go to the line and fix it without
//! reading anything else.

use serde::Serialize;
use std::fmt;

/// The kind of problem, for callers that act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Neither JSON nor YAML, or not a mapping at the top.
    Syntax,
    UnknownKey,
    /// A preset, tool, lock or system call that does not exist.
    UnknownName,
    WrongType,
    DuplicateKey,
    Contradiction,
    /// The organisation locked the key, and the value would loosen it.
    Locked,
    /// The key belongs in another layer.
    WrongLayer,
    AboveMaximum,
    NeedsApproval,
    NotEnforced,
    /// A note: an untrusted project asked for more and did not get it.
    Untrusted,
    /// A warning: the file loads, and something in it does not do what it seems to.
    Questionable,
}

/// One problem. `line` and `column` count from 1; both are 0 if the value came from a flag or a variable, and
/// `file` is its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Diagnostic {
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The full path of the key, empty if the whole file is wrong.
    pub key: String,
    pub problem: Problem,
    pub message: String,
    /// For unknown keys, words and names: the nearest valid one. Otherwise how to fix the problem.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(
        problem: Problem,
        origin: &Origin,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Diagnostic {
            file: origin.file.to_string(),
            line: origin.line,
            column: origin.column,
            key: key.into(),
            problem,
            message: message.into(),
            suggestion: None,
        }
    }

    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(out, "{}: {}", self.file, self.message)?;
        } else {
            write!(out, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        }
        match (&self.suggestion, self.problem) {
            (Some(nearest), Problem::UnknownKey | Problem::UnknownName) => {
                write!(out, "; did you mean `{nearest}`?")
            }
            (Some(fix), _) => write!(out, "; {fix}"),
            (None, _) => Ok(()),
        }
    }
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) file: std::sync::Arc<str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Origin {
    pub(crate) fn new(file: &std::sync::Arc<str>, at: crate::syntax::tree::Position) -> Self {
        Origin { file: file.clone(), line: at.line, column: at.column }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(out, "{}", self.file)
        } else {
            write!(out, "{}:{}", self.file, self.line)
        }
    }
}
