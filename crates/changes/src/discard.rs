//! Removes what a session left: trees of any depth, with directories that nobody can enter. Must never follow a link nor
//! leave the tree.

use crate::layers::{is_absence, set_mode};
use palisade_sys::beneath::open_entry;
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult};
use rustix::fs::{
    AtFlags, Dir, FileType, RenameFlags, fstat, openat, renameat_with, statat, unlinkat,
};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Every level holds a descriptor. Deeper directories are moved to the top first.
const MAX_DEPTH: usize = 64;
const MOVED: &str = ".palisade-removed-";
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes the entry `name` of `parent` with everything below it, and says how many entries that were. Nothing of that
/// name is no error.
pub fn discard(parent: BorrowedFd<'_>, name: &OsStr) -> SysResult<u64> {
    let mut removal = Removal { parent, moved: 0, waiting: vec![name.to_owned()], removed: 0 };
    while let Some(name) = removal.waiting.pop() {
        removal.remove(parent, &name, 0)?;
    }
    Ok(removal.removed)
}

struct Removal<'p> {
    parent: BorrowedFd<'p>,
    /// How many directories were moved to the top.
    moved: u64,
    waiting: Vec<OsString>,
    removed: u64,
}

impl Removal<'_> {
    fn remove(&mut self, dir: BorrowedFd<'_>, name: &OsStr, depth: usize) -> SysResult<()> {
        let path = Path::new(name);
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) => {
                self.removed += 1;
                return Ok(());
            }
            Err(errno) if is_absence(errno) => return Ok(()),
            // What Linux says of a directory; POSIX has EPERM.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(errno).at("unlink", path),
        }
        if depth == MAX_DEPTH {
            return self.move_to_top(dir, name);
        }
        let directory = open_any(dir, name)?;
        let entries = Dir::read_from(&directory).at("getdents", path)?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.at("getdents", path)?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        for name in names {
            self.remove(directory.as_fd(), &name, depth + 1)?;
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.removed += 1,
            Err(errno) if is_absence(errno) => {}
            Err(errno) => return Err(errno).at("rmdir", path),
        }
        Ok(())
    }

    fn move_to_top(&mut self, dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<()> {
        // A directory that its owner may not write cannot change its parent.
        drop(open_any(dir, name)?);
        loop {
            let new = OsString::from(format!("{MOVED}{}", self.moved));
            self.moved += 1;
            match renameat_with(dir, name, self.parent, &new, RenameFlags::NOREPLACE) {
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
fn open_any(dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<OwnedFd> {
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
