//! The project: the directory the caller works in, writable unless that would give too much.
//!
//! Found from where the caller stands, never from a policy's `cwd`, or a file in a cloned repository
//! could point at any directory and have it granted.

use crate::facts::HostFacts;
use crate::git;
use crate::grant::{Grant, GrantKind, Granter, Origin};
use crate::host::Host;
use crate::lists;
use crate::model::NodeKind;
use crate::own::OWN_AREAS;
use palisade_policy::model::{ProjectAccess, View};
use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// Where the minimal view puts the project.
pub(crate) const WORKSPACE: &str = "/workspace";
/// Policy files of a project; not writable inside, whatever the project is (R06).
const POLICY_DIR: &str = ".palisade";

#[derive(Debug, Default)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) grants: Vec<Grant>,
    pub(crate) seals: Vec<PathBuf>,
    /// Configuration of a git directory elsewhere, which is to be sealed where names are not judged.
    pub(crate) git_config: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

/// Where the project is, and by what it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    pub root: PathBuf,
    pub found_by: FoundBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoundBy {
    Git,
    /// A name of `resources/view/markers.txt`.
    Marker(&'static str),
    #[default]
    WorkingDirectory,
}

impl Display for FoundBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git => f.write_str("git root"),
            Self::Marker(name) => write!(f, "found by {name}"),
            Self::WorkingDirectory => f.write_str("the working directory"),
        }
    }
}

/// The git root of the working directory; without one, the nearest directory that a marker makes a project; else the
/// working directory itself. The home directory is nobody's project, even if it is kept in git.
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
    // In a directory of somebody else's a file must not widen what is granted.
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

/// Whether a run that is started in a directory, or below it, may find its project around it.
pub(crate) fn is_in_project(dir: &Path, host: &Host<'_>) -> bool {
    let upwards =
        dir.ancestors().take_while(|dir| Some(*dir) != host.home() && *dir != Path::new("/"));
    upwards.into_iter().any(|dir| is_git_root(dir, host) || marker_in(dir, host).is_some())
}

fn marker_in(dir: &Path, host: &Host<'_>) -> Option<&'static str> {
    lists::MARKERS
        .iter()
        .map(|listed| listed.name)
        .find(|name| host.kind(&dir.join(name)).is_some())
}

/// Whether a directory is too much for a project wherever one stands. Known without looking at the system's
/// directories one by one; [`too_much`] has the last word.
fn is_withheld(dir: &Path, facts: &HostFacts, host: &Host<'_>) -> bool {
    let is_system = |system: &Path| system.starts_with(dir) || dir.starts_with(system);
    holds_home(dir, facts, host).is_some()
        || is_own(dir)
        || lists::SYSTEM.iter().any(|listed| is_system(Path::new(listed.name)))
}

fn is_git_root(dir: &Path, host: &Host<'_>) -> bool {
    host.kind(&dir.join(".git")).is_some()
}

pub(crate) fn find(access: ProjectAccess, view: View, granter: &Granter<'_>) -> Project {
    let host = granter.host;
    let root = root_of(granter.facts, host);
    let mut project = Project { root: root.clone(), ..Project::default() };
    let mut kind = match access {
        ProjectAccess::None => return project,
        ProjectAccess::ReadOnly => GrantKind::ReadOnly,
        ProjectAccess::ReadWrite => GrantKind::ReadWrite,
    };
    if let Some(reason) = too_much(&root, granter) {
        project.notes.push(format!(
            "{} is not granted as the project: {reason}; start in a project directory, or name what \
             must be writable with --rw",
            root.display()
        ));
        return project;
    }
    if kind == GrantKind::ReadWrite && is_on_search_path(&root, granter) {
        kind = GrantKind::ReadOnly;
        project.notes.push(format!(
            "{} is read-only: it is on the search path, and shells would run what is put there; start in \
             a project directory, or name it with --rw if it is meant",
            root.display()
        ));
    }
    let Ok(found) = host.resolve(&root) else { return project };
    let Some(grant) = granter.shipped(found, true, Origin::Project) else { return project };
    let target = match view {
        View::Host => grant.target.clone(),
        View::Minimal => PathBuf::from(WORKSPACE),
    };
    if host.kind(&root.join(POLICY_DIR)).is_some_and(crate::facts::EntryKind::is_node) {
        project.seals.push(target.join(POLICY_DIR));
    }
    let git = git::outside_of(&root, kind, granter);
    project.grants.push(Grant { target, kind, node: NodeKind::Dir, ..grant });
    project.grants.extend(git.grants);
    project.seals.extend(git.seals);
    project.git_config = git.config;
    project.notes.extend(git.note);
    project
}

/// Whether shells look for programs right in this directory: those of the caller, by `PATH`, and others, by the places
/// where they usually do.
fn is_on_search_path(root: &Path, granter: &Granter<'_>) -> bool {
    let host = granter.host;
    let is_root = |path: &Path| host.resolve(path).is_ok_and(|found| found.path == root);
    let path = granter.facts.env.get(OsStr::new("PATH"));
    let mut named = path.into_iter().flat_map(std::env::split_paths);
    if named.any(|dir| dir.is_absolute() && is_root(&dir)) {
        return true;
    }
    let Some(home) = host.home() else { return false };
    let mut usual = palisade_guard::home_names().filter(|name| name.on_search_path);
    usual.any(|name| host.missing_in(name.name).is_none() && is_root(&home.join(name.name)))
}

/// Why a directory is not made writable just because somebody stands in it.
fn too_much(root: &Path, granter: &Granter<'_>) -> Option<String> {
    if root == Path::new("/") {
        return Some("it is the root directory".to_owned());
    }
    if let Some(reason) = holds_home(root, granter.facts, granter.host) {
        return Some(reason.to_owned());
    }
    if is_own(root) {
        return Some("the sandbox has its own directory there".to_owned());
    }
    let holds = |system: &Path| {
        system.starts_with(root) || (root.starts_with(system) && !is_git_root(root, granter.host))
    };
    let system = granter.system.iter().find(|system| holds(system))?;
    Some(format!("{} belongs to the system", system.display()))
}

fn holds_home(dir: &Path, facts: &HostFacts, host: &Host<'_>) -> Option<&'static str> {
    if host.home().is_some_and(|home| home.starts_with(dir)) {
        return Some("it is or contains your home directory");
    }
    let homes = host.real_homes(&facts.homes);
    let is_home = homes.iter().any(|home| home.starts_with(dir));
    let is_among_homes = dir.parent() == Some(Path::new("/home"));
    (is_home || is_among_homes).then_some("it is or contains a home directory")
}

fn is_own(dir: &Path) -> bool {
    let kernel = ["/proc", "/sys", "/dev", "/run"];
    OWN_AREAS.into_iter().any(|area| dir == Path::new(area))
        || kernel.into_iter().any(|area| dir.starts_with(area))
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
