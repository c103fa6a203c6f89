//! One record for each test and user: what became of it bare and inside. Kept for `--document`.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::parse::Status;
use super::suites::Form;
use crate::tree;

const FILE: &str = "compat-results.json";

/// One test run by one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) suite: String,
    pub(crate) unit: String,
    pub(crate) test: String,
    /// `root` or `user`.
    pub(crate) by: String,
    pub(crate) bare: Status,
    pub(crate) inside: Status,
    pub(crate) outcome: Outcome,
    /// Failures inside, and how often it was tried there.
    pub(crate) failed_inside: u32,
    pub(crate) tried_inside: u32,
}

/// What comparing both sides says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// Passed on both sides.
    Same,
    /// Did not pass bare, and so says nothing.
    NotCompared,
    /// Passed and failed bare.
    FlakyBare,
    /// Failed inside once and then passed each time: reported, and not counted.
    FlakyInside,
    /// Passed bare each time and failed inside more than once.
    Differs,
    /// The same, and a promise means it to.
    Intended,
}

/// What a run found.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Records {
    pub(crate) form: Form,
    /// Every suite ran, and all of it.
    pub(crate) is_whole: bool,
    pub(crate) tests: Vec<Record>,
}

impl Records {
    pub(crate) fn new(form: Form, is_whole: bool) -> Self {
        Self { form, is_whole, tests: Vec::new() }
    }

    pub(crate) fn add(&mut self, found: Vec<Record>) {
        self.tests.extend(found);
    }

    pub(crate) fn save(&mut self) -> Result<()> {
        self.tests.sort_by(|one, other| {
            (&one.suite, &one.test, &one.by).cmp(&(&other.suite, &other.test, &other.by))
        });
        let path = tree::result_file(FILE)?;
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| path.display().to_string())
    }

    pub(crate) fn load() -> Result<Self> {
        let path = tree::result_file(FILE)?;
        let text = fs::read(&path).with_context(|| {
            format!("no results at {}: run `cargo xtask compat`", path.display())
        })?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
}
