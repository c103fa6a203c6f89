//! The steps of an apply. Each can be performed again after a crash, and each can be undone: what is at a path is known by
//! its inode, which a rename keeps.

use crate::entry::{EntryKind, Found, Timestamp};
use crate::error::{ChangesError, Result};
use crate::layers::{Layers, set_mode};
use crate::listing::names_in;
use crate::paths::parent_and_name;
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::{At as _, Errno, OFlags, Result as SysResult, SysError};
use rustix::fs::{
    AtFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, renameat_with, utimensat,
};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Operation {
    /// Puts a new entry at `target`. What was there comes to where the new one was.
    Install {
        source: Place,
        #[serde(with = "crate::bytes_path")]
        target: PathBuf,
        inode: u64,
        replaces: Option<Stamp>,
    },
    /// Moves what is at `target` to `place`, where it is removed after the commit.
    Remove {
        #[serde(with = "crate::bytes_path")]
        target: PathBuf,
        place: Place,
        stamp: Stamp,
    },
    SetAttributes {
        #[serde(with = "crate::bytes_path")]
        target: PathBuf,
        inode: u64,
        old: Attributes,
        new: Attributes,
    },
}

/// Outside of the project's tree, but on its file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    Staged(#[serde(with = "crate::bytes_path")] PathBuf),
    /// In the upper layer of this number.
    Upper(usize, #[serde(with = "crate::bytes_path")] PathBuf),
}

/// By what an entry of the host is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    inode: u64,
    kind: EntryKind,
    size: u64,
    modified: Timestamp,
    /// Before the review of what is below a directory: nothing there may have changed after this.
    reviewed: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    /// None leaves the time as it is.
    pub(super) modified: Option<Timestamp>,
}

impl Stamp {
    pub(super) fn of(found: &Found, reviewed: Timestamp) -> Self {
        let Found { inode, kind, size, modified, .. } = *found;
        Self { inode, kind, size, modified, reviewed }
    }

    /// Of a directory, only that it is the same.
    fn fits(&self, found: Option<&Found>) -> bool {
        found.is_some_and(|found| {
            let now = Self::of(found, self.reviewed);
            now.inode == self.inode
                && now.kind == self.kind
                && (self.kind == EntryKind::Directory || now == *self)
        })
    }
}

/// Where operations work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'g> {
    pub(super) layers: &'g Layers,
    pub(super) stage: BorrowedFd<'g>,
}

/// A name in an open directory.
struct Name {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Name {
    fn found(&self, layers: &Layers) -> SysResult<Option<Found>> {
        layers.stat_in(self.dir.as_fd(), &self.name)
    }

    fn has(&self, layers: &Layers, inode: u64) -> SysResult<bool> {
        Ok(self.found(layers)?.is_some_and(|found| found.inode == inode))
    }

    fn rename(&self, to: &Self, flags: RenameFlags) -> std::result::Result<(), Errno> {
        renameat_with(&self.dir, &self.name, &to.dir, &to.name, flags)
    }
}

impl Ground<'_> {
    pub(super) fn perform(self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Install { source, target, inode, replaces } => {
                self.install(source, target, *inode, replaces.as_ref())
            }
            Operation::Remove { target, place, stamp } => self.remove(target, place, stamp),
            Operation::SetAttributes { target, inode, new, .. } => {
                match self.set_attributes(target, *inode, *new)? {
                    true => Ok(()),
                    false => Err(changed(target)),
                }
            }
        }
    }

    pub(super) fn undo(self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Install { source, target, inode, replaces } => {
                let (source, target) = (self.place(source)?, self.target(target)?);
                if target.has(self.layers, *inode)? {
                    let flags = match replaces {
                        Some(_) => RenameFlags::EXCHANGE,
                        None => RenameFlags::NOREPLACE,
                    };
                    target.rename(&source, flags).at("rename", &target.path)?;
                }
            }
            Operation::Remove { target, place, stamp } => {
                let (place, target) = (self.place(place)?, self.target(target)?);
                if place.has(self.layers, stamp.inode)? {
                    place.rename(&target, RenameFlags::NOREPLACE).at("rename", &target.path)?;
                }
            }
            Operation::SetAttributes { target, inode, old, .. } => {
                // Another entry by now keeps its own.
                self.set_attributes(target, *inode, *old)?;
            }
        }
        Ok(())
    }

    /// What an exchange left in an upper layer, once it is not needed any more.
    pub(super) fn remove_leftover(self, operation: &Operation) -> Result<()> {
        if let Operation::Install {
            source: place @ Place::Upper(..), replaces: Some(stamp), ..
        } = operation
        {
            let place = self.place(place)?;
            if place.has(self.layers, stamp.inode)? {
                crate::discard::discard(place.dir.as_fd(), &place.name)?;
            }
        }
        Ok(())
    }

    fn install(
        self,
        source: &Place,
        target: &Path,
        inode: u64,
        replaces: Option<&Stamp>,
    ) -> Result<()> {
        let (source, target) = (self.place(source)?, self.target(target)?);
        let before = target.found(self.layers)?;
        if before.is_some_and(|found| found.inode == inode) {
            return Ok(());
        }
        if !source.has(self.layers, inode)? {
            return Err(changed(&source.path));
        }
        let Some(stamp) = replaces else {
            return match source.rename(&target, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => Err(changed(&target.path)),
                renamed => Ok(renamed.at("rename", &target.path)?),
            };
        };
        if !stamp.fits(before.as_ref()) {
            return Err(changed(&target.path));
        }
        source.rename(&target, RenameFlags::EXCHANGE).at("rename", &target.path)?;
        // The host may have changed it after the look above, never after this one.
        if !self.is_as_reviewed(&source, stamp)? {
            source.rename(&target, RenameFlags::EXCHANGE).at("rename", &target.path)?;
            return Err(changed(&target.path));
        }
        Ok(())
    }

    fn remove(self, target: &Path, place: &Place, stamp: &Stamp) -> Result<()> {
        let (place, target) = (self.place(place)?, self.target(target)?);
        // Done before: whatever the host put there since stays.
        if place.has(self.layers, stamp.inode)? {
            return Ok(());
        }
        let Some(before) = target.found(self.layers)? else { return Ok(()) };
        if !stamp.fits(Some(&before)) {
            return Err(changed(&target.path));
        }
        target.rename(&place, RenameFlags::NOREPLACE).at("rename", &target.path)?;
        if !self.is_as_reviewed(&place, stamp)? {
            place.rename(&target, RenameFlags::NOREPLACE).at("rename", &target.path)?;
            return Err(changed(&target.path));
        }
        Ok(())
    }

    /// Whether what was moved out of the project is what was reviewed, with everything below it.
    fn is_as_reviewed(self, moved: &Name, stamp: &Stamp) -> SysResult<bool> {
        if !stamp.fits(moved.found(self.layers)?.as_ref()) {
            return Ok(false);
        }
        let mut directories = match stamp.kind {
            EntryKind::Directory => vec![PathBuf::from(&moved.name)],
            _ => Vec::new(),
        };
        while let Some(directory) = directories.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let dir = match open_on_mount(&moved.dir, &directory, flags) {
                // Nobody without special rights could change it either.
                Err(error) if error.errno == Errno::ACCESS => continue,
                dir => dir?,
            };
            for name in names_in(&dir, &directory)? {
                match self.layers.stat_in(dir.as_fd(), &name)? {
                    Some(found) if found.changed >= stamp.reviewed => return Ok(false),
                    Some(found) if found.is_directory() => directories.push(directory.join(name)),
                    _ => {}
                }
            }
        }
        Ok(true)
    }

    /// False if another entry is there by now.
    fn set_attributes(self, target: &Path, inode: u64, to: Attributes) -> Result<bool> {
        let target = self.target(target)?;
        let entry = match open_entry_or_root(&target) {
            Err(error) if error.errno == Errno::NOENT => return Ok(false),
            entry => entry?,
        };
        let found = Found::of(&rustix::fs::fstat(&entry).at("fstat", &target.path)?);
        if found.inode != inode || found.kind == EntryKind::Link {
            return Ok(false);
        }
        set_mode(entry.as_fd(), to.mode, &target.path)?;
        if let Some(modified) = to.modified {
            set_modified(target.dir.as_fd(), &target.name, modified, &target.path)?;
        }
        Ok(true)
    }

    fn place(self, place: &Place) -> SysResult<Name> {
        match place {
            Place::Staged(path) => {
                let (parent, name) = split(path)?;
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                let dir = open_on_mount(self.stage, crate::paths::or_dot(parent), flags)?;
                Ok(Name { dir, name: name.to_owned(), path: path.clone() })
            }
            Place::Upper(layer, path) => self.name_in(*layer, path),
        }
    }

    fn target(self, path: &Path) -> SysResult<Name> {
        self.name_in(self.layers.project(), path)
    }

    fn name_in(self, layer: usize, path: &Path) -> SysResult<Name> {
        if layer > self.layers.project() {
            return Err(SysError::new("openat2", path.display().to_string(), Errno::INVAL));
        }
        if path.as_os_str().is_empty() {
            let dir = self.layers.open_parent(layer, path)?;
            return Ok(Name { dir, name: OsString::from("."), path: PathBuf::from(".") });
        }
        let (parent, name) = split(path)?;
        let dir = self.layers.open_parent(layer, parent)?;
        Ok(Name { dir, name: name.to_owned(), path: path.to_owned() })
    }
}

fn open_entry_or_root(target: &Name) -> SysResult<OwnedFd> {
    if target.name == "." {
        return open_on_mount(&target.dir, Path::new("."), OFlags::PATH);
    }
    open_entry(&target.dir, &target.name)
}

fn split(path: &Path) -> SysResult<(&Path, &OsStr)> {
    let invalid = || SysError::new("rename", path.display().to_string(), Errno::INVAL);
    parent_and_name(path).ok_or_else(invalid)
}

fn changed(path: &Path) -> ChangesError {
    ChangesError::ChangedOnHost { path: path.to_owned() }
}

pub(super) fn set_modified(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    modified: Timestamp,
    path: &Path,
) -> SysResult<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanoseconds.into(),
        },
    };
    utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW).at("utimensat", path)
}
