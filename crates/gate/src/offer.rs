//! The directory that a question about a file offers to grant instead.
//!
//! A tree that holds something of ours, something secret or half the machine is never offered: one
//! key pressed in a hurry must not give that away.

use std::path::{Path, PathBuf};

/// Directories that hold one directory for each package: the package is what somebody means.
const PACKAGES: [&str; 4] = ["/opt", "/nix/store", "/gnu/store", "/snap"];

/// What is around a path that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct PathContext<'a> {
    pub home: Option<&'a Path>,
    /// Targets of mounts: a tree granted over one would cover it.
    pub mounted: &'a [PathBuf],
    /// Never asked about, with everything below.
    pub never: &'a [PathBuf],
    /// Asked about one file at a time.
    pub secrets: &'a [PathBuf],
}

/// What the path is on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
}

/// The directory to offer for a real path of the host, or none.
pub fn offer(path: &Path, kind: FileKind, around: &PathContext<'_>) -> Option<PathBuf> {
    if around.is_withheld(path) {
        return None;
    }
    let nearest = match kind {
        FileKind::Directory => path,
        FileKind::File => path.parent()?,
    };
    let package = package_of(nearest).filter(|package| around.may_be_offered(package));
    package
        .or_else(|| Some(nearest).filter(|directory| around.may_be_offered(directory)))
        .map(Path::to_owned)
}

/// The package that the directory is or belongs to.
fn package_of(directory: &Path) -> Option<&Path> {
    let is_package = |path: &&Path| {
        path.parent().is_some_and(|parent| PACKAGES.iter().any(|all| parent == Path::new(all)))
    };
    directory.ancestors().find(is_package)
}

impl PathContext<'_> {
    /// Whether the path is within something that is granted one file at a time, or not at all.
    pub(crate) fn is_withheld(&self, path: &Path) -> bool {
        self.never.iter().chain(self.secrets).any(|top| path.starts_with(top))
    }

    pub(crate) fn may_be_offered(&self, directory: &Path) -> bool {
        let is_top_level = directory.components().count() <= 2;
        let holds = |path: &Path| path.starts_with(directory);
        !is_top_level
            && !self.is_withheld(directory)
            && !self.home.is_some_and(holds)
            && !PACKAGES.iter().any(|all| holds(Path::new(all)))
            && !self.mounted.iter().chain(self.never).chain(self.secrets).any(|path| holds(path))
    }
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
