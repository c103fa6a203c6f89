//! The paths that a rule applies to: one path, a directory with everything below, or a glob.

use crate::glob::{self, Glob, GlobError, Parsed};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Exactly this path.
    Exact(PathBuf),
    /// This directory and everything below it.
    Tree(PathBuf),
    Glob(Glob),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a rule's path begins with / or ~/")]
    NotAbsolute,
    #[error("there is no home directory for ~/ to stand for")]
    NoHome,
    #[error(transparent)]
    Glob(#[from] GlobError),
}

impl Pattern {
    /// Parses a pattern as written in a policy: `/x/file`; `/x/` or `/x/**` for a directory with everything
    /// below; `/x/*.h`; and `~/` for the home directory.
    pub fn parse(text: &str, home: Option<&Path>) -> Result<Self, PatternError> {
        let mut whole = Vec::new();
        match text.strip_prefix("~/") {
            Some(below) => {
                let home = home.ok_or(PatternError::NoHome)?;
                glob::escape(home.as_os_str().as_bytes(), &mut whole);
                whole.push(b'/');
                whole.extend(below.as_bytes());
            }
            None if text.starts_with('/') => whole.extend(text.as_bytes()),
            None => return Err(PatternError::NotAbsolute),
        }
        if whole.ends_with(b"/") {
            whole.extend(b"**");
        }
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        Ok(match glob::parse(&whole)? {
            Parsed::Path(bytes) => Pattern::Exact(path(bytes)),
            Parsed::Tree(bytes) => Pattern::Tree(path(bytes)),
            Parsed::Glob(glob) => Pattern::Glob(glob),
        })
    }

    /// Checks whether a text is a valid pattern, for callers without a home directory.
    pub fn check(text: &str) -> Result<(), PatternError> {
        Self::parse(text, Some(Path::new("/home"))).map(|_| ())
    }

    /// As a policy writes it, so that [`Pattern::parse`] returns the same pattern. `None` if that is
    /// impossible: for a path that is not UTF-8, and for `/` without its contents.
    pub fn text(&self) -> Option<String> {
        let mut text = Vec::new();
        match self {
            Pattern::Exact(path) if path == Path::new("/") => return None,
            Pattern::Exact(path) => glob::escape(path.as_os_str().as_bytes(), &mut text),
            Pattern::Tree(path) => {
                glob::escape(path.as_os_str().as_bytes(), &mut text);
                text.extend(if text.ends_with(b"/") { b"**".as_slice() } else { b"/**" });
            }
            Pattern::Glob(glob) => text = glob.text(),
        }
        String::from_utf8(text).ok()
    }

    /// The exact path, or the top of the tree.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Pattern::Exact(path) | Pattern::Tree(path) => Some(path),
            Pattern::Glob(_) => None,
        }
    }

    /// Whether the pattern could match something at or below `tree`.
    pub fn may_be_within(&self, tree: &Path) -> bool {
        match self {
            Pattern::Exact(path) => path.starts_with(tree),
            Pattern::Tree(top) => top.starts_with(tree) || tree.starts_with(top),
            Pattern::Glob(glob) => {
                let begins = Path::new(OsStr::from_bytes(glob.directory()));
                begins.as_os_str().is_empty()
                    || begins.starts_with(tree)
                    || tree.starts_with(begins)
            }
        }
    }

    /// `path` is absolute, without `.`, `..` and repeated slashes.
    pub fn matches(&self, path: &Path) -> bool {
        match self {
            Pattern::Exact(exact) => exact == path,
            Pattern::Tree(top) => path.starts_with(top),
            Pattern::Glob(glob) => glob.matches(path.as_os_str().as_bytes()),
        }
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
