//! What came of the tests of one unit, read from what their own runner says.

use std::collections::BTreeMap;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    Passed,
    Failed,
    Skipped,
    /// Its unit was killed at the deadline before this test said anything.
    TimedOut,
    /// Its unit ended and said nothing of it.
    Missing,
}

/// The tests of a unit by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) tests: BTreeMap<String, Status>,
    /// What tests that are not listed became.
    pub(crate) rest: Option<Status>,
}

/// What one run of a unit left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) unit: &'a str,
    /// Standard output and error.
    pub(crate) log: &'a str,
    /// What a runner of ours wrote into the file that `RECORDS` names.
    pub(crate) records: &'a str,
    /// None if it was killed at the deadline.
    pub(crate) status: Option<ExitStatus>,
}

/// The languages of test runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Parser {
    /// Lines `passed NAME`, `failed NAME`, `skipped NAME` in the file of records.
    Records,
    /// The Test Anything Protocol, as git's tests speak it.
    Tap,
    /// Lines `PASS: NAME`, `FAIL: NAME`, `SKIPPED: NAME`.
    Automake,
    /// One test a unit, and its exit status.
    ExitStatus,
}

impl Found {
    /// What became of a test.
    pub(crate) fn status(&self, test: &str) -> Status {
        self.tests.get(test).copied().or(self.rest).unwrap_or(Status::Missing)
    }
}

impl Parser {
    pub(crate) fn parse(self, output: &Output<'_>, skipped: &[i32]) -> Found {
        let lines: Vec<(Status, String)> = match self {
            Self::Records => output.records.lines().filter_map(record).collect(),
            Self::Tap => output.log.lines().filter_map(tap).collect(),
            Self::Automake => output.log.lines().filter_map(automake).collect(),
            Self::ExitStatus => vec![(exit_status(output, skipped), String::new())],
        };
        let mut found = Found::default();
        for (status, test) in lines {
            let name = match test.as_str() {
                "" => output.unit.to_owned(),
                test => format!("{}.{test}", output.unit),
            };
            // A test that is named twice, as with subtests, passed only if all of it did.
            let worst = found.tests.get(&name).map_or(status, |known| worse(*known, status));
            found.tests.insert(name, worst);
        }
        found.rest = match output.status {
            None => Some(Status::TimedOut),
            Some(_) => Some(Status::Missing),
        };
        found
    }
}

fn worse(one: Status, other: Status) -> Status {
    if one == Status::Failed || other == Status::Failed { Status::Failed } else { one.max(other) }
}

fn record(line: &str) -> Option<(Status, String)> {
    let (word, name) = line.split_once(' ')?;
    let status = match word {
        "passed" => Status::Passed,
        "failed" => Status::Failed,
        "skipped" => Status::Skipped,
        _ => return None,
    };
    Some((status, name.to_owned()))
}

/// `ok 3 - name`, `not ok 4 - name # TODO known breakage`, `ok 5 # skip name (missing X)`. A test is known by its name:
/// numbers change from version to version.
fn tap(line: &str) -> Option<(Status, String)> {
    let (has_passed, rest) = match line.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok ")?),
    };
    let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
    number.parse::<u32>().ok()?;
    let skipped = text.strip_prefix("# skip");
    let (text, is_known_to_break) = match text.split_once("# TODO") {
        Some((text, _)) => (text, true),
        None => (text, false),
    };
    let status = match has_passed {
        _ if skipped.is_some() || is_known_to_break => Status::Skipped,
        true => Status::Passed,
        false => Status::Failed,
    };
    let name = skipped.unwrap_or(text).trim().trim_start_matches("- ");
    Some((status, if name.is_empty() { number } else { name }.to_owned()))
}

fn automake(line: &str) -> Option<(Status, String)> {
    let (word, name) = line.split_once(": ")?;
    let status = match word {
        "PASS" => Status::Passed,
        "FAIL" => Status::Failed,
        "SKIPPED" | "SKIP" | "UNTESTED" => Status::Skipped,
        _ => return None,
    };
    Some((status, name.trim().to_owned()))
}

fn exit_status(output: &Output<'_>, skipped: &[i32]) -> Status {
    let Some(status) = output.status else { return Status::TimedOut };
    // What Node's tests say before they end with 0.
    let says_skipped = output.log.lines().any(|line| line.starts_with("1..0 # Skipped"));
    match status.code() {
        Some(code) if skipped.contains(&code) => Status::Skipped,
        Some(0) if says_skipped => Status::Skipped,
        Some(0) => Status::Passed,
        _ => Status::Failed,
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
