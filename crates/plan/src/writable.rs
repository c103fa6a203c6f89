//! Determines what an earlier run could have written, so that the next one does not trust it.
//!
//! This is more than one plan's writable mounts: caches and the project count whatever this policy says about
//! them, because they may have been writable in another run. Overlays do not count: what is written there is
//! discarded.

use crate::facts::{HostFacts, HostTree};
use crate::grant::{GrantKind, Granter, Origin};
use crate::host::Host;
use crate::paths::Scope;
use crate::{lists, locate, project};
use palisade_policy::model::{Filesystem, Mode, ProjectAccess, View};
use std::path::{Path, PathBuf};

/// Real paths, with links resolved. Paths that cannot be resolved are left out: no run could write to them.
pub fn writable_places(
    filesystem: &Filesystem,
    facts: &HostFacts,
    tree: &dyn HostTree,
) -> Vec<PathBuf> {
    let host = Host::new(tree, facts.home.as_deref());
    places(&filesystem.read_write_paths, facts, &host)
}

/// Whether a command of an earlier run could have written the file that a path leads to, or a link on the way.
/// Also considers `read_write_paths`, and every repository, since any may have been a project.
///
/// The links are examined after the file was read. That is sufficient: everything before the first place that a
/// command can change is the same both times.
pub fn could_be_written(
    path: &Path,
    read_write_paths: &[String],
    facts: &HostFacts,
    tree: &dyn HostTree,
) -> bool {
    let host = Host::new(tree, facts.home.as_deref());
    let own: Vec<PathBuf> = facts.own_paths.iter().flat_map(|own| host.places(own)).collect();
    let mut ways = host.way_to(path);
    // These are never visible in a sandbox.
    ways.retain(|way| !own.iter().any(|own| way.starts_with(own)));
    if ways.is_empty() {
        return false;
    }
    let is_in_project = |way: &PathBuf| locate::is_in_project(way.parent().unwrap_or(way), &host);
    ways.iter().any(is_in_project) || {
        let places = places(read_write_paths, facts, &host);
        ways.iter().any(|way| places.iter().any(|place| way.starts_with(place)))
    }
}

/// Resolves a path as written in a policy; `None` if it does not exist.
pub fn resolved_path(text: &str, facts: &HostFacts, tree: &dyn HostTree) -> Option<PathBuf> {
    let host = Host::new(tree, facts.home.as_deref());
    let path = Scope::new(facts).typed(text).ok()?;
    Some(host.resolve(&path).ok()?.path)
}

fn places(read_write_paths: &[String], facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    let mut granter = Granter::new(facts, host);
    // Collected first, because a directory that belongs to the system is not a project.
    granter.system(Mode::Dynamic);
    let mut grants = granter.listed(lists::CACHES, Origin::Cache);
    grants.extend(project::find(ProjectAccess::ReadWrite, View::Host, &granter).grants);
    grants.retain(|grant| grant.kind == GrantKind::ReadWrite);
    let mut places: Vec<PathBuf> = grants.into_iter().map(|grant| grant.source).collect();
    let typed = read_write_paths.iter().filter_map(|text| {
        let path = granter.scope.typed(text).ok()?;
        Some(host.resolve(&path).ok()?.path)
    });
    places.extend(typed);
    places
}

#[cfg(test)]
mod tests {
    use super::writable_places;
    use crate::fake::{FakeTree, policy, user};
    use std::path::Path;

    /// Proves: NET-3 default-hosts
    #[test]
    fn caches_project_and_grants_are_what_a_run_could_write() {
        let mut tree = FakeTree::new();
        tree.dir("/home/u/.cache/pip").dir("/home/u/shared/settings").dir("/home/u/shown");
        tree.link("/home/u/linked", "shared/settings");
        let mut filesystem = policy().filesystem;
        filesystem.caches = palisade_policy::CacheAccess::Off;
        filesystem.read_write_paths = vec!["~/linked".to_owned(), "~/absent".to_owned()];
        filesystem.overlay_paths = vec!["~/shown".to_owned()];
        let places = writable_places(&filesystem, &user(), &tree);
        for place in ["/home/u/.cache/pip", "/home/u/project", "/home/u/shared/settings"] {
            assert!(places.iter().any(|found| found == Path::new(place)), "{place}: {places:?}");
        }
        assert!(places.iter().all(|place| place != Path::new("/home/u/shown")), "{places:?}");
    }

    /// Proves: NET-3 default-hosts
    #[test]
    fn who_stands_at_home_has_settings_of_his_own() {
        let mut facts = user();
        facts.cwd = "/home/u".into();
        let places = writable_places(&policy().filesystem, &facts, &FakeTree::new());
        assert!(!places.iter().any(|place| Path::new("/home/u/.npmrc").starts_with(place)));
    }
}
