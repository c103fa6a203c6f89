//! Chooses the directories of build output that the command writes itself, without the broker
//! (`filesystem.buildDirs`).
//!
//! Landlock grants all rights below such a directory, and the broker lets the kernel continue calls in it. The
//! kernel then reads the path again, so no name in it can be protected against a command that changes the path
//! meanwhile: a plain file called `.envrc`, or the four that make a directory a git repository. A directory is
//! therefore only taken if the policy names it and the host runs nothing in it by itself that is known here.
//! Never searches: what is deeper in a build directory is build output.

use crate::error::Result;
use crate::facts::EntryKind;
use crate::host::Host;
use crate::locate;
use crate::model::Guard;
use crate::paths::Scope;
use crate::request::PlanRequest;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub(crate) struct BuildDirs {
    /// By their paths in the sandbox.
    pub(crate) taken: Vec<PathBuf>,
    /// Why others are not.
    pub(crate) notes: Vec<String>,
}

/// What says that something on the host would run from a directory by itself.
const MARKS: [(&str, &str); 3] = [
    ("pyvenv.cfg", "it is a Python environment, which editors and shells start by themselves"),
    (".git", "it is a git repository"),
    ("HEAD", "it is a git repository"),
];

pub(crate) fn choose(
    request: &PlanRequest<'_>,
    host: &Host<'_>,
    guard: &Guard,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<BuildDirs> {
    let mut found = BuildDirs::default();
    for text in &request.policy.filesystem.build_dirs {
        for path in meant(text, request, host)? {
            let Some(kind) = host.kind(&path) else { continue };
            let place = inside(&path);
            let against = match &place {
                None => Some("it is not in a writable directory of the host".to_owned()),
                Some(place) => reason_against(&path, kind, place, host, guard),
            };
            match (against, place) {
                (None, Some(place)) if !found.taken.contains(&place) => found.taken.push(place),
                (None, _) => {}
                (Some(against), _) => found.notes.push(format!(
                    "the build directory {} is written through the broker: {against}",
                    path.display()
                )),
            }
        }
    }
    Ok(found)
}

/// A relative path is meant in the project and, in a package of it, in the working directory.
fn meant(text: &str, request: &PlanRequest<'_>, host: &Host<'_>) -> Result<Vec<PathBuf>> {
    let facts = request.facts;
    let below_cwd = Scope::new(facts).typed(text)?;
    let root = locate::root_of(facts, host);
    let in_project = below_cwd.strip_prefix(&facts.cwd).ok().map(|below| root.join(below));
    let mut paths: Vec<PathBuf> = in_project.into_iter().chain([below_cwd]).collect();
    paths.dedup();
    Ok(paths)
}

fn reason_against(
    path: &Path,
    kind: EntryKind,
    place: &Path,
    host: &Host<'_>,
    guard: &Guard,
) -> Option<String> {
    let is_itself = host.resolve(path).is_ok_and(|found| found.path == path);
    if kind != EntryKind::Dir || !is_itself {
        return Some("it is not a directory, or behind a link".to_owned());
    }
    if guard.trees.iter().any(|tree| tree == place) {
        return Some(
            "nothing around it is writable, and names at its top are protected".to_owned(),
        );
    }
    if let Some((_, why)) = MARKS.iter().find(|(name, _)| host.exists(&path.join(name))) {
        return Some((*why).to_owned());
    }
    let is_git =
        |name: &OsStr| palisade_guard::comparable(name.as_bytes()).eq_ignore_ascii_case(b".git");
    if place.iter().any(is_git) {
        return Some("it is in a git directory".to_owned());
    }
    let overlaps = |other: &Path| other.starts_with(place) || place.starts_with(other);
    if let Some(more) = guard.more.iter().find(|more| overlaps(&more.path)) {
        return Some(format!("{} is {}", more.path.display(), more.why));
    }
    if guard.limited.iter().any(|limited| overlaps(&limited.directory)) {
        return Some("it belongs to the repository of a worktree".to_owned());
    }
    if let Some(island) = guard.islands.iter().find(|island| overlaps(island)) {
        return Some(format!("{} is a mount of its own", island.display()));
    }
    if guard.hooks.iter().any(|hooks| leads_into(hooks, place)) {
        return Some("`core.hooksPath` leads there".to_owned());
    }
    let tree = guard.trees.iter().filter(|tree| place.starts_with(tree));
    let tree = tree.max_by_key(|tree| tree.components().count())?;
    let matcher = guard.matcher();
    let below = matcher.below(tree, place, &mut |_| true).into_iter().map(|below| below.hit);
    let hit = matcher.judge(tree, place, &mut |_| true).or_else(|| below.into_iter().next())?;
    Some(format!("`{}` is protected there ({})", hit.name, hit.why))
}

/// Whether a relative path leads into a directory, from any directory above it.
fn leads_into(relative: &Path, place: &Path) -> bool {
    place.ancestors().skip(1).any(|base| {
        let meant = base.join(relative);
        meant.starts_with(place) || place.starts_with(&meant)
    })
}

#[cfg(test)]
#[path = "build_dirs_tests.rs"]
mod tests;
