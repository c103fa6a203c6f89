//! Finds what tests say they prove: `Proves:` lines in the comment right above a `#[test]`.
//! A line that belongs to no test is an error, or a promise would look proven by a typo.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::requirements::Clause;
use crate::results::TestResult;
use crate::tree;

/// One test and the clauses it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) source: Source,
    pub(crate) function: String,
    pub(crate) clauses: Vec<Clause>,
}

/// Where a test stands, in the terms libtest uses for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: String,
    package: String,
    /// Known for integration tests only.
    target: Option<String>,
    /// The module the file is, or tests; none for the root of a crate.
    module: Option<String>,
}

/// Every claim in the tree, in order, and every malformed one.
pub(crate) fn scan() -> Result<(Vec<Claim>, Vec<anyhow::Error>)> {
    let mut claims = Vec::new();
    let mut errors = Vec::new();
    for file in tree::rust_files()? {
        let path = tree::root().join(&file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        scan_file(&Source::of(&file), &text, &mut claims, &mut errors);
    }
    Ok((claims, errors))
}

fn scan_file(
    source: &Source,
    text: &str,
    claims: &mut Vec<Claim>,
    errors: &mut Vec<anyhow::Error>,
) {
    let mut pending = Vec::new();
    let mut is_test = false;
    for (index, line) in text.lines().enumerate() {
        let place = format!("{}:{}", source.file, index + 1);
        let line = line.trim();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//"));
        if let Some(list) = comment.and_then(|text| text.trim().strip_prefix("Proves:")) {
            for item in list.split(',') {
                match item.parse::<Clause>() {
                    Ok(clause) => pending.push(clause),
                    Err(error) => errors.push(error.context(place.clone())),
                }
            }
        } else if comment.is_some() {
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]";
        } else {
            let clauses = std::mem::take(&mut pending);
            match function_name(line).filter(|_| is_test) {
                _ if clauses.is_empty() => {}
                Some(function) => {
                    claims.push(Claim { source: source.clone(), function, clauses });
                }
                None => {
                    errors.push(anyhow!("{place}: the `Proves:` line above belongs to no test"));
                }
            }
            is_test = false;
        }
    }
}

fn function_name(line: &str) -> Option<String> {
    let (_, after) = line.split_once("fn ")?;
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

impl Source {
    fn of(file: &Path) -> Self {
        let parts: Vec<String> =
            file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let words: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (package, target, inner): (String, Option<&str>, &[&str]) = match words.as_slice() {
            // The tests at the root belong to the package of the binary they test.
            ["tests", target, inner @ ..] => ("crates/cli".to_owned(), Some(target), inner),
            ["crates", name, "tests", inner @ ..] => {
                (format!("crates/{name}"), integration_target(inner), inner)
            }
            ["crates", name, "src", inner @ ..] => (format!("crates/{name}"), None, inner),
            ["xtask", "tests", inner @ ..] => {
                ("xtask".to_owned(), integration_target(inner), inner)
            }
            ["xtask", "src", inner @ ..] => ("xtask".to_owned(), None, inner),
            other => (String::new(), None, other),
        };
        let target = target.map(|name| name.trim_end_matches(".rs").to_owned());
        let module = module_of(inner).filter(|module| target.as_ref() != Some(module));
        Self { file: file.to_string_lossy().into_owned(), package, target, module }
    }

    /// Whether this result is of the named test in this file.
    pub(crate) fn owns(&self, function: &str, result: &TestResult) -> bool {
        let path: Vec<&str> = result.name.split("::").collect();
        self.package == result.package
            && self.target.as_ref().is_none_or(|target| *target == result.target)
            && path.last() == Some(&function)
            && self.module.as_ref().is_none_or(|module| path.iter().any(|part| names(part, module)))
    }
}

/// A file `x_tests.rs` holds the tests of module `x`, or is a module of that name itself.
fn names(part: &str, module: &str) -> bool {
    part == module || part.strip_suffix("_tests") == Some(module)
}

fn integration_target<'a>(inner: &[&'a str]) -> Option<&'a str> {
    inner.first().copied()
}

fn module_of(inner: &[&str]) -> Option<String> {
    let (file, directories) = inner.split_last()?;
    let stem = file.trim_end_matches(".rs");
    let stem = stem.strip_suffix("_tests").unwrap_or(stem);
    match stem {
        "lib" | "main" => None,
        "mod" | "tests" => directories.last().map(|&directory| directory.to_owned()),
        _ => Some(stem.to_owned()),
    }
}

#[cfg(test)]
#[path = "proves_tests.rs"]
mod tests;
