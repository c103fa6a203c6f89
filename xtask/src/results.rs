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

/// One attack as the tests declare it, and how it came out for one caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Proof {
    /// `root` or `user`; the runner knows it, the test does not say it.
    #[serde(default)]
    pub(crate) by: String,
    pub(crate) test: String,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) clauses: Vec<String>,
    /// The smallest set of layers whose absence lets it through; none where that caller does not try.
    pub(crate) as_root: Option<Vec<String>>,
    pub(crate) as_user: Option<Vec<String>>,
    pub(crate) one_caller: Option<String>,
    pub(crate) by_design: Option<String>,
    pub(crate) no_bare_run: Option<String>,
    pub(crate) needs: Option<String>,
    pub(crate) bare: Bare,
    pub(crate) inside: Inside,
    pub(crate) off: Off,
}

/// How an attack went on the bare host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bare {
    NotTried,
    Works,
    Fails,
    Impossible,
}

/// How it went inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inside {
    NotTried,
    Unclear,
    Held,
    LetThrough,
}

/// How it went with its layers off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Off {
    NotTried,
    Works,
    StillHeld,
    SmallerSetSuffices,
    NoLayer,
}

impl Proof {
    /// Worked bare, was held inside, and worked again with its layers off and no fewer.
    pub(crate) fn is_three_way(&self) -> bool {
        self.bare == Bare::Works && self.inside == Inside::Held && self.off == Off::Works
    }
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

/// Reads what one caller's tests wrote, one JSON object a line.
pub(crate) fn parse_proofs(lines: &str, by: &str) -> Result<Vec<Proof>> {
    lines
        .lines()
        .map(|line| {
            let proof: Proof =
                serde_json::from_str(line).with_context(|| format!("bad proof: {line}"))?;
            Ok(Proof { by: by.to_owned(), ..proof })
        })
        .collect()
}
