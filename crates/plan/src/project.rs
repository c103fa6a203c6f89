//! Determines how the project is granted: writable, unless that would grant too much.

use crate::git;
use crate::grant::{Grant, GrantKind, Granter, Origin};
use crate::locate::{holds_home, is_git_root, is_own, root_of};
use crate::model::NodeKind;
use crate::path_text::PathText as _;
use palisade_policy::model::{ProjectAccess, View};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The path of the project in the minimal view.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The policy files of a project. Never writable in the sandbox (R06).
const POLICY_DIR: &str = ".palisade";

#[derive(Debug, Default)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    /// Its real path, also if it is not granted. `None` if the caller stands in no project but in a home or in the
    /// system, whose links are their owner's.
    pub(crate) tree: Option<PathBuf>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) seals: Vec<PathBuf>,
    /// The configuration of a git directory elsewhere, which must be sealed if names are not guarded.
    pub(crate) git_config: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn find(access: ProjectAccess, view: View, granter: &Granter<'_>) -> Project {
    let host = granter.host;
    let root = root_of(granter.facts, host);
    let mut project = Project { root: root.clone(), ..Project::default() };
    let reason = too_much(&root, granter);
    let found = host.resolve(&root).ok();
    project.tree = found.as_ref().filter(|_| reason.is_none()).map(|found| found.path.clone());
    let mut kind = match access {
        ProjectAccess::None => return project,
        ProjectAccess::ReadOnly => GrantKind::ReadOnly,
        ProjectAccess::ReadWrite => GrantKind::ReadWrite,
        ProjectAccess::Transaction | ProjectAccess::TransactionAuto => GrantKind::Transaction,
    };
    if let Some(reason) = reason {
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
    let grant = found.and_then(|found| granter.shipped(found, true, Origin::Project));
    let Some(grant) = grant else { return project };
    let target = match view {
        View::Host | View::Listed => grant.target.clone(),
        View::Minimal => PathBuf::from(WORKSPACE),
    };
    if host.kind(&root.join(POLICY_DIR)).is_some_and(crate::facts::EntryKind::is_node) {
        project.seals.push(target.join(POLICY_DIR));
    }
    let git = match kind {
        // What is written there would not wait for the transaction's end.
        GrantKind::Transaction => {
            let mut git = git::outside_of(&root, GrantKind::ReadOnly, granter);
            if !git.grants.is_empty() {
                git.note = Some(
                    "the git directory is outside the project and read-only in a transaction: commit after you apply it"
                        .to_owned(),
                );
            }
            git
        }
        kind => git::outside_of(&root, kind, granter),
    };
    project.grants.push(Grant { target, kind, node: NodeKind::Dir, ..grant });
    project.grants.extend(git.grants);
    project.seals.extend(git.seals);
    project.git_config = git.config;
    project.notes.extend(git.note);
    project
}

/// Whether shells look for programs directly in this directory: the caller's by `PATH`, and others by the usual
/// directories.
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

/// Why a directory is not made writable just because the caller started in it.
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
        system.is_in(root) || (root.is_in(system) && !is_git_root(root, granter.host))
    };
    let system = granter.system.iter().find(|system| holds(system))?;
    Some(format!("{} belongs to the system", system.display()))
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
