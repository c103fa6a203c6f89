//! Finds out whether the host changed what the session changed. No list of the project is made up front: the file system
//! says when an entry was changed last.

use super::baseline::Baseline;
use super::outcome::ConflictReason;
use crate::attributes::{is_copied_up, path_in};
use crate::changeset::{Change, ChangeKind, ChangeSet};
use crate::layers::Layers;
use crate::paths::parent_and_name;
use palisade_sys::Result as SysResult;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

pub(super) struct Conflicts<'c> {
    layers: &'c Layers,
    baseline: &'c Baseline,
    rename_targets: BTreeSet<&'c Path>,
    /// What was found out about directories.
    losses: RefCell<HashMap<PathBuf, bool>>,
}

impl<'c> Conflicts<'c> {
    pub(super) fn new(layers: &'c Layers, baseline: &'c Baseline, set: &'c ChangeSet) -> Self {
        let rename_targets = set.renames.iter().map(|rename| rename.to.as_path()).collect();
        Self { layers, baseline, rename_targets, losses: RefCell::default() }
    }

    pub(super) fn find(&self, change: &Change) -> SysResult<Option<ConflictReason>> {
        let Some(old) = change.old_at else {
            let is_deleted = self.was_deleted_on_host(change)?;
            return Ok(is_deleted.then_some(ConflictReason::DeletedOnHost));
        };
        // The status of a directory changes with its names. Those are changes of their own.
        if old.found.is_directory() {
            return Ok(None);
        }
        let changed = self.baseline.is_newer(&change.path, &old.found);
        Ok(changed.then_some(ConflictReason::ChangedOnHost))
    }

    /// The overlay marks what began as a copy of a file of the host. If that is not there any more, the session moved it
    /// or the host deleted it.
    fn was_deleted_on_host(&self, change: &Change) -> SysResult<bool> {
        let path = &change.path;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok(change.kind == ChangeKind::Added
            && change.hard_link_of.is_none()
            && !self.rename_targets.contains(path.as_path())
            && self.may_have_lost(parent)?
            && self.began_as_copy(path)?)
    }

    /// Whether the host may have deleted something from a directory. Nothing of what is in a new directory was the host's,
    /// and a directory of the host that did not change has lost nothing.
    fn may_have_lost(&self, directory: &Path) -> SysResult<bool> {
        if let Some(known) = self.losses.borrow().get(directory) {
            return Ok(*known);
        }
        let found = self.layers.stat(self.layers.project(), directory)?;
        let may_have = match (found, directory.parent()) {
            (Some(found), _) => found.changed >= self.baseline.started,
            (None, Some(parent)) => self.began_as_copy(directory)? && self.may_have_lost(parent)?,
            (None, None) => false,
        };
        self.losses.borrow_mut().insert(directory.to_owned(), may_have);
        Ok(may_have)
    }

    /// In the oldest layer that has it: in later ones, it may be a copy of the session's own.
    fn began_as_copy(&self, path: &Path) -> SysResult<bool> {
        if let Some(copied) = self.layers.copied() {
            return Ok(copied.has(path));
        }
        let Some((parent, name)) = parent_and_name(path) else { return Ok(false) };
        for layer in (0..self.layers.fresh()).rev() {
            if self.layers.stat(layer, path)?.is_some_and(|found| !found.is_whiteout) {
                let parent = self.layers.open_parent(layer, parent)?;
                return Ok(is_copied_up(&path_in(&parent, name)));
            }
        }
        Ok(false)
    }
}
