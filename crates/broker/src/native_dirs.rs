//! Directories where Landlock gives the command all rights to create and write files: mounts of the run's own, such as
//! the overlay of a transaction, and directories of build output. The kernel continues such calls, which costs a small part of performing
//! them.
//!
//! The kernel reads the path again, so nothing may depend on what is found here: wherever the path leads by then,
//! Landlock allows or refuses it by location alone. What is found here only says whether Landlock would allow it. If
//! that is uncertain (a link on the way, another mount, a directory that was created anew and has no rights), the call is
//! performed like any other. Landlock lets nothing leave a build directory, so renames and links there are always performed,
//! and what leaves it is judged.

use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{
    AtFlags, CWD, FileType, RenameFlags, ResolveFlags, fstat, lstat, openat2, statat,
};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Longest paths first, so that the first one that contains a path is the mount it is on.
#[derive(Debug)]
pub(crate) struct NativeDirs(Vec<NativeDir>);

#[derive(Debug)]
struct NativeDir {
    path: PathBuf,
    /// As it was when the rights were given.
    top: OwnedFd,
    inode: (u64, u64),
    kind: NativeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NativeKind {
    /// A mount of the run's own: Landlock lets the command rename and link there, too.
    OwnMount,
    /// A part of a guarded tree.
    BuildDir,
}

/// A path below one of the directories.
struct Below<'d> {
    dir: &'d NativeDir,
    path: Vec<u8>,
    /// Where the path below the directory begins.
    start: usize,
}

impl NativeDirs {
    /// Before the command starts. One that has changed since the plan was made is left out.
    pub(crate) fn open(own_mounts: &[PathBuf], build_dirs: &[PathBuf]) -> Self {
        let own_mounts = own_mounts.iter().map(|path| (path, NativeKind::OwnMount));
        let build_dirs = build_dirs.iter().map(|path| (path, NativeKind::BuildDir));
        let opened = own_mounts.chain(build_dirs);
        let opened = opened.filter_map(|(path, kind)| NativeDir::open(path, kind).ok());
        let mut dirs: Vec<NativeDir> = opened.collect();
        dirs.sort_by_key(|dir| std::cmp::Reverse(dir.path.as_os_str().len()));
        Self(dirs)
    }

    /// Whether Landlock allows this call wherever its paths lead now.
    pub(crate) fn is_left_to_kernel(&self, caller: &Caller, call: Call) -> bool {
        if self.0.is_empty() {
            return false;
        }
        match call {
            Call::Open { path, flags, .. } => {
                let flags = OFlags::from_bits_retain(flags);
                opens_by_name(flags) && self.holds(caller, path, call.follows_target())
            }
            Call::MakeDirectory { path, .. }
            | Call::MakeNode { path, .. }
            | Call::SymbolicLink { path, .. }
            | Call::Remove { path, .. }
            | Call::ChangeTimes { path, .. }
            | Call::ChangeAttribute { path, .. } => self.holds(caller, path, call.follows_target()),
            // On a file that bit is refused, and which of the two it is, the kernel would not ask.
            Call::ChangeMode { path, mode, .. } => {
                mode & Mode::SGID.bits() == 0 && self.holds(caller, path, call.follows_target())
            }
            Call::Rename { from, to, flags } => {
                let known = RenameFlags::NOREPLACE.bits();
                flags & !known == 0 && self.hold_both(caller, from, to)
            }
            Call::Link { from, to, flags: 0 } => self.hold_both(caller, from, to),
            _ => false,
        }
    }

    fn holds(&self, caller: &Caller, at: PathArg, follows: bool) -> bool {
        self.below(caller, at).is_some_and(|below| below.is_within(follows))
    }

    fn hold_both(&self, caller: &Caller, from: PathArg, to: PathArg) -> bool {
        let Some(from) = self.below(caller, from) else { return false };
        self.below(caller, to).is_some_and(|to| gets_another_name(&from, &to))
    }

    fn below(&self, caller: &Caller, at: PathArg) -> Option<Below<'_>> {
        let typed = caller.path(at.address).ok()?;
        if typed.starts_with(b"/") {
            return self.find(typed);
        }
        let mut path = caller.path_of_directory(at.dir);
        path.push(b'/');
        path.extend_from_slice(&typed);
        self.find(path)
    }

    fn find(&self, path: Vec<u8>) -> Option<Below<'_>> {
        let (dir, start) = self.0.iter().find_map(|dir| {
            let below = path.strip_prefix(dir.path.as_os_str().as_bytes())?.strip_prefix(b"/")?;
            Some((dir, path.len() - below.len()))
        })?;
        is_plain(&path[start..]).then_some(Below { dir, path, start })
    }
}

impl NativeDir {
    fn open(path: &Path, kind: NativeKind) -> Result<Self, Errno> {
        let top = openat2(CWD, path, DIRECTORY, NO_MODE, ResolveFlags::NO_SYMLINKS)?;
        let found = fstat(&top)?;
        Ok(Self { path: path.to_owned(), top, inode: (found.st_dev, found.st_ino), kind })
    }

    /// Whether its path still leads to it: a directory above it can be renamed.
    fn is_in_place(&self) -> bool {
        lstat(&self.path).is_ok_and(|found| (found.st_dev, found.st_ino) == self.inode)
    }
}

impl Below<'_> {
    fn name(&self) -> &OsStr {
        OsStr::from_bytes(&self.path[self.start..])
    }

    /// Whether the path leads through no link and to no other mount.
    fn is_within(&self, follows: bool) -> bool {
        let last = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::CLOEXEC | last;
        // A missing name is to be made; whatever is missing, the kernel says so.
        self.dir.is_in_place()
            && matches!(
                openat2(&self.dir.top, self.name(), flags, NO_MODE, resolve),
                Ok(_) | Err(Errno::NOENT)
            )
    }

    fn is_no_directory(&self) -> bool {
        statat(&self.dir.top, self.name(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::Directory)
    }
}

/// Whether something that is not a directory gets another name on the same mount. The kernel does not rename every
/// directory of an overlay (`overlay_move.rs`).
fn gets_another_name(from: &Below<'_>, to: &Below<'_>) -> bool {
    from.dir.kind == NativeKind::OwnMount
        && std::ptr::eq(from.dir, to.dir)
        && from.is_no_directory()
        && from.is_within(false)
        && to.is_within(false)
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
#[path = "native_dirs_tests.rs"]
mod tests;
