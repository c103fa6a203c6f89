//! Expands paths as users and lists write them: `~`, `$VAR`, `${VAR:-default}`, relative paths.
//!
//! Works on text only and must not look at the host. `..` is left to the resolver, which handles links.

use crate::error::{PlanError, Result};
use crate::facts::HostFacts;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// The values that names in a path expand to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    facts: &'a HostFacts,
    /// The directory that relative paths start from.
    base: &'a Path,
}

/// A variable without a value.
#[derive(Debug, PartialEq, Eq)]
struct Unset(String);

impl<'a> Scope<'a> {
    pub(crate) fn new(facts: &'a HostFacts) -> Self {
        Self { facts, base: &facts.cwd }
    }

    /// A path that the user wrote; an unset variable is an error.
    pub(crate) fn typed(&self, text: &str) -> Result<PathBuf> {
        if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
            return Err(PlanError::OtherHome { text: text.to_owned() });
        }
        let path = self
            .expand(text)
            .map_err(|Unset(variable)| PlanError::UnsetVariable { text: text.into(), variable })?;
        Ok(tidy(&self.base.join(path)))
    }

    /// A path of a shipped list; `None` if it depends on an unset variable.
    pub(crate) fn listed(&self, text: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.expand(text).ok()?);
        path.is_absolute().then_some(path)
    }

    fn expand(&self, text: &str) -> Result<OsString, Unset> {
        let mut out = OsString::with_capacity(text.len() + 24);
        let mut rest = text;
        if let Some(after) = text.strip_prefix('~') {
            out.push(self.variable("HOME")?);
            rest = after;
        }
        while let Some(at) = rest.find('$') {
            out.push(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(inside) = rest.strip_prefix('{') {
                let end = closing_brace(inside);
                out.push(self.braced(&inside[..end])?);
                rest = inside.get(end + 1..).unwrap_or_default();
            } else {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                out.push(self.variable(&rest[..end])?);
                rest = &rest[end..];
            }
        }
        out.push(rest);
        Ok(out)
    }

    fn braced(&self, inside: &str) -> Result<OsString, Unset> {
        let parts = inside.split_once(':');
        match parts.and_then(|(name, rest)| Some((name, rest.strip_prefix('-')?))) {
            Some((name, default)) => match self.value(name) {
                // A relative value would name a different place in every directory.
                Some(value) if Path::new(value).is_absolute() => Ok(value.to_owned()),
                _ => self.expand(default),
            },
            None => self.variable(inside).map(OsStr::to_owned),
        }
    }

    fn variable(&self, name: &str) -> Result<&'a OsStr, Unset> {
        self.value(name).ok_or_else(|| Unset(format!("${name}")))
    }

    fn value(&self, name: &str) -> Option<&'a OsStr> {
        if name == "HOME" {
            return self.facts.home.as_deref().map(Path::as_os_str);
        }
        let value = self.facts.env.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value.as_os_str())
    }
}

/// The end of `NAME:-DEFAULT`. The default may contain braces.
fn closing_brace(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Removes `.` and repeated slashes; `..` stays.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
