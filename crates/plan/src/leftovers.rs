//! Files that tools write to every home directory and do not need: caches, histories, logs.

use crate::denied::listed_paths;
use crate::facts::{HostFacts, HostTree};
use crate::host::Host;
use crate::lists::{self, Listed};
use crate::paths::Scope;
use std::path::{Path, PathBuf};

/// Relative to the home directory, each with everything below.
pub fn leftovers(facts: &HostFacts, tree: &dyn HostTree) -> Vec<PathBuf> {
    let Some(home) = facts.home.as_deref() else { return Vec::new() };
    let (scope, host) = (Scope::new(facts), Host::new(tree, Some(home)));
    let histories = lists::SECRETS.iter().filter(|listed| listed.has("unasked"));
    let all = lists::LEFTOVERS.iter().chain(lists::CACHES).chain(histories);
    let below_home = |path: PathBuf| path.strip_prefix(home).ok().map(Path::to_owned);
    let paths = |listed: &Listed| listed_paths(listed, &scope, &host);
    all.flat_map(paths).filter_map(below_home).filter(|path| !path.as_os_str().is_empty()).collect()
}
