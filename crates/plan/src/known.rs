//! What a plan has read of the host's tree: nothing is read twice, and all parts of a plan are made from the same
//! reading.
//!
//! Belongs to one plan. It must not be kept for another one: the host changes.

use crate::facts::{DirEntry, EntryKind, HostTree};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// All names of a directory, sorted.
pub(crate) type Names = Rc<[(OsString, EntryKind)]>;

/// By the text of the path: comparing it as a path takes ten times as long.
type ByText<T> = RefCell<HashMap<OsString, T>>;

pub(crate) struct KnownTree<'a> {
    tree: &'a dyn HostTree,
    entries: ByText<Option<DirEntry>>,
    links: ByText<Option<PathBuf>>,
    names: ByText<Names>,
    starts: ByText<FileStart>,
}

/// The beginning of a file.
struct FileStart {
    /// How much of it was asked for.
    length: usize,
    content: Option<Vec<u8>>,
}

impl FileStart {
    /// Whether as much of the file is known.
    fn has(&self, length: usize) -> bool {
        let is_all = self.content.as_ref().is_none_or(|content| content.len() < self.length);
        is_all || length <= self.length
    }

    fn part(&self, length: usize) -> Option<Vec<u8>> {
        let content = self.content.as_deref()?;
        Some(content.get(..length).unwrap_or(content).to_vec())
    }
}

impl<'a> KnownTree<'a> {
    pub(crate) fn new(tree: &'a dyn HostTree) -> Self {
        let (entries, links) = (ByText::default(), ByText::default());
        Self { tree, entries, links, names: ByText::default(), starts: ByText::default() }
    }

    pub(crate) fn entry(&self, path: &Path) -> Option<DirEntry> {
        known(&self.entries, path, || self.tree.entry(path))
    }

    /// What [`Self::entry`] has found; `None` if it was not called.
    pub(crate) fn known_entry(&self, path: &Path) -> Option<Option<DirEntry>> {
        self.entries.borrow().get(path.as_os_str()).copied()
    }

    pub(crate) fn read_link(&self, path: &Path) -> Option<PathBuf> {
        known(&self.links, path, || self.tree.read_link(path))
    }

    pub(crate) fn names(&self, dir: &Path) -> Names {
        known(&self.names, dir, || {
            let mut names = self.tree.children(dir);
            names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            names.into()
        })
    }

    /// The names of a directory that was listed before.
    pub(crate) fn known_names(&self, dir: &Path) -> Option<Names> {
        self.names.borrow().get(dir.as_os_str()).cloned()
    }

    pub(crate) fn first_names(&self, dir: &Path, most: usize) -> Vec<(OsString, EntryKind)> {
        self.tree.first_children(dir, most)
    }

    /// The beginning of a file. A file is read again only if more of it is needed.
    pub(crate) fn read_start(&self, path: &Path, length: usize) -> Option<Vec<u8>> {
        if let Some(start) = self.starts.borrow().get(path.as_os_str())
            && start.has(length)
        {
            return start.part(length);
        }
        let content = self.tree.read_part(path, 0, length);
        let start = FileStart { length, content: content.clone() };
        self.starts.borrow_mut().insert(path.as_os_str().to_owned(), start);
        content
    }

    pub(crate) fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>> {
        match offset {
            0 => self.read_start(path, length),
            _ => self.tree.read_part(path, offset, length),
        }
    }

    pub(crate) fn overlay_obstacle(&self, lower: &Path) -> Option<String> {
        self.tree.overlay_obstacle(lower)
    }

    pub(crate) fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        self.tree.is_same_file(one, other)
    }
}

pub(crate) fn kind_of(names: &[(OsString, EntryKind)], name: &OsStr) -> Option<EntryKind> {
    let found = names.binary_search_by(|(known, _)| known.as_os_str().cmp(name)).ok()?;
    names.get(found).map(|(_, kind)| *kind)
}

fn known<T: Clone>(all: &ByText<T>, path: &Path, read: impl FnOnce() -> T) -> T {
    if let Some(value) = all.borrow().get(path.as_os_str()) {
        return value.clone();
    }
    let value = read();
    all.borrow_mut().insert(path.as_os_str().to_owned(), value.clone());
    value
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
