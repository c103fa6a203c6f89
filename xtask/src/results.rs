//! What the last whole test run found, kept for `cargo xtask conformance`.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::tree;

const FILE: &str = "test-results.json";

/// The results of one whole run of the suite.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) tests: Vec<TestResult>,
    pub(crate) proofs: Vec<Proof>,
}

/// One test run by one user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestResult {
    /// `root` or `user`.
    pub(crate) by: String,
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) name: String,
    pub(crate) passed: bool,
}

/// An attack that came out as it must bare, inside, and with its layers off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) test: String,
    pub(crate) id: String,
    pub(crate) clauses: Vec<String>,
    pub(crate) layers: Vec<String>,
}

impl Results {
    pub(crate) fn save(&self) -> Result<()> {
        let path = tree::result_file(FILE)?;
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| path.display().to_string())
    }

    pub(crate) fn load() -> Result<Self> {
        let path = tree::result_file(FILE)?;
        let text = fs::read(&path).with_context(|| {
            format!("no test results at {}: run `cargo xtask test`", path.display())
        })?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
}

/// Reads proofs, one JSON object a line.
pub(crate) fn parse_proofs(lines: &str) -> Result<Vec<Proof>> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("bad proof: {line}")))
        .collect()
}
