//! What of the changes is meant: all, some paths with what is below them, or chosen hunks of single files.

use crate::changeset::ChangeSet;
use crate::hunks::ChosenHunks;
use crate::paths::normal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// None means all.
    paths: Option<BTreeSet<PathBuf>>,
    hunks: BTreeMap<PathBuf, ChosenHunks>,
}

impl Selection {
    pub fn all() -> Self {
        Self::default()
    }

    /// These paths, relative to the project, and everything below them. A path that leads out of the project selects
    /// nothing.
    pub fn paths(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let paths = paths.into_iter().filter_map(|path| normal(path.as_ref())).collect();
        Self { paths: Some(paths), hunks: BTreeMap::new() }
    }

    /// Of this file, only some hunks. Its permissions do not change.
    #[must_use]
    pub fn with_hunks(mut self, chosen: ChosenHunks) -> Self {
        if let Some(paths) = &mut self.paths {
            paths.insert(chosen.path.clone());
        }
        self.hunks.insert(chosen.path.clone(), chosen);
        self
    }

    pub(crate) fn hunks_of(&self, path: &Path) -> Option<&ChosenHunks> {
        self.hunks.get(path)
    }

    fn has_path(&self, path: &Path) -> bool {
        match &self.paths {
            None => true,
            Some(paths) => path.ancestors().any(|above| paths.contains(above)),
        }
    }

    /// The selected changes alone. Chosen hunks count as their whole file.
    pub fn select(&self, mut set: ChangeSet) -> ChangeSet {
        let selected: BTreeSet<PathBuf> =
            self.of(&set).into_iter().map(|number| set.changes[number].path.clone()).collect();
        set.retain(|change| selected.contains(&change.path));
        set
    }

    /// The selected changes by their numbers in the set. Both ends of a rename belong together.
    pub(crate) fn of(&self, set: &ChangeSet) -> BTreeSet<usize> {
        let mut selected: BTreeSet<usize> = (0..set.changes.len())
            .filter(|number| self.has_path(&set.changes[*number].path))
            .collect();
        for rename in &set.renames {
            let (Some(from), Some(to)) = (set.number(&rename.from), set.number(&rename.to)) else {
                continue;
            };
            if selected.contains(&from) || selected.contains(&to) {
                selected.extend([from, to]);
            }
        }
        selected
    }
}
