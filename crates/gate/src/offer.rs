//! The directory that a question about a file offers to grant instead.
//!
//! Never offers a tree that contains our own files, a secret or a large part of the machine: one hasty key
//! press must not grant that.

use std::path::{Path, PathBuf};

/// Each subdirectory of these is one package, and the offer is the whole package.
const PACKAGES: [&str; 4] = ["/opt", "/nix/store", "/gnu/store", "/snap"];

/// The surroundings of the path in question.
#[derive(Clone, Copy, Debug)]
pub struct PathContext<'a> {
    pub home: Option<&'a Path>,
    /// Mount targets: a grant for a tree above one would cover it.
    pub mounted: &'a [PathBuf],
    /// The user is never asked about these, nor about anything below.
    pub never: &'a [PathBuf],
    /// Granted one file at a time.
    pub secrets: &'a [PathBuf],
}

/// What the path is on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
}

/// The directory to offer for a real path of the host, if any.
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

/// The package that the directory is in.
fn package_of(directory: &Path) -> Option<&Path> {
    let is_package = |path: &&Path| {
        path.parent().is_some_and(|parent| PACKAGES.iter().any(|all| parent == Path::new(all)))
    };
    directory.ancestors().find(is_package)
}

impl PathContext<'_> {
    /// Whether the path is in a tree that is granted one file at a time, or never.
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
