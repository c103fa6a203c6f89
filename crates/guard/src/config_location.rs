//! The location of a git configuration file. The judgement of some values depends on it.

use std::path::{Path, PathBuf};

/// Where a configuration file is, with symlinks resolved.
#[derive(Clone, Debug)]
pub struct ConfigLocation<'p> {
    /// The directory that contains the file.
    pub git_dir: &'p Path,
    /// The top of the guarded tree that contains the file.
    pub tree: &'p Path,
    /// If `tree` is the git directory of a linked worktree: where that worktree's files are.
    pub worktree: Option<PathBuf>,
}
