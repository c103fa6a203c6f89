//! Directories of build output, where Landlock gives the command all rights to make and write files itself: the
//! kernel continues such calls, which costs half as much as performing them.
//!
//! The kernel reads the path again, so nothing may depend on what is found here: wherever the path leads by then,
//! Landlock allows or refuses it by location alone. What is found here only says whether Landlock would allow it. If
//! that is uncertain (a link on the way, a directory that was made anew and has no rights), the call is performed like
//! any other. Renames and links always are: Landlock lets nothing change its directory, so what leaves a build
//! directory is judged.

use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{CWD, ResolveFlags, fstat, lstat, openat2};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct BuildDirs(Vec<BuildDir>);

#[derive(Debug)]
struct BuildDir {
    path: PathBuf,
    /// As it was when the rights were given.
    top: OwnedFd,
    inode: (u64, u64),
}

impl BuildDirs {
    /// Before the command starts. One that has changed since the plan was made is left out.
    pub(crate) fn open(paths: &[PathBuf]) -> Self {
        let opened = paths.iter().filter_map(|path| BuildDir::open(path).ok());
        Self(opened.collect())
    }

    /// Whether Landlock allows this call wherever its path leads now.
    pub(crate) fn is_left_to_kernel(&self, caller: &Caller, call: Call) -> bool {
        if self.0.is_empty() {
            return false;
        }
        match call {
            Call::Open { path, flags, .. } => {
                let flags = OFlags::from_bits_retain(flags);
                opens_by_name(flags) && self.hold(caller, path, call.follows_target())
            }
            Call::MakeDirectory { path, .. }
            | Call::MakeNode { path, .. }
            | Call::SymbolicLink { path, .. } => self.hold(caller, path, false),
            _ => false,
        }
    }

    fn hold(&self, caller: &Caller, at: PathArg, follows: bool) -> bool {
        let Ok(typed) = caller.path(at.address) else { return false };
        if typed.starts_with(b"/") {
            return self.hold_path(&typed, follows);
        }
        let mut path = caller.path_of_directory(at.dir);
        path.push(b'/');
        path.extend_from_slice(&typed);
        self.hold_path(&path, follows)
    }

    fn hold_path(&self, path: &[u8], follows: bool) -> bool {
        let found = self.0.iter().find_map(|dir| {
            let below = path.strip_prefix(dir.path.as_os_str().as_bytes())?.strip_prefix(b"/")?;
            Some((dir, below))
        });
        found.is_some_and(|(dir, below)| is_plain(below) && dir.holds(below, follows))
    }
}

impl BuildDir {
    fn open(path: &Path) -> Result<Self, Errno> {
        let top = openat2(CWD, path, DIRECTORY, NO_MODE, ResolveFlags::NO_SYMLINKS)?;
        let found = fstat(&top)?;
        Ok(Self { path: path.to_owned(), top, inode: (found.st_dev, found.st_ino) })
    }

    fn holds(&self, below: &[u8], follows: bool) -> bool {
        let is_same =
            lstat(&self.path).is_ok_and(|found| (found.st_dev, found.st_ino) == self.inode);
        let last = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::CLOEXEC | last;
        // A missing name is to be made; whatever is missing, the kernel says so.
        is_same
            && matches!(
                openat2(&self.top, OsStr::from_bytes(below), flags, NO_MODE, resolve),
                Ok(_) | Err(Errno::NOENT)
            )
    }
}

/// Whether it opens a file for writing, by its name. Landlock need not handle truncation, so what truncates without
/// writing is not left to the kernel anywhere.
fn opens_by_name(flags: OFlags) -> bool {
    const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    (writes || !flags.contains(OFlags::TRUNC))
        && !flags.intersects(UNNAMED | OFlags::DIRECTORY | OFlags::PATH)
}

/// Whether a relative path leads down and nowhere else.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

#[cfg(test)]
#[path = "build_dirs_tests.rs"]
mod tests;
