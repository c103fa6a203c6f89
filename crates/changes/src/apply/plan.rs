//! Turns accepted changes into operations, and stages what they need.
//!
//! New trees are one operation, and so are deleted ones. The order: directories are opened for writing where need be, then
//! comes everything new, then deletions, then permissions, from the deepest up.

use super::faults::Faults;
use super::operations::{Attributes, Operation, Place, Stamp};
use super::request::{ApplyRequest, Source};
use super::review::{Contents, Reviewed};
use super::staging::Staged;
use super::workspace::{NEW, OLD, Workspace};
use crate::attributes::{path_in, strip};
use crate::changeset::{Change, ChangeKind, ChangeSet};
use crate::contents::Located;
use crate::entry::{EntryKind, Found, Timestamp};
use crate::error::{ChangesError, Result};
use crate::judge::{Coming, Judge};
use crate::layers::{Layers, set_mode};
use crate::listing::names_in;
use crate::merged_tree::MergedTree;
use crate::objection::Verdict;
use crate::paths::{is_within, parent_and_name};
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::{Errno, OFlags, Result as SysResult};
use rustix::fs::{AtFlags, chownat};
use rustix::process::{Gid, Uid};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What a directory needs so that its owner can change names in it, or move it.
const WRITABLE: u32 = 0o300;

#[derive(Debug)]
pub(super) struct Planned {
    pub(super) operations: Vec<Operation>,
}

impl Planned {
    /// Writes to the stage only; with [`Source::Move`], also to the upper layers.
    pub(super) fn stage(
        request: &ApplyRequest<'_>,
        workspace: &Workspace<'_>,
        set: &ChangeSet,
        reviewed: &Reviewed,
        reviewed_at: Timestamp,
        faults: &mut dyn Faults,
    ) -> Result<Self> {
        let layers = request.layers;
        let can_move = request.source == Source::Move
            && !layers.has_unlocked()
            && workspace.can_move_from(layers);
        let mut planner = Planner {
            layers,
            judge: request.judge,
            hidden: request.hidden,
            tree: MergedTree::new(layers),
            workspace,
            set,
            reviewed,
            reviewed_at,
            can_move,
            next_slot: 0,
            last_in_stage: RefCell::default(),
            link_targets: HashMap::new(),
            opened: BTreeMap::new(),
            installs: Vec::new(),
            removals: Vec::new(),
            attributes: BTreeMap::new(),
        };
        let mut covered: Option<&Path> = None;
        for (number, contents) in &reviewed.accepted {
            let change = &set.changes[*number];
            if covered.is_some_and(|directory| is_within(&change.path, directory)) {
                continue;
            }
            faults.step()?;
            let was_directory = change.old_at.is_some_and(|old| old.found.is_directory());
            match change.kind {
                ChangeKind::ModeChanged | ChangeKind::Touched => planner.set_attributes(change),
                ChangeKind::Deleted => {
                    planner.remove(change)?;
                    covered = was_directory.then_some(&change.path);
                }
                _ => {
                    planner.install(*number, contents)?;
                    let covers = was_directory || change.is_directory();
                    covered = covers.then_some(&change.path);
                }
            }
        }
        Ok(Self { operations: planner.into_operations() })
    }
}

struct Planner<'p> {
    layers: &'p Layers,
    judge: &'p dyn Judge,
    /// What the session could not see.
    hidden: &'p [PathBuf],
    tree: MergedTree<'p>,
    workspace: &'p Workspace<'p>,
    set: &'p ChangeSet,
    reviewed: &'p Reviewed,
    /// A moment before the review.
    reviewed_at: Timestamp,
    can_move: bool,
    next_slot: u32,
    /// The directory of the stage that was used last.
    last_in_stage: RefCell<Option<(PathBuf, Rc<OwnedFd>)>>,
    /// Staged files that have other names, with where they are in the stage.
    link_targets: HashMap<&'p Path, PathBuf>,
    /// Directories of the host that are not writable, and have to be for a moment.
    opened: BTreeMap<PathBuf, Found>,
    installs: Vec<Operation>,
    removals: Vec<Operation>,
    /// The final permissions and times.
    attributes: BTreeMap<PathBuf, Operation>,
}

impl<'p> Planner<'p> {
    fn install(&mut self, number: usize, contents: &Contents) -> Result<()> {
        let change: &'p Change = &self.set.changes[number];
        let Some(new) = change.new_at else { return Ok(()) };
        let (source, inode) = if self.can_move && self.is_movable(number, contents)? {
            self.sanitise(number)?;
            (Place::Upper(new.layer, change.path.clone()), new.found.inode)
        } else {
            self.stage(number, contents)?
        };
        self.open_around(change)?;
        let replaces = change.old_at.map(|old| Stamp::of(&old.found, self.reviewed_at));
        let target = change.path.clone();
        let mode = new.found.kept_mode();
        if new.found.is_directory() && mode != opened_mode(mode) {
            let (old, new) = (Attributes { mode: opened_mode(mode), modified: None }, mode);
            let new = Attributes { mode: new, modified: None };
            let operation = Operation::SetAttributes { target: target.clone(), inode, old, new };
            self.attributes.insert(target.clone(), operation);
        }
        self.installs.push(Operation::Install { source, target, inode, replaces });
        Ok(())
    }

    fn remove(&mut self, change: &Change) -> Result<()> {
        let Some(old) = change.old_at else { return Ok(()) };
        self.open_around(change)?;
        let place = Place::Staged(self.slot(OLD));
        let (target, stamp) = (change.path.clone(), Stamp::of(&old.found, self.reviewed_at));
        self.removals.push(Operation::Remove { target, place, stamp });
        Ok(())
    }

    fn set_attributes(&mut self, change: &Change) {
        let (Some(old), Some(new)) = (change.old_at, change.new_at) else { return };
        let is_file = new.found.kind == EntryKind::File;
        let modified = (is_file && old.found.modified != new.found.modified)
            .then_some((old.found.modified, new.found.modified));
        let mode =
            if change.kind == ChangeKind::Touched { old.found.mode } else { new.found.kept_mode() };
        if mode == old.found.mode && modified.is_none() {
            return;
        }
        let operation = Operation::SetAttributes {
            target: change.path.clone(),
            inode: old.found.inode,
            old: Attributes { mode: old.found.mode, modified: modified.map(|(old, _)| old) },
            new: Attributes { mode, modified: modified.map(|(_, new)| new) },
        };
        self.attributes.insert(change.path.clone(), operation);
    }

    /// The directory whose names change must be writable, and a directory that is moved as well (its `..` changes).
    fn open_around(&mut self, change: &Change) -> Result<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let parent = change.path.parent().unwrap_or(Path::new(""));
        let project = self.layers.project();
        if !self.opened.contains_key(parent)
            && let Some(found) = self.layers.stat(project, parent)?
            && found.mode & WRITABLE != WRITABLE
        {
            self.opened.insert(parent.to_owned(), found);
        }
        if let Some(old) = change.old_at
            && old.found.is_directory()
            && old.found.mode & WRITABLE != WRITABLE
        {
            self.opened.insert(change.path.clone(), old.found);
        }
        Ok(())
    }

    fn slot(&mut self, part: &str) -> PathBuf {
        let slot = self.next_slot;
        self.next_slot += 1;
        Path::new(part).join(slot.to_string())
    }

    /// Stages an entry with everything accepted below it.
    fn stage(&mut self, number: usize, contents: &Contents) -> Result<(Place, u64)> {
        let root: &'p Change = &self.set.changes[number];
        let slot = self.slot(NEW);
        self.stage_entry(root, contents, &slot)?;
        if root.is_directory() {
            let below = number + 1..number + 1 + self.set.below(&root.path).len();
            let mut directories = vec![root];
            for (number, contents) in self.reviewed.accepted.range(below) {
                let change = &self.set.changes[*number];
                if change.new.is_none() {
                    continue;
                }
                self.stage_entry(change, contents, &staged_path(&slot, root, change))?;
                if change.is_directory() {
                    directories.push(change);
                }
            }
            for directory in directories.into_iter().rev() {
                let Some(new) = directory.new_at else { continue };
                let mode = new.found.kept_mode();
                // The top stays writable until it is in its place.
                let mode = if std::ptr::eq(directory, root) { opened_mode(mode) } else { mode };
                let path = staged_path(&slot, root, directory);
                self.in_stage(&path, |staged| {
                    Ok(staged.finish_directory(&new.found, mode, &directory.path)?)
                })?;
            }
        }
        let inode = self.in_stage(&slot, |staged| {
            let found = self.layers.stat_in(staged.dir, staged.name)?;
            found
                .map(|found| found.inode)
                .ok_or(ChangesError::ChangedMeanwhile { path: root.path.clone() })
        })?;
        Ok((Place::Staged(slot), inode))
    }

    fn stage_entry(&mut self, change: &'p Change, contents: &Contents, to: &Path) -> Result<()> {
        let (Some(new), Some(entry)) = (change.new_at, &change.new) else { return Ok(()) };
        let path = change.path.as_path();
        match entry.kind {
            EntryKind::Directory => {
                self.in_stage(to, |staged| staged.directory(self.layers, path, new))
            }
            EntryKind::Link => self.in_stage(to, |staged| staged.link(entry, path)),
            _ => {
                if *contents != Contents::OfSession || !self.stage_hard_link(change, to)? {
                    self.stage_file(change, new, contents, to)?;
                }
                // What was judged by its contents must have no other name, under which it could be written.
                if new.found.links > 1 && *contents == Contents::OfSession {
                    self.link_targets.insert(path, to.to_owned());
                }
                Ok(())
            }
        }
    }

    fn stage_file(
        &self,
        change: &Change,
        new: Located,
        contents: &Contents,
        to: &Path,
    ) -> Result<()> {
        let replaced = change.old_at.map(|old| old.found);
        let replaced = replaced.filter(|old| old.kind == EntryKind::File);
        let (bytes, mode) = match (contents, replaced) {
            (Contents::OfSession, _) => (None, new.found.kept_mode()),
            (Contents::Composed(bytes), Some(old)) => (Some(bytes.as_slice()), old.kept_mode()),
            (Contents::Judged(bytes) | Contents::Composed(bytes), _) => {
                (Some(bytes.as_slice()), new.found.kept_mode())
            }
        };
        self.in_stage(to, |staged| {
            staged.file(self.layers, &change.path, new, bytes, mode, replaced.as_ref())
        })
    }

    /// False if the other name is not there, or cannot be linked to.
    fn stage_hard_link(&self, change: &Change, to: &Path) -> Result<bool> {
        let Some(other) = &change.hard_link_of else { return Ok(false) };
        if let Some(staged) = self.link_targets.get(other.as_path()) {
            let from = self.in_stage(staged, |from| {
                Ok((
                    from.dir.try_clone_to_owned().map_err(ChangesError::Output)?,
                    from.name.to_owned(),
                ))
            })?;
            return self.in_stage(to, |staged| Ok(staged.hard_link(&from.0, &from.1)));
        }
        let is_kept =
            |change: &Change| matches!(change.kind, ChangeKind::ModeChanged | ChangeKind::Touched);
        if !self.set.get(other).is_none_or(is_kept) || !self.may_be_linked(other) {
            return Ok(false);
        }
        // A file of the host that the session gave a second name.
        let Some((parent, name)) = parent_and_name(other) else { return Ok(false) };
        let Ok(dir) = self.layers.open_parent(self.layers.project(), parent) else {
            return Ok(false);
        };
        self.in_stage(to, |staged| Ok(staged.hard_link(&dir, name)))
    }

    /// Through a second name, a later sandbox could write to what is guarded by its first, or read what is hidden there.
    fn may_be_linked(&self, path: &Path) -> bool {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return false;
        }
        let coming = Coming { path, kind: EntryKind::File, target: None };
        self.judge.judge(&self.tree, coming) == Verdict::Allowed
    }

    fn in_stage<T>(&self, path: &Path, make: impl FnOnce(Staged<'_>) -> Result<T>) -> Result<T> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(ChangesError::ChangedMeanwhile { path: path.to_owned() });
        };
        let mut last = self.last_in_stage.borrow_mut();
        let dir = match last.take() {
            Some((path, dir)) if path == parent => dir,
            _ => {
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                Rc::new(open_on_mount(self.workspace.stage(), parent, flags)?)
            }
        };
        *last = Some((parent.to_owned(), Rc::clone(&dir)));
        drop(last);
        make(Staged { dir: dir.as_fd(), name })
    }

    /// Whether the entry can be renamed out of its layer as it is, with everything below it.
    fn is_movable(&self, number: usize, contents: &Contents) -> SysResult<bool> {
        let root = &self.set.changes[number];
        let Some(new) = root.new_at else { return Ok(false) };
        let is_plain = |change: &Change, contents: &Contents| {
            *contents == Contents::OfSession
                && change.new_at.is_some_and(|at| {
                    at.layer == new.layer
                        && match at.found.kind {
                            EntryKind::File => at.found.links == 1,
                            EntryKind::Directory => at.found.mode & 0o700 == 0o700,
                            _ => true,
                        }
                })
        };
        if !is_plain(root, contents) || !self.is_parent_writable(new.layer, &root.path)? {
            return Ok(false);
        }
        if !root.is_directory() {
            return Ok(true);
        }
        // A layer may contain more than is seen: whiteouts, and what was refused.
        let count = self.set.below(&root.path).len();
        let mut names = 0;
        let mut directories = vec![root.path.as_path()];
        for number in number + 1..=number + count {
            let change = &self.set.changes[number];
            let contents = self.reviewed.accepted.get(&number);
            if !contents.is_some_and(|contents| is_plain(change, contents)) {
                return Ok(false);
            }
            if change.is_directory() {
                directories.push(&change.path);
            }
        }
        for directory in directories {
            let dir = self.layers.open_directory(new.layer, directory)?;
            names += names_in(&dir, directory)?.len();
        }
        Ok(names == count)
    }

    fn is_parent_writable(&self, layer: usize, path: &Path) -> SysResult<bool> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let found = self.layers.stat(layer, parent)?;
        Ok(found.is_some_and(|found| found.mode & WRITABLE == WRITABLE))
    }

    /// Removes from the entries of a layer what must not come to the host.
    fn sanitise(&self, number: usize) -> SysResult<()> {
        let root = &self.set.changes[number];
        let below = if root.is_directory() { self.set.below(&root.path) } else { &[] };
        // Changes of one directory follow each other.
        let mut open: Option<(&Path, OwnedFd)> = None;
        for change in std::iter::once(root).chain(below) {
            let Some(Located { layer, found }) = change.new_at else { continue };
            let Some((parent, name)) = parent_and_name(&change.path) else { continue };
            let dir = match &open {
                Some((path, dir)) if *path == parent => dir,
                _ => &open.insert((parent, self.layers.open_parent(layer, parent)?)).1,
            };
            let mut mode = found.mode;
            match strip(&path_in(dir, name)) {
                // Attributes of a file belong to its content: it must be writable.
                Err(error) if error.errno == Errno::ACCESS && found.kind != EntryKind::Link => {
                    mode |= 0o200;
                    set_mode(open_entry(dir, name)?.as_fd(), mode & 0o777, &change.path)?;
                    strip(&path_in(dir, name))?;
                }
                stripped => stripped?,
            }
            let old = change.old_at.map(|old| old.found);
            let has_other_owner =
                old.is_some_and(|old| (old.uid, old.gid) != (found.uid, found.gid));
            if let Some(old) = old.filter(|_| has_other_owner) {
                // Without the right to do so, it stays the session's.
                let (uid, gid) = (Uid::from_raw(old.uid), Gid::from_raw(old.gid));
                let _ = chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
            }
            if found.kept_mode() != mode && found.kind != EntryKind::Link {
                set_mode(open_entry(dir, name)?.as_fd(), found.kept_mode(), &change.path)?;
            }
        }
        Ok(())
    }

    fn into_operations(self) -> Vec<Operation> {
        let Self { opened, installs, removals, mut attributes, .. } = self;
        let mut operations = Vec::new();
        for (target, found) in opened {
            let attribute = |mode| Attributes { mode, modified: None };
            let opened = opened_mode(found.mode);
            let is_moved = installs.iter().chain(&removals).any(|operation| match operation {
                Operation::Install { target: moved, .. }
                | Operation::Remove { target: moved, .. } => *moved == target,
                Operation::SetAttributes { .. } => false,
            });
            operations.push(Operation::SetAttributes {
                target: target.clone(),
                inode: found.inode,
                old: attribute(found.mode),
                new: attribute(opened),
            });
            match attributes.get_mut(&target) {
                Some(Operation::SetAttributes { old, .. }) if !is_moved => old.mode = opened,
                None if !is_moved => {
                    let operation = Operation::SetAttributes {
                        target: target.clone(),
                        inode: found.inode,
                        old: attribute(opened),
                        new: attribute(found.mode),
                    };
                    attributes.insert(target, operation);
                }
                _ => {}
            }
        }
        operations.extend(installs);
        operations.extend(removals);
        // A directory may be closed to its owner in the end: what is in it comes first.
        operations.extend(attributes.into_values().rev());
        operations
    }
}

fn opened_mode(mode: u32) -> u32 {
    mode | 0o700
}

fn staged_path(slot: &Path, root: &Change, change: &Change) -> PathBuf {
    match change.path.strip_prefix(&root.path) {
        Ok(below) if !below.as_os_str().is_empty() => slot.join(below),
        _ => slot.to_owned(),
    }
}
