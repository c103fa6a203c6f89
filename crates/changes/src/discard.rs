//! Removes what a session left: trees of any depth, with directories that nobody can enter. Must never follow a link nor
//! leave the tree.

use crate::error::Result;
use crate::layers::{is_absence, set_mode};
use crate::listing::names_in;
use palisade_sys::beneath::open_entry;
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult};
use rustix::fs::{AtFlags, FileType, RenameFlags, fstat, openat, renameat_with, statat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// Every level holds a descriptor. Deeper directories are moved to the top of the tree first.
const MAX_DEPTH: usize = 64;
const MOVED: &str = ".palisade-removed-";
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes the entry `name` of `parent` with everything below it, and says how many entries that were. Nothing of that
/// name is no error. Interrupted, it can be repeated.
pub fn discard(parent: BorrowedFd<'_>, name: &OsStr) -> Result<u64> {
    let path = Path::new(name);
    match unlink(parent, name)? {
        Unlinked::Removed => return Ok(1),
        Unlinked::Absent => return Ok(0),
        Unlinked::IsDirectory => {}
    }
    let top = open_any(parent, name)?;
    let mut removal = Removal { top: top.as_fd(), moved: 0, waiting: Vec::new(), removed: 0 };
    removal.empty(top.as_fd(), path, 1)?;
    while let Some(name) = removal.waiting.pop() {
        removal.remove(top.as_fd(), &name, 1)?;
    }
    removal.remove_directory(parent, name)?;
    Ok(removal.removed)
}

enum Unlinked {
    Removed,
    Absent,
    IsDirectory,
}

fn unlink(dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<Unlinked> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) => Ok(Unlinked::Removed),
        Err(errno) if is_absence(errno) => Ok(Unlinked::Absent),
        // What Linux says of a directory; POSIX has EPERM.
        Err(Errno::ISDIR | Errno::PERM) => Ok(Unlinked::IsDirectory),
        Err(errno) => Err(errno).at("unlink", Path::new(name)),
    }
}

struct Removal<'t> {
    top: BorrowedFd<'t>,
    /// How many directories were moved to the top.
    moved: u64,
    /// Those that are still there.
    waiting: Vec<OsString>,
    removed: u64,
}

impl Removal<'_> {
    fn remove(&mut self, dir: BorrowedFd<'_>, name: &OsStr, depth: usize) -> SysResult<()> {
        match unlink(dir, name)? {
            Unlinked::Removed => self.removed += 1,
            Unlinked::Absent => {}
            Unlinked::IsDirectory if depth == MAX_DEPTH => self.move_to_top(dir, name)?,
            Unlinked::IsDirectory => {
                let directory = open_any(dir, name)?;
                self.empty(directory.as_fd(), Path::new(name), depth + 1)?;
                self.remove_directory(dir, name)?;
            }
        }
        Ok(())
    }

    fn empty(&mut self, dir: BorrowedFd<'_>, path: &Path, depth: usize) -> SysResult<()> {
        let names = names_in(dir, path)?;
        names.iter().try_for_each(|name| self.remove(dir, name, depth))
    }

    fn remove_directory(&mut self, dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<()> {
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.removed += 1,
            Err(errno) if is_absence(errno) => {}
            Err(errno) => return Err(errno).at("rmdir", Path::new(name)),
        }
        Ok(())
    }

    fn move_to_top(&mut self, dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<()> {
        // A directory that its owner may not write cannot change its parent.
        drop(open_any(dir, name)?);
        loop {
            let new = OsString::from(format!("{MOVED}{}", self.moved));
            self.moved += 1;
            match renameat_with(dir, name, self.top, &new, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                Ok(()) => {
                    self.waiting.push(new);
                    return Ok(());
                }
                Err(errno) => return Err(errno).at("rename", Path::new(name)),
            }
        }
    }
}

/// Opens a directory, after making it usable for its owner if it is not (`work/` of an overlay is mode 000).
pub(crate) fn open_any(dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<OwnedFd> {
    let path = Path::new(name);
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).at("statat", path)?;
    if found.st_mode & 0o700 != 0o700 && FileType::from_raw_mode(found.st_mode).is_dir() {
        let entry = open_entry(dir, name)?;
        let mode = fstat(&entry).at("fstat", path)?.st_mode & 0o777;
        set_mode(entry.as_fd(), mode | 0o700, path)?;
    }
    openat(dir, name, DIRECTORY, Mode::empty()).at("openat", path)
}

#[cfg(test)]
#[path = "discard_tests.rs"]
mod tests;
