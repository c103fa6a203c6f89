//! `docs/compatibility.md`: which suites run, what the last whole runs found, and every intended difference. Written
//! from committed data alone, so that it can be compared: `--document` first copies the figures of the last whole run
//! into `tests/compat/figures.yaml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::differences::{Difference, Differences};
use super::records::{Outcome, Records};
use super::suites::{Form, Suite};
use crate::tree::{self, CheckArguments};

const PAGE: &str = "docs/compatibility.md";
const FIGURES: &str = "tests/compat/figures.yaml";

/// The figures of the last whole runs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    #[serde(default)]
    short: BTreeMap<String, Count>,
    #[serde(default)]
    long: BTreeMap<String, Count>,
}

/// One suite run by one user.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    /// Passed on both sides.
    same: usize,
    intended: usize,
    /// Differences that nothing means.
    differ: usize,
    flaky: usize,
    not_compared: usize,
}

/// Writes the page, or fails unless it says what its data says.
pub(crate) fn write(suites: &[Suite], differences: &Differences, check: bool) -> Result<()> {
    let mut figures = Figures::load()?;
    if !check {
        match Records::load() {
            Ok(records) if records.is_whole => {
                let counted = count(&records);
                match records.form {
                    Form::Short => figures.short = counted,
                    Form::Long => figures.long = counted,
                }
                figures.save()?;
            }
            Ok(_) => {
                eprintln!("the last run had --suite or --filter: the figures stay as they are");
            }
            Err(error) => eprintln!("{error:#}; the figures stay as they are"),
        }
    }
    let text = render(suites, &differences.0, &figures);
    tree::write_or_check(&tree::root().join(PAGE), &text, CheckArguments { check })
}

impl Figures {
    fn load() -> Result<Self> {
        let path = tree::root().join(FIGURES);
        match fs::read_to_string(&path) {
            Ok(text) => serde_saphyr::from_str(&text).context(FIGURES),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).context(FIGURES),
        }
    }

    fn save(&self) -> Result<()> {
        let mut text = "# Written by `cargo xtask compat --document`; do not edit.\n".to_owned();
        text += &serde_saphyr::to_string(self)?;
        fs::write(tree::root().join(FIGURES), text).context(FIGURES)
    }
}

fn count(records: &Records) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for record in &records.tests {
        let count = counts.entry(format!("{} as {}", record.suite, record.by)).or_default();
        let which = match record.outcome {
            Outcome::Same => &mut count.same,
            Outcome::Intended => &mut count.intended,
            Outcome::Differs => &mut count.differ,
            Outcome::FlakyBare | Outcome::FlakyInside => &mut count.flaky,
            Outcome::NotCompared => &mut count.not_compared,
        };
        *which += 1;
    }
    counts
}

fn render(suites: &[Suite], differences: &[Difference], figures: &Figures) -> String {
    let mut text = "# Compatibility\n\n\
        Written by `cargo xtask compat --document`; do not edit. Work inside the sandbox behaves as it does outside. These\n\
        test suites, which other projects wrote for their own programs, and these workloads run bare and inside, as root and\n\
        as an ordinary user, and are compared test by test. A test that passes bare and fails inside is a defect, unless a\n\
        promise of the sandbox means it; those are listed here, each with its reason.\n\n\
        ## What runs\n\n\
        | suite | what it is | in CI |\n| --- | --- | --- |\n"
        .to_owned();
    for suite in suites {
        let in_ci = if suite.short.is_empty() { "no" } else { "yes" };
        let _ = writeln!(text, "| `{}` | {} | {in_ci} |", suite.name, suite.about);
    }
    for (title, counts) in
        [("The short form, as in CI", &figures.short), ("The long form", &figures.long)]
    {
        if counts.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n## {title}\n\n| suite | same | intended | differ | flaky | fail bare |\n\
             | --- | --- | --- | --- | --- | --- |\n"
        );
        for (name, count) in counts {
            let Count { same, intended, differ, flaky, not_compared } = count;
            let _ = writeln!(
                text,
                "| {name} | {same} | {intended} | {differ} | {flaky} | {not_compared} |"
            );
        }
    }
    text += "\n## Intended differences\n\n";
    if differences.is_empty() {
        text += "None.\n";
    }
    let mut sorted = differences.to_vec();
    sorted.sort();
    for difference in sorted {
        let tests: Vec<String> = difference.tests.iter().map(|test| format!("`{test}`")).collect();
        let by = difference.by.map_or_else(String::new, |by| format!(" as {by}"));
        let _ = writeln!(
            text,
            "- **{}{by}** ({}): {} {}",
            difference.suite,
            difference.clause,
            difference.reason.trim(),
            tests.join(", ")
        );
    }
    text += "\n## Tests that are not run\n\n";
    let left_out = suites.iter().flat_map(|suite| {
        suite.left_out.iter().map(move |(test, why)| format!("- {} `{test}`: {why}\n", suite.name))
    });
    text += &left_out.collect::<String>();
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Count, Difference, Figures, render};

    #[test]
    fn a_page_is_sorted_and_names_the_promise() {
        let difference = |suite: &str| Difference {
            suite: suite.to_owned(),
            tests: vec!["t.*".to_owned()],
            by: Some("root".to_owned()),
            reason: "no set-user-id".to_owned(),
            clause: "FS-1 x".to_owned(),
        };
        let count = Count { same: 3, ..Count::default() };
        let figures = Figures {
            short: BTreeMap::from([("b as root".to_owned(), count)]),
            ..Figures::default()
        };
        let text = render(&[], &[difference("b"), difference("a")], &figures);
        assert!(text.contains("| b as root | 3 | 0 | 0 | 0 | 0 |"), "{text}");
        let entries: Vec<&str> = text.lines().filter(|line| line.starts_with("- **")).collect();
        assert_eq!(entries[0], "- **a as root** (FS-1 x): no set-user-id `t.*`");
        assert_eq!(entries.len(), 2);
    }
}
