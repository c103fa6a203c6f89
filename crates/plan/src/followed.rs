//! Everything that links, settings and start-up files make the guard take in, whatever of it is writable in a sandbox. Who keeps a
//! sandbox for later compares it: while it is the same, so is the guard of one that is made now.
//!
//! Only collects what the searches of the guard find; it must not search for anything itself.

use crate::facts::HostTree;
use crate::host::Host;
use crate::indirect::Indirect;
use crate::{git, indirect, sourced, virtualenv};
use std::path::{Path, PathBuf};

/// Where the guard searches.
#[derive(Clone, Copy, Debug)]
pub struct GuardPlaces<'a> {
    pub project: &'a Path,
    pub cwd: &'a Path,
    pub home: Option<&'a Path>,
    /// The Python environment that is active (`VIRTUAL_ENV`).
    pub virtualenv: Option<&'a Path>,
}

/// What the guard finds there, sorted.
pub fn followed_paths(places: &GuardPlaces<'_>, tree: &dyn HostTree) -> Vec<PathBuf> {
    let host = Host::new(tree, places.home);
    let root = places.project;
    let top = host.children(root);
    let anywhere = |path: &Path| Some(path.to_owned());
    let Indirect { guarded, hooks } = indirect::guarded(root, &top, &host, anywhere);
    let more = virtualenv::guarded(root, &top, places.virtualenv, &host, anywhere);
    let sourced = sourced::guarded(root, places.cwd, &top, &host, anywhere);
    let guarded = guarded.into_iter().chain(more).chain(sourced).map(|found| found.path);
    let mut paths: Vec<PathBuf> = guarded.chain(hooks).collect();
    // The git directory of a worktree or a submodule is elsewhere.
    paths.extend(git::config_of(root, &host));
    paths.extend(git::limited(root, &host).map(|limited| limited.directory));
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[cfg(test)]
#[path = "followed_tests.rs"]
mod tests;
