//! Brings an earlier state of a session back, by ordinary calls in the overlay that its commands see. The kernel keeps the
//! layers then, as for any program: nothing is remounted, and whoever has a working directory there keeps it.
//!
//! Interrupted, it can be repeated, and ends with the same tree.

use crate::attributes::{replace_attributes, set_attributes, user_attributes};
use crate::changeset::ChangeKind;
use crate::compare::{Pair, Pairs, pairs};
use crate::contents::Located;
use crate::difference::difference;
use crate::discard::discard;
use crate::entry::{EntryKind, Found};
use crate::error::{ChangesError, Result};
use crate::file_copy::{BlockSharing, copy_content, modified};
use crate::layers::{Layers, set_mode};
use crate::paths::{or_dot, parent_and_name};
use crate::scan::MAX_DEPTH;
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::creds::act_as;
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult, SysError};
use rustix::fs::{
    AtFlags, FileType, fchmod, fstat, futimens, linkat, mkdirat, mknodat, openat, renameat,
    symlinkat, unlinkat, utimensat,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use uuid::Uuid;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
const PARENT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
const NEW_FILE: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// A file before it has its name. One that is left is in no state that was kept, so the next attempt removes it.
const UNFINISHED: &str = ".palisade-restoring-";

/// What has to be done to turn the first state of [`Layers::states`] into the second one. Nothing has changed yet.
#[derive(Debug)]
pub struct Restoration<'l> {
    layers: &'l Layers,
    pairs: Vec<Pair>,
    /// Of each pair whose entries are of the same type.
    differences: Vec<Option<ChangeKind>>,
    /// Directories that go with everything in them: a command made them deeper than anybody looks.
    removed_whole: HashSet<PathBuf>,
}

impl<'l> Restoration<'l> {
    pub fn plan(layers: &'l Layers) -> Result<Self> {
        let Pairs { pairs, too_deep, too_deep_now } = pairs(layers)?;
        if let Some(path) = too_deep_now {
            return Err(ChangesError::TooDeep { path, limit: MAX_DEPTH });
        }
        let mut differences = Vec::new();
        for Pair { path, before, now } in &pairs {
            differences.push(match (before, now) {
                (Some(old), Some(new)) if old.found.kind == new.found.kind => {
                    difference(layers, path, *old, *new)?
                }
                _ => Some(ChangeKind::Added),
            });
        }
        // The first state is changed from here on, permissions included.
        layers.lock_again();
        let removed_whole = too_deep.into_iter().collect();
        Ok(Self { layers, pairs, differences, removed_whole })
    }

    /// Does it in `tree`, the overlay that shows the first state. Says how many paths it changed. No process of the session
    /// may write meanwhile.
    pub fn perform(self, tree: BorrowedFd<'_>) -> Result<u64> {
        let Self { layers, pairs, differences, removed_whole } = self;
        let command = command_ids(tree)?;
        let blocks = BlockSharing::Untried;
        let mut work = Work { layers, tree, command, blocks, removed_whole, changed: 0 };
        work.run(&pairs, &differences)?;
        Ok(work.changed)
    }
}

/// Who owns what commands make, if we are root: in the sandbox's user namespace, root of the host has no id.
fn command_ids(tree: BorrowedFd<'_>) -> SysResult<Option<(u32, u32)>> {
    let found = fstat(tree).call("fstat")?;
    let is_root = rustix::process::geteuid().is_root();
    Ok(is_root.then_some((found.st_uid, found.st_gid)))
}

struct Work<'r> {
    layers: &'r Layers,
    tree: BorrowedFd<'r>,
    command: Option<(u32, u32)>,
    blocks: BlockSharing,
    removed_whole: HashSet<PathBuf>,
    changed: u64,
}

impl Work<'_> {
    fn run(&mut self, pairs: &[Pair], differences: &[Option<ChangeKind>]) -> Result<()> {
        for pair in pairs {
            self.open_up(pair)?;
        }
        for pair in pairs.iter().rev() {
            if let Some(before) = pair.before
                && pair.now.is_none_or(|now| now.found.kind != before.found.kind)
            {
                self.remove(&pair.path, &before.found)?;
            }
        }
        let links = Links::of(pairs);
        for (pair, change) in pairs.iter().zip(differences) {
            if let Some(now) = pair.now {
                self.make(pair, (now, *change), &links)?;
            }
        }
        for pair in pairs.iter().rev() {
            if let Some(now) = pair.now.filter(|now| now.found.is_directory()) {
                self.finish_directory(&pair.path, now)?;
            }
        }
        let top = self.layers.stat(0, Path::new(""))?;
        match top {
            Some(found) => Ok(self.finish_directory(Path::new(""), Located { layer: 0, found })?),
            None => Ok(()),
        }
    }

    /// A command may have closed a directory to itself.
    fn open_up(&self, pair: &Pair) -> SysResult<()> {
        let closed = |at: &Located| at.found.is_directory() && at.found.mode & 0o700 != 0o700;
        let Some(before) = pair.before.filter(closed) else { return Ok(()) };
        let (parent, name) = self.parent_of(&pair.path)?;
        let entry = open_entry(&parent, name)?;
        match set_mode(entry.as_fd(), before.found.mode | 0o700, &pair.path) {
            // A directory of somebody else's: what is in it did not change.
            Err(error) if error.errno == Errno::PERM => Ok(()),
            opened => opened,
        }
    }

    fn remove(&mut self, path: &Path, found: &Found) -> Result<()> {
        let (parent, name) = self.parent_of(path)?;
        if self.removed_whole.contains(path) {
            self.changed += 1;
            return self.as_command(|| Ok(discard(parent.as_fd(), name)))?.map(drop);
        }
        let flags = if found.is_directory() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        self.changed += 1;
        match unlinkat(&parent, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Ok(Err(errno).at("unlink", path)?),
        }
    }

    fn make(
        &mut self,
        pair: &Pair,
        (now, change): (Located, Option<ChangeKind>),
        links: &Links<'_>,
    ) -> Result<()> {
        let path = &pair.path;
        let before = pair.before.filter(|before| before.found.kind == now.found.kind);
        let (parent, name) = self.parent_of(path)?;
        match now.found.kind {
            EntryKind::Directory if before.is_none() => {
                self.as_command(|| mkdirat(&parent, name, Mode::RWXU).at("mkdir", path))?;
            }
            EntryKind::Directory => return Ok(()),
            EntryKind::File if change.is_none() && links.are_same(path) => return Ok(()),
            EntryKind::File
                if matches!(change, Some(ChangeKind::ModeChanged | ChangeKind::Touched))
                    && links.are_same(path) =>
            {
                let entry = open_entry(&parent, name)?;
                set_mode(entry.as_fd(), now.found.kept_mode(), path)?;
                set_time(&parent, name, &now.found, path)?;
            }
            EntryKind::File => match links.first(path) {
                Some(first) => self.link_file(path, (&parent, name), first)?,
                None => self.write_file(path, (&parent, name), now)?,
            },
            _ if change.is_none()
                && before.is_some_and(|old| old.found.modified == now.found.modified) =>
            {
                return Ok(());
            }
            EntryKind::Link => {
                let target = self.layers.link_target(now.layer, path)?;
                remove_old(&parent, name, path)?;
                self.as_command(|| symlinkat(&target, &parent, name).at("symlink", path))?;
                set_time(&parent, name, &now.found, path)?;
            }
            EntryKind::Fifo | EntryKind::Socket => {
                let kind = match now.found.kind {
                    EntryKind::Fifo => FileType::Fifo,
                    _ => FileType::Socket,
                };
                remove_old(&parent, name, path)?;
                self.as_command(|| {
                    mknodat(&parent, name, kind, Mode::RUSR | Mode::WUSR, 0).at("mknod", path)
                })?;
                set_mode(open_entry(&parent, name)?.as_fd(), now.found.kept_mode(), path)?;
                set_time(&parent, name, &now.found, path)?;
            }
            EntryKind::Device => return Ok(()),
        }
        self.changed += 1;
        Ok(())
    }

    /// A new file under a name of its own, which then replaces the old one: that may have other names.
    fn write_file(
        &mut self,
        path: &Path,
        (parent, name): (&OwnedFd, &OsStr),
        from: Located,
    ) -> Result<()> {
        let (source, found) = self.layers.open_file(from.layer, path)?;
        let (unfinished, file) = self.unfinished(path, |unfinished| {
            openat(parent, unfinished, NEW_FILE, Mode::RUSR | Mode::WUSR)
        })?;
        copy_content(&source, &file, found.size, &mut self.blocks, path)?;
        set_attributes(&file, &user_attributes(&source, path)?, path)?;
        fchmod(&file, Mode::from_raw_mode(found.kept_mode())).at("fchmod", path)?;
        futimens(&file, &modified(&found)).at("futimens", path)?;
        self.rename(parent, (&unfinished, name), path)
    }

    /// Another name for a file that was brought back before.
    fn link_file(
        &self,
        path: &Path,
        (parent, name): (&OwnedFd, &OsStr),
        first: &Path,
    ) -> Result<()> {
        let (first_parent, first_name) = self.parent_of(first)?;
        let (unfinished, ()) = self.unfinished(path, |unfinished| {
            linkat(&first_parent, first_name, parent, unfinished, AtFlags::empty())
        })?;
        // Where the old name is one of the same file already, rename(2) does nothing.
        self.rename(parent, (&unfinished, name), path)?;
        let _ = unlinkat(parent, &unfinished, AtFlags::empty());
        Ok(())
    }

    fn rename(&self, dir: &OwnedFd, (old, new): (&OsStr, &OsStr), path: &Path) -> Result<()> {
        Ok(self.as_command(|| renameat(dir, old, dir, new).at("rename", path))?)
    }

    fn unfinished<T>(
        &self,
        path: &Path,
        make: impl Fn(&OsStr) -> std::result::Result<T, Errno>,
    ) -> SysResult<(OsString, T)> {
        // A command could take every name that it can guess.
        let name = OsString::from(format!("{UNFINISHED}{}", Uuid::now_v7().simple()));
        let made = self.as_command(|| Ok(make(&name)))?.at("openat", path)?;
        Ok((name, made))
    }

    fn finish_directory(&self, path: &Path, now: Located) -> SysResult<()> {
        let directory = match open_on_mount(self.tree, or_dot(path), DIRECTORY) {
            // Something else is mounted there, which is no part of the session's changes.
            Err(error) if error.errno == Errno::XDEV => return Ok(()),
            directory => directory?,
        };
        let shown = Found::of(&fstat(&directory).at("fstat", path)?);
        let source = self.layers.open_directory(now.layer, path)?;
        let wanted = user_attributes(&source, path)?;
        if user_attributes(&directory, path)? != wanted {
            replace_attributes(&directory, &wanted, path)?;
        }
        if shown.modified != now.found.modified {
            futimens(&directory, &modified(&now.found)).at("futimens", path)?;
        }
        if shown.mode != now.found.kept_mode() {
            fchmod(&directory, Mode::from_raw_mode(now.found.kept_mode())).at("fchmod", path)?;
        }
        Ok(())
    }

    fn parent_of<'p>(&self, path: &'p Path) -> SysResult<(OwnedFd, &'p OsStr)> {
        let Some((parent, name)) = parent_and_name(path) else {
            return Err(SysError::new("open", path.display().to_string(), Errno::INVAL));
        };
        Ok((open_on_mount(self.tree, or_dot(parent), PARENT)?, name))
    }

    /// Makes a name that belongs to the sandbox's commands.
    fn as_command<T>(&self, make: impl FnOnce() -> SysResult<T>) -> SysResult<T> {
        let Some((uid, gid)) = self.command else { return make() };
        act_as(uid, gid)?;
        let made = make();
        act_as(0, 0)?;
        made
    }
}

fn remove_old(parent: &OwnedFd, name: &OsStr, path: &Path) -> SysResult<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).at("unlink", path),
    }
}

fn set_time(parent: &OwnedFd, name: &OsStr, found: &Found, path: &Path) -> SysResult<()> {
    utimensat(parent, name, &modified(found), AtFlags::SYMLINK_NOFOLLOW).at("utimensat", path)
}

/// Which names belong to one file. A command decides how many there are, so each is looked at a few times only.
struct Links<'p> {
    /// Names of files that do not have the same names in both states.
    changed: HashSet<&'p Path>,
    /// The first name of each file that has several in the second state.
    first: HashMap<&'p Path, &'p Path>,
}

type Names<'p> = BTreeSet<&'p Path>;

impl<'p> Links<'p> {
    fn of(pairs: &'p [Pair]) -> Self {
        let before = groups(pairs.iter().map(|pair| (pair.path.as_path(), pair.before)));
        let now = groups(pairs.iter().map(|pair| (pair.path.as_path(), pair.now)));
        let mut changed = HashSet::new();
        for (groups, others) in [(&before, &now), (&now, &before)] {
            let others: HashMap<&Path, &Names<'_>> =
                others.iter().filter_map(|names| Some((*names.first()?, names))).collect();
            for names in groups {
                if names.first().and_then(|first| others.get(first)) != Some(&names) {
                    changed.extend(names.iter().copied());
                }
            }
        }
        let with_first = |names: &Names<'p>| {
            let first = names.first().copied();
            names.iter().filter_map(|name| Some((*name, first?))).collect::<Vec<_>>()
        };
        Self { changed, first: now.iter().flat_map(with_first).collect() }
    }

    /// Whether the names of the file at this path are the same in both states.
    fn are_same(&self, path: &Path) -> bool {
        !self.changed.contains(path)
    }

    /// The name of its file that comes before this one, if there is one.
    fn first(&self, path: &Path) -> Option<&'p Path> {
        self.first.get(path).copied().filter(|first| *first != path)
    }
}

/// The names of each file that has several.
fn groups<'p>(entries: impl Iterator<Item = (&'p Path, Option<Located>)>) -> Vec<Names<'p>> {
    let mut names: HashMap<(usize, u64, u64), Names<'p>> = HashMap::new();
    for (path, at) in entries {
        if let Some(Located { layer, found }) = at
            && found.kind == EntryKind::File
            && found.links > 1
        {
            names.entry((layer, found.device, found.inode)).or_default().insert(path);
        }
    }
    names.into_values().filter(|names| names.len() > 1).collect()
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
