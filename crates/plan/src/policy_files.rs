//! The files that this run's policy was read from: read-only inside, even where they would be writable (R06).
//!
//! Files get a read-only mount, which can be neither removed nor replaced; the guard protects the names that
//! lead to them, including links and files that do not exist yet. Never decides whether a file is trusted.

use crate::aliases::Mounts;
use crate::error::PlanError;
use crate::facts::{EntryKind, HostFacts};
use crate::grant::{Grant, GrantKind};
use crate::host::{Host, join};
use crate::writable::on_the_way;
use palisade_guard::GuardedPath;
use std::path::{Path, PathBuf};

const WHY: &str = "the policy of this run was read from here";

/// Where the files stand inside, as far as they stand in a writable grant. One that is granted for writing by its own
/// name is an error.
pub(crate) fn seals(
    files: &[PathBuf],
    grants: &[Grant],
    facts: &HostFacts,
    host: &Host<'_>,
) -> Result<Vec<PathBuf>, PlanError> {
    let mut seals = Vec::new();
    // Nothing can be mounted onto a link.
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

/// The names on the way to them, at the places where they are inside.
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

/// Links and ends, with the other places where the host shows them.
fn everywhere(files: &[PathBuf], facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    if files.is_empty() {
        return Vec::new();
    }
    let mounts = Mounts::new(&facts.mounts);
    let mut all: Vec<PathBuf> = Vec::new();
    for place in files.iter().flat_map(|file| on_the_way(file, host)) {
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
