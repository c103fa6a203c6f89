//! The files that this run's policy was read from. They are read-only in the sandbox, even where they would be
//! writable (R06).
//!
//! Files get a read-only mount, which cannot be removed or replaced. The guard protects the names that lead to
//! them, including links and files that do not exist yet. This module must not decide whether a file is
//! trusted.

use crate::aliases::Mounts;
use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts};
use crate::grant::{Grant, GrantKind};
use crate::host::{Host, join};
use palisade_guard::GuardedPath;
use std::path::{Path, PathBuf};

const WHY: &str = "the policy of this run was read from here";

/// The paths of the files in the sandbox, if they are in a writable grant. A writable grant for the file itself
/// is an error.
pub(crate) fn seals(
    files: &[PathBuf],
    grants: &[Grant],
    facts: &HostFacts,
    host: &Host<'_>,
) -> Result<Vec<PathBuf>> {
    let mut seals = Vec::new();
    // Nothing can be mounted on a link.
    let is_file = |place: &PathBuf| host.kind(place).is_some_and(EntryKind::is_node);
    for file in everywhere(files, facts, host).into_iter().filter(is_file) {
        for grant in grants.iter().filter(|grant| grant.kind == GrantKind::ReadWrite) {
            let Ok(rest) = file.strip_prefix(&grant.source) else { continue };
            if rest.as_os_str().is_empty() {
                return Err(PlanError::OwnPolicy { what: grant.why(), path: file });
            }
            let target = join(&grant.target, rest);
            if !seals.contains(&target) {
                seals.push(target);
            }
        }
    }
    Ok(seals)
}

/// The names that lead to the files, by their paths in the sandbox.
pub(crate) fn guarded(
    files: &[PathBuf],
    facts: &HostFacts,
    host: &Host<'_>,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Vec<GuardedPath> {
    let places = everywhere(files, facts, host);
    places
        .iter()
        .filter_map(|place| inside(place))
        .map(|path| GuardedPath { path, why: WHY })
        .collect()
}

/// Links and targets, with their aliases through other mounts of the host.
fn everywhere(files: &[PathBuf], facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    if files.is_empty() {
        return Vec::new();
    }
    let mounts = Mounts::new(&facts.mounts);
    let mut all: Vec<PathBuf> = Vec::new();
    for place in files.iter().flat_map(|file| host.way_to(file)) {
        let aliases = mounts.aliases(&place);
        all.extend(aliases);
        all.push(place);
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
#[path = "policy_files_tests.rs"]
mod tests;
