//! Where a git configuration lies: some of its values are judged by that.

use std::path::{Path, PathBuf};

/// Where a configuration file lies, without links.
#[derive(Clone, Debug)]
pub struct ConfigLocation<'p> {
    /// The directory it is in.
    pub git_dir: &'p Path,
    /// The top of the guarded tree around it.
    pub tree: &'p Path,
    /// Where the files of the worktree are whose own directory `tree` is.
    pub worktree: Option<PathBuf>,
}
