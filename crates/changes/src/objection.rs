//! Why something must not come to the host.

use serde::Serialize;

/// A rule that matched, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Objection {
    pub rule: String,
    pub why: String,
}

impl Objection {
    pub fn new(rule: impl Into<String>, why: impl Into<String>) -> Self {
        Self { rule: rule.into(), why: why.into() }
    }
}

/// What is thought of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// It depends on the content: git configuration, path files of Python.
    ByContents,
    Refused(Objection),
}
