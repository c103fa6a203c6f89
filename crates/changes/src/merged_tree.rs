//! Questions about the project as it was and as it would be, for those who judge a change. An answer counts both: a person
//! may apply a part of the changes only.

use crate::contents::{Located, read};
use crate::entry::EntryKind;
use crate::layers::Layers;
use crate::listing::names_in;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The project with and without the session's changes. Paths are relative to it.
#[derive(Debug)]
pub struct MergedTree<'l> {
    layers: &'l Layers,
    /// Whether something is there before or after, by path: the same few directories are asked about again and again.
    known: RefCell<HashMap<PathBuf, bool>>,
}

impl<'l> MergedTree<'l> {
    pub(crate) fn new(layers: &'l Layers) -> Self {
        Self { layers, known: RefCell::default() }
    }

    /// Whether the project has it now.
    pub fn existed(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || self.kind_before(path).is_some()
    }

    /// Whether the project has it now, or would have it with all changes. What cannot be looked up counts as there.
    pub fn exists(&self, path: &Path) -> bool {
        if let Some(known) = self.known.borrow().get(path) {
            return *known;
        }
        let exists = self.existed(path)
            || self.layers.find(self.layers.all(), path).map_or(true, |found| found.is_some());
        self.known.borrow_mut().insert(path.to_owned(), exists);
        exists
    }

    /// Of what the project has now.
    pub fn kind_before(&self, path: &Path) -> Option<EntryKind> {
        let found = self.layers.find(self.layers.old(), path).ok()??;
        Some(found.1.kind)
    }

    /// Of what it would have with all changes.
    pub fn kind_after(&self, path: &Path) -> Option<EntryKind> {
        let found = self.layers.find(self.layers.all(), path).ok()??;
        Some(found.1.kind)
    }

    /// The names in a directory, before or after.
    pub fn names(&self, directory: &Path) -> BTreeSet<OsString> {
        let mut names = BTreeSet::new();
        for layer in 0..=self.layers.project() {
            let listed = self.layers.open_directory(layer, directory);
            if let Ok(listed) = listed.and_then(|dir| names_in(&dir, directory)) {
                names.extend(listed);
            }
        }
        names.retain(|name| self.exists(&directory.join(name)));
        names
    }

    /// The content that the project has now; none if there is no such file or it is longer than `max`.
    pub fn content_before(&self, path: &Path, max: usize) -> Option<Vec<u8>> {
        let (layer, found) = self.layers.find(self.layers.old(), path).ok()??;
        read(self.layers, path, Located { layer, found }, max).ok()?
    }
}
