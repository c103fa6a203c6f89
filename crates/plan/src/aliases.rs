//! Other paths at which the host shows a file: further mounts of the same file system (F24).
//!
//! A host may have thousands of mounts and the plan looks up hundreds of secrets. The mount table is therefore
//! indexed once, and the cost of a lookup depends only on the size of its result.

use crate::facts::HostMount;
use crate::host::join;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Sorted by the bytes of the path, so that everything below a directory is contiguous.
type ByText<'a, T> = BTreeMap<&'a [u8], T>;

/// An index of the host's mounts, to find the aliases of a path.
#[derive(Debug)]
pub(crate) struct Mounts<'a> {
    /// By mount point. Of several mounts at one place, the last one is visible.
    by_point: ByText<'a, &'a HostMount>,
    /// By file system and by the mounted part of it; only file systems that are mounted more than once.
    shared: HashMap<&'a str, ByText<'a, Vec<&'a HostMount>>>,
}

impl<'a> Mounts<'a> {
    pub(crate) fn new(all: &'a [HostMount]) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::with_capacity(all.len());
        for mount in all {
            *counts.entry(&mount.device).or_default() += 1;
        }
        let mut shared: HashMap<&str, ByText<'_, Vec<&HostMount>>> = HashMap::new();
        for mount in all {
            if counts.get(mount.device.as_str()).is_some_and(|count| *count > 1) {
                let by_root = shared.entry(&mount.device).or_default();
                by_root.entry(text(&mount.root)).or_default().push(mount);
            }
        }
        // Without shared file systems the index is never used.
        let by_point = match shared.is_empty() {
            true => BTreeMap::new(),
            false => all.iter().map(|mount| (text(&mount.mount_point), mount)).collect(),
        };
        Self { by_point, shared }
    }

    pub(crate) fn has_aliases(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Other paths of the same files: aliases of the path itself, and of what is mounted below it.
    pub(crate) fn aliases(&self, path: &Path) -> Vec<PathBuf> {
        if !self.has_aliases() {
            return Vec::new();
        }
        let covering = path.ancestors().find_map(|above| self.by_point.get(text(above)));
        let own = covering.map(|mount| (*mount, place_in(mount, path)));
        let mounted = below(&self.by_point, path).map(|mount| (*mount, mount.root.clone()));
        let mut aliases = Vec::new();
        for (mount, place) in own.into_iter().chain(mounted) {
            let Some(by_root) = self.shared.get(mount.device.as_str()) else { continue };
            let around = place.ancestors().filter_map(|above| by_root.get(text(above))).flatten();
            let around = around.filter_map(|other| {
                Some(join(&other.mount_point, place.strip_prefix(&other.root).ok()?))
            });
            // A part of the path's contents, mounted elsewhere.
            let parts = below(by_root, &place).flatten().map(|other| other.mount_point.clone());
            aliases.extend(around.chain(parts).filter(|alias| !alias.starts_with(path)));
        }
        aliases
    }
}

fn text(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// The entries strictly below a directory.
fn below<'m, T>(by_text: &'m ByText<'_, T>, dir: &Path) -> impl Iterator<Item = &'m T> {
    let mut start = text(dir).to_vec();
    if start != b"/" {
        start.push(b'/');
    }
    let from = (Bound::Included(start.as_slice()), Bound::Unbounded);
    let following = by_text.range::<[u8], _>(from);
    let is_root = |path: &[u8]| path.len() == 1;
    following
        .take_while(move |(path, _)| path.starts_with(&start))
        .filter(move |(path, _)| !is_root(path))
        .map(|(_, value)| value)
}

/// The path within its file system.
fn place_in(mount: &HostMount, path: &Path) -> PathBuf {
    path.strip_prefix(&mount.mount_point)
        .map_or_else(|_| mount.root.clone(), |rest| join(&mount.root, rest))
}

#[cfg(test)]
#[path = "aliases_tests.rs"]
mod tests;
