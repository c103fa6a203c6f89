//! Finds what a session changed. Walks the upper layers, and of the project only what the session deleted or replaced:
//! a project of any size costs nothing. Of a copy, everything is looked at.

use crate::changeset::{ChangeKind, ChangeSet};
use crate::contents::Located;
use crate::difference::{change, difference};
use crate::error::{ChangesError, Result};
use crate::hard_links::HardLinks;
use crate::layers::{Layers, Stack, is_absence};
use crate::listing::names_in;
use crate::paths::{MAX_PATH_BYTES, order};
use crate::renames;
use palisade_sys::{Errno, Result as SysResult};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// No project is as deep. Every question about a path walks down to it.
pub(crate) const MAX_DEPTH: usize = 256;
/// Memory is bounded: a session can make files faster than anybody reads about them.
pub(crate) const MAX_CHANGES: usize = 1_000_000;

/// How often a scan is begun again when what it reads disappears: a session may be working.
const MAX_TRIES: u32 = 20;

/// All changes of the newer layers against the older ones and the project.
pub fn scan(layers: &Layers) -> Result<ChangeSet> {
    beside_a_session(|| scan_once(layers))
}

/// Begins again when what it reads disappears.
pub(crate) fn beside_a_session<T>(look: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 1..MAX_TRIES {
        match look() {
            Err(ChangesError::System(error)) if is_absence(error.errno) => {}
            looked => return looked,
        }
    }
    look()
}

fn scan_once(layers: &Layers) -> Result<ChangeSet> {
    let mut walk = Walk {
        layers,
        set: ChangeSet::default(),
        hard_links: HardLinks::default(),
        around: HashSet::new(),
    };
    let mut pending = vec![Directory {
        path: PathBuf::new(),
        fresh: (0..layers.fresh()).collect(),
        old: layers.old(),
        is_old_hidden: layers.copied().is_some(),
        is_in_place: true,
    }];
    while let Some(directory) = pending.pop() {
        walk.visit(&directory, &mut pending)?;
    }
    std::mem::take(&mut walk.hard_links).name(layers, &mut walk.set)?;
    walk.drop_around();
    let mut set = walk.set;
    set.changes.sort_unstable_by(|one, other| order(&one.path, &other.path));
    set.renames = renames::find(layers, &set)?;
    Ok(set)
}

/// A directory to be visited, by its path: to hold descriptors would let a deep tree exhaust them.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// The newer layers that it is merged from.
    fresh: Vec<usize>,
    /// The older ones, whether or not they are still seen.
    old: Vec<usize>,
    /// What is in the older layers only was deleted.
    is_old_hidden: bool,
    /// In a copy: it is the directory that was copied, and so are those above it.
    is_in_place: bool,
}

struct Walk<'l> {
    layers: &'l Layers,
    set: ChangeSet,
    hard_links: HardLinks,
    /// Directories of a copy that the host has no more. They count only if something in them was changed.
    around: HashSet<PathBuf>,
}

impl Walk<'_> {
    fn visit(&mut self, directory: &Directory, pending: &mut Vec<Directory>) -> Result<()> {
        let layers = self.layers;
        let mut names = BTreeSet::new();
        let mut fresh = Vec::new();
        for layer in &directory.fresh {
            let dir = layers.open_directory(*layer, &directory.path)?;
            names.extend(names_in(&dir, &directory.path)?);
            fresh.push((*layer, dir));
        }
        let mut old = Vec::new();
        for layer in &directory.old {
            if let Some(dir) = self.open_old(*layer, directory, &mut names)? {
                old.push((*layer, dir));
            }
        }
        for name in names {
            let path = directory.path.join(&name);
            if path.as_os_str().len() >= MAX_PATH_BYTES || path.iter().count() > MAX_DEPTH {
                self.set.too_deep.push(directory.path.clone());
                break;
            }
            let now = layers.stack(&fresh, &name, &path)?;
            let before = layers.stack(&old, &name, &path)?;
            self.compare(path, directory, now, before, pending)?;
        }
        if self.set.changes.len() > MAX_CHANGES {
            return Err(ChangesError::TooMany { limit: MAX_CHANGES });
        }
        Ok(())
    }

    /// Lists it only if what is in it may have been deleted.
    fn open_old(
        &self,
        layer: usize,
        directory: &Directory,
        names: &mut BTreeSet<OsString>,
    ) -> SysResult<Option<OwnedFd>> {
        let Directory { path, is_old_hidden, .. } = directory;
        if !is_old_hidden {
            return self.layers.open_parent(layer, path).map(Some);
        }
        match self.layers.open_directory(layer, path) {
            // It was deleted as a whole; what is in it stays unknown. Or something is mounted there, which nobody saw.
            Err(error) if matches!(error.errno, Errno::ACCESS | Errno::XDEV) => Ok(None),
            dir => {
                let dir = dir?;
                names.extend(names_in(&dir, path)?);
                Ok(Some(dir))
            }
        }
    }

    fn compare(
        &mut self,
        path: PathBuf,
        directory: &Directory,
        now: Stack,
        before: Stack,
        pending: &mut Vec<Directory>,
    ) -> SysResult<()> {
        let located = |(layer, found)| Located { layer, found };
        let old_at = before.top.map(located);
        let is_hidden = directory.is_old_hidden || now.hides_below;
        let was_directory = old_at.is_some_and(|old| old.found.is_directory());
        let copied = self.layers.copied();
        let found_in_place = now.top.filter(|_| directory.is_in_place).map(|(_, found)| found);
        let is_in_place = copied
            .zip(found_in_place)
            .is_some_and(|(copied, found)| copied.is_in_place(&path, &found));
        let below = |fresh: Vec<usize>, old: Vec<usize>| Directory {
            path: path.clone(),
            fresh,
            old,
            is_old_hidden: is_hidden,
            is_in_place,
        };
        let Some(new_at) = now.top.map(located) else {
            // What is not in a copy and never was came to the host later, or is hidden from the session. With its directory
            // it would be deleted all the same.
            let is_of_others =
                copied.is_some_and(|copied| !directory.fresh.is_empty() && !copied.has(&path));
            // A name that is in no newer layer any more by now is not deleted.
            if old_at.is_some() && is_hidden && !is_of_others {
                if was_directory {
                    pending.push(below(Vec::new(), before.layers));
                }
                self.add(path, ChangeKind::Deleted, old_at, None)?;
            }
            return Ok(());
        };
        let is_directory = new_at.found.is_directory();
        let is_untouched = copied
            .zip(found_in_place)
            .is_some_and(|(copied, found)| copied.is_untouched(&path, &found));
        if is_untouched && !is_directory {
            return Ok(());
        }
        if is_directory || was_directory {
            // Of what was no directory, nothing below can be compared.
            let old = if was_directory { before.layers } else { Vec::new() };
            pending.push(below(now.layers, old));
        }
        if is_untouched && !was_directory {
            self.around.insert(path.clone());
        }
        let kind = match old_at {
            Some(_) if is_untouched && was_directory => None,
            None => Some(ChangeKind::Added),
            Some(old) if old.found.kind != new_at.found.kind => Some(ChangeKind::TypeChanged),
            Some(old) => difference(self.layers, &path, old, new_at)?,
        };
        self.hard_links.note(&path, kind, old_at, new_at);
        match kind {
            Some(kind) => self.add(path, kind, old_at, Some(new_at)),
            None => Ok(()),
        }
    }

    fn add(
        &mut self,
        path: PathBuf,
        kind: ChangeKind,
        old_at: Option<Located>,
        new_at: Option<Located>,
    ) -> SysResult<()> {
        self.set.changes.push(change(self.layers, path, kind, (old_at, new_at))?);
        Ok(())
    }

    fn drop_around(&mut self) {
        if self.around.is_empty() {
            return;
        }
        let around = &self.around;
        let changes = &mut self.set.changes;
        let changed = changes.iter().map(|change| &change.path).filter(|it| !around.contains(*it));
        let above: HashSet<PathBuf> =
            changed.flat_map(|path| path.ancestors().skip(1)).map(Path::to_owned).collect();
        changes.retain(|change| !around.contains(&change.path) || above.contains(&change.path));
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
