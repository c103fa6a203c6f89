//! The differences that a promise means, as `tests/compat/differences.yaml` lists them with a reason each. Any other
//! difference fails the task; an entry that nothing differs by any more is reported.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::records::{Outcome, Records};
use super::suites::{self, Suite};
use crate::requirements::{self, Clause};

const FILE: &str = "differences.yaml";

/// One intended difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    pub(crate) suite: String,
    /// Names of tests, in which `*` stands for any text.
    pub(crate) tests: Vec<String>,
    /// `root` or `user`; both if left out.
    #[serde(default)]
    pub(crate) by: Option<String>,
    pub(crate) reason: String,
    /// The promise that means it, such as `FS-7 private-tmp`.
    pub(crate) clause: String,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Differences(pub(crate) Vec<Difference>);

/// What a run comes to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Differences that nothing means.
    pub(crate) unexplained: usize,
    /// Patterns whose tests ran and were the same on both sides.
    pub(crate) stale: Vec<String>,
    /// Nothing ran.
    pub(crate) is_empty: bool,
}

impl Differences {
    /// Reads the list; a clause that was never promised is an error.
    pub(crate) fn load() -> Result<Self> {
        let path = super::data_directory().join(FILE);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let list: Vec<Difference> =
            serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        let requirements = requirements::load()?;
        for difference in &list {
            difference
                .clause
                .parse::<Clause>()
                .and_then(|clause| requirements::check_known(&clause, &requirements))
                .with_context(|| format!("{FILE}: {}", difference.tests.join(", ")))?;
        }
        Ok(Self(list))
    }

    /// Whether a difference of this test is intended.
    pub(crate) fn mean(&self, suite: &str, test: &str, by: &str) -> bool {
        self.0
            .iter()
            .any(|known| known.tests.iter().any(|pattern| known.names(pattern, (suite, test, by))))
    }

    /// Marks what is intended, and counts what is not.
    pub(crate) fn judge(&self, records: &mut Records, suites: &[Suite]) -> Verdict {
        for record in &mut records.tests {
            let differs = matches!(record.outcome, Outcome::Differs | Outcome::FlakyInside);
            if differs && self.mean(&record.suite, &record.test, &record.by) {
                record.outcome = Outcome::Intended;
            }
        }
        let unexplained =
            records.tests.iter().filter(|record| record.outcome == Outcome::Differs).count();
        let mut stale = Vec::new();
        for difference in &self.0 {
            if !suites.iter().any(|suite| suite.name == difference.suite) {
                stale.push(format!("{}: there is no such suite", difference.suite));
            }
            for pattern in &difference.tests {
                let mut ran = records
                    .tests
                    .iter()
                    .filter(|record| {
                        difference.names(pattern, (&record.suite, &record.test, &record.by))
                    })
                    .peekable();
                let has_run = ran.peek().is_some();
                if has_run && !ran.any(|record| record.outcome != Outcome::Same) {
                    stale.push(format!("{} {pattern}", difference.suite));
                }
            }
        }
        Verdict { unexplained, stale, is_empty: records.tests.is_empty() }
    }
}

impl Difference {
    fn names(&self, pattern: &str, (suite, test, by): (&str, &str, &str)) -> bool {
        suite == self.suite
            && self.by.as_ref().is_none_or(|only| only == by)
            && suites::matches(pattern, test)
    }
}

impl Verdict {
    pub(crate) fn into_result(self) -> Result<()> {
        if self.is_empty {
            bail!("no test matches");
        }
        match self.unexplained {
            0 => Ok(()),
            count => bail!(
                "{count} tests pass bare and fail inside; logs are in target/palisade/compat-logs"
            ),
        }
    }
}

#[cfg(test)]
#[path = "differences_tests.rs"]
mod tests;
