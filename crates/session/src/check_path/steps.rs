//! The checks of a path that need no access to the tree. `..` is kept: its meaning depends on links in the tree.

use super::refusal::Refusal;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// `PATH_MAX` without the NUL; see limits.h(0p).
const MAX_PATH_BYTES: usize = 4095;
/// `NAME_MAX`.
const MAX_NAME_BYTES: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Up,
    Into(OsString),
}

/// The steps of a caller's path below the root, which has all of these names.
pub(super) fn below_root(path: &Path, root_names: &[PathBuf]) -> Result<Vec<Step>, Refusal> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Refusal::Empty);
    }
    if bytes.contains(&0) {
        return Err(Refusal::Nul);
    }
    if bytes.len() > MAX_PATH_BYTES {
        return Err(Refusal::TooLong { bytes: bytes.len(), most: MAX_PATH_BYTES });
    }
    let root = || root_names.first().cloned().unwrap_or_default();
    let steps = relative(path, root_names).ok_or_else(|| Refusal::Outside { root: root() })?;
    let mut depth = 0_usize;
    for step in &steps {
        depth = match step {
            Step::Up => depth.checked_sub(1).ok_or_else(|| Refusal::Traversal { root: root() })?,
            Step::Into(name) if name.len() > MAX_NAME_BYTES => {
                return Err(Refusal::TooLong { bytes: name.len(), most: MAX_NAME_BYTES });
            }
            Step::Into(_) => depth + 1,
        };
    }
    Ok(steps)
}

/// The steps of a relative path, or of an absolute one below one of the root's names; `None` if it is outside.
pub(super) fn relative(path: &Path, root_names: &[PathBuf]) -> Option<Vec<Step>> {
    if path.is_relative() {
        return Some(steps_of(path));
    }
    root_names.iter().find_map(|root| path.strip_prefix(root).ok()).map(steps_of)
}

pub(super) fn steps_of(path: &Path) -> Vec<Step> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(Step::Into(name.to_owned())),
            Component::ParentDir => Some(Step::Up),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// The steps as a path for the kernel.
pub(super) fn to_path(steps: &[Step]) -> PathBuf {
    let mut path = PathBuf::from(".");
    path.extend(steps.iter().map(|step| match step {
        Step::Up => OsStr::new(".."),
        Step::Into(name) => name,
    }));
    path
}

/// The path with each `..` removed lexically, ignoring links.
pub(super) fn by_letters(steps: &[Step]) -> PathBuf {
    let mut path = PathBuf::new();
    for step in steps {
        match step {
            Step::Up => {
                path.pop();
            }
            Step::Into(name) => path.push(name),
        }
    }
    path
}
