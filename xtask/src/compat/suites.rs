//! What is run, as `tests/compat/suites.yaml` lists it: where a suite comes from, how one of its units is started, and
//! which units belong to the short and the long form.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::parse::Parser;

const FILE: &str = "suites.yaml";

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    Short,
    Long,
}

impl Form {
    /// How many processes keep a CPU busy meanwhile.
    pub(crate) fn busy_processes(self) -> usize {
        match self {
            Self::Short => 0,
            Self::Long => 2,
        }
    }
}

/// One suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    pub(crate) name: String,
    /// For the reader of docs/compatibility.md.
    pub(crate) about: String,
    /// The Debian source package that holds the tests.
    #[serde(default)]
    pub(crate) source: Option<Source>,
    pub(crate) parser: Parser,
    /// How a unit is started; `{test}` is its name, `{source}`, `{data}` and `{work}` are directories, `{worker}` a number.
    pub(crate) command: Vec<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Options of `sandbox run`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    #[serde(default)]
    pub(crate) home: Home,
    /// Seconds for one unit.
    pub(crate) deadline: u64,
    /// Exit codes that mean that a test does not apply here.
    #[serde(default)]
    pub(crate) skipped: Vec<i32>,
    /// How often a unit runs in the long form.
    #[serde(default = "once")]
    pub(crate) long_rounds: u32,
    #[serde(default)]
    pub(crate) short: Vec<Test>,
    /// What the long form has beside the short one.
    #[serde(default)]
    pub(crate) long: Vec<Test>,
    /// Units that are not run, or tests in them where the runner is ours, and why.
    #[serde(default)]
    pub(crate) left_out: BTreeMap<String, String>,
}

fn once() -> u32 {
    1
}

/// Tests in a Debian source package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) package: String,
    /// What of it is unpacked.
    pub(crate) parts: Vec<String>,
    /// Where patterns of tests are looked up, relative to the package's root.
    pub(crate) tests: String,
    /// What makes the unpacked tree fit to be run without being built: a script for `sh`, run once in its root.
    #[serde(default)]
    pub(crate) prepare: Option<String>,
}

/// Whose home a suite has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Home {
    /// A new and empty one.
    #[default]
    Own,
    /// The user's, with the settings of package managers.
    Machine,
}

/// A unit or, where there is a source, a pattern of units.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Test {
    Plain(String),
    WithOptions {
        test: String,
        /// More options of `sandbox run`.
        #[serde(default)]
        options: Vec<String>,
        /// Programs without which it is not run.
        #[serde(default)]
        needs: Vec<String>,
    },
}

/// What is started as one process on each side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) options: Vec<String>,
    pub(crate) needs: Vec<String>,
}

/// Reads the list.
pub(crate) fn load() -> Result<Vec<Suite>> {
    let path = super::data_directory().join(FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

impl Suite {
    /// The units of a form, in order, each once.
    pub(crate) fn units(
        &self,
        form: Form,
        source: Option<&Path>,
        filters: &[String],
    ) -> Result<Vec<Unit>> {
        let mut tests = self.short.clone();
        if form == Form::Long {
            tests.extend(self.long.iter().cloned());
        }
        let names = match (&self.source, source) {
            (Some(listed), Some(directory)) => Some(names_in(&directory.join(&listed.tests))?),
            _ => None,
        };
        let mut units = Vec::new();
        for test in &tests {
            let unit = test.unit();
            match &names {
                None => units.push(unit),
                Some(names) => {
                    // A pattern means files of its own directory: scripts keep their parts in others.
                    let matching = names.iter().filter(|name| {
                        name.contains('/') == unit.name.contains('/') && matches(&unit.name, name)
                    });
                    let before = units.len();
                    units.extend(matching.map(|name| Unit { name: name.clone(), ..unit.clone() }));
                    if units.len() == before {
                        bail!("{FILE}: suite {}: no test is named {}", self.name, unit.name);
                    }
                }
            }
        }
        units.retain(|unit| {
            filters.is_empty() || filters.iter().any(|part| unit.name.contains(part))
        });
        units.retain(|unit| !self.left_out.keys().any(|pattern| matches(pattern, &unit.name)));
        units.sort();
        units.dedup_by(|one, other| one.name == other.name);
        Ok(units)
    }
}

impl Test {
    fn unit(&self) -> Unit {
        match self {
            Self::Plain(name) => {
                Unit { name: name.clone(), options: Vec::new(), needs: Vec::new() }
            }
            Self::WithOptions { test, options, needs } => {
                Unit { name: test.clone(), options: options.clone(), needs: needs.clone() }
            }
        }
    }
}

/// The files in a directory and one level below it.
fn names_in(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            for below in fs::read_dir(entry.path())?.flatten() {
                names.push(format!("{name}/{}", below.file_name().to_string_lossy()));
            }
        } else {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a pattern, in which `*` stands for any text, means this name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(found) = left.find(part) else { return false };
        left = &left[found + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("test_os.*.test_chown*", "test_os.PosixTests.test_chown_root"));
        assert!(matches("t0001-init.sh", "t0001-init.sh"));
        assert!(matches("*", ""));
        assert!(!matches("test_os", "test_os2"));
        assert!(!matches("a*bc*b", "abcabc"));
    }

    #[test]
    fn the_committed_list_is_sound() {
        let suites = super::load().expect("readable");
        for (index, suite) in suites.iter().enumerate() {
            assert!(suites[..index].iter().all(|other| other.name != suite.name), "{}", suite.name);
            assert!(!suite.command.is_empty(), "{}", suite.name);
        }
    }
}
