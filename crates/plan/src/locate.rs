//! Finds the project: the directory that the caller works in.
//!
//! Starts from the caller's working directory, never from a policy's `cwd`: otherwise a file in a cloned
//! repository could point to any directory and have it granted.

use crate::facts::HostFacts;
use crate::host::Host;
use crate::known::kind_of;
use crate::lists;
use crate::model::{FoundBy, Located};
use crate::own::OWN_AREAS;
use crate::path_text::PathText as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The git root of the working directory; without one, the nearest directory with a project marker; otherwise
/// the working directory itself. The home directory is never a project, even if it is a git repository.
pub(crate) fn locate(facts: &HostFacts, host: &Host<'_>) -> Located {
    host.project.get_or_init(|| search(facts, host)).clone()
}

fn search(facts: &HostFacts, host: &Host<'_>) -> Located {
    let cwd = facts.cwd.as_path();
    let upwards =
        || cwd.ancestors().take_while(|dir| Some(*dir) != host.home() && *dir != Path::new("/"));
    if let Some(root) = upwards().find(|dir| is_git_root(dir, host)) {
        return Located { root: root.to_owned(), found_by: FoundBy::Git };
    }
    // In another user's directory, a file must not extend what is granted.
    let owner = host.owner(cwd).map(|owner| owner.uid);
    let marked = upwards()
        .take_while(|dir| !is_withheld(dir, facts, host))
        .take_while(|dir| *dir == cwd || host.owner(dir).map(|owner| owner.uid) == owner)
        .find_map(|dir| Some((dir, marker_in(dir, host)?)));
    match marked {
        Some((root, name)) => Located { root: root.to_owned(), found_by: FoundBy::Marker(name) },
        None => Located { root: cwd.to_owned(), found_by: FoundBy::WorkingDirectory },
    }
}

pub(crate) fn root_of(facts: &HostFacts, host: &Host<'_>) -> PathBuf {
    locate(facts, host).root
}

/// Whether a run that starts in or below this directory may find its project at or above it.
pub(crate) fn is_in_project(dir: &Path, host: &Host<'_>) -> bool {
    let upwards =
        dir.ancestors().take_while(|dir| Some(*dir) != host.home() && *dir != Path::new("/"));
    upwards.into_iter().any(|dir| is_git_root(dir, host) || marker_in(dir, host).is_some())
}

fn marker_in(dir: &Path, host: &Host<'_>) -> Option<&'static str> {
    // One listing costs less than looking up every marker.
    let names = host.few_names(dir);
    let may_be_there = |name: &str| {
        names.as_deref().is_none_or(|names| kind_of(names, OsStr::new(name)).is_some())
    };
    lists::MARKERS
        .iter()
        .map(|listed| listed.name)
        .find(|name| may_be_there(name) && host.kind(&dir.join(name)).is_some())
}

/// Whether a directory is never acceptable as a project. Checked without looking at the system's directories
/// one by one; `project::too_much` makes the final decision.
fn is_withheld(dir: &Path, facts: &HostFacts, host: &Host<'_>) -> bool {
    let is_system = |system: &Path| system.is_in(dir) || dir.is_in(system);
    holds_home(dir, facts, host).is_some()
        || is_own(dir)
        || lists::SYSTEM.iter().any(|listed| is_system(Path::new(listed.name)))
}

pub(crate) fn is_git_root(dir: &Path, host: &Host<'_>) -> bool {
    host.kind(&dir.join(".git")).is_some()
}

pub(crate) fn holds_home(dir: &Path, facts: &HostFacts, host: &Host<'_>) -> Option<&'static str> {
    if host.home().is_some_and(|home| home.is_in(dir)) {
        return Some("it is or contains your home directory");
    }
    let homes = host.real_homes(&facts.homes);
    let is_home = homes.iter().any(|home| home.is_in(dir));
    let is_among_homes = dir.parent() == Some(Path::new("/home"));
    (is_home || is_among_homes).then_some("it is or contains a home directory")
}

pub(crate) fn is_own(dir: &Path) -> bool {
    let kernel = ["/proc", "/sys", "/dev", "/run"];
    OWN_AREAS.into_iter().any(|area| dir.is_same(area))
        || kernel.into_iter().any(|area| dir.is_in(area))
}
