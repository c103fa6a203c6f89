//! Renames of directories in an overlay. The kernel answers `EXDEV` if a part of such a directory is in the lower layer: it
//! would have to leave a reference to the old name there, which in a user namespace it must not
//! (`redirect_dir`, Documentation/filesystems/overlayfs.rst). `git mv` and `os.rename` do not expect that.
//!
//! Everything in the directory gets a second name in a new directory, by link(2): the kernel copies a file of the lower
//! layer up, once and with everything that belongs to it. Then the new directory gets its name, and the old names are
//! removed. So the old directory is whole until the new one is there, and what somebody makes in it meanwhile stays.

use crate::NO_MODE;
use crate::place::ResolvedParent;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{
    AtFlags, Dir, FileType, RenameFlags, ResolveFlags, Stat, Timespec, Timestamps, XattrFlags,
    fchmod, fgetxattr, flistxattr, fsetxattr, fstat, futimens, linkat, mkdirat, openat2,
    renameat_with, statat, unlinkat,
};
use std::ffi::{CStr, OsString};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every level holds three descriptors. A program that gets `EXDEV` copies the tree itself.
const MAX_DEPTH: usize = 64;
/// The new directory before it has its name.
const UNFINISHED: &str = ".palisade-moving-";

/// How many names are tried for it.
const MAX_NAMES: usize = 1000;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory, and the name that it is to get. Both are in one overlay.
#[derive(Debug)]
pub(crate) struct DirectoryMove {
    pub(crate) old: ResolvedParent,
    pub(crate) new: ResolvedParent,
    pub(crate) flags: RenameFlags,
}

impl DirectoryMove {
    /// If it fails, the directory has its old name.
    pub(crate) fn perform(&self) -> Result<(), Errno> {
        let (old, new) = (&self.old, &self.new);
        if new.path.starts_with(&old.path) {
            return Err(Errno::INVAL);
        }
        let from = open_directory(&old.parent, &old.name)?;
        let unfinished = make_unfinished(&new.parent)?;
        let renamed = open_directory(&new.parent, &unfinished).and_then(|to| {
            link_all(&from, &to, MAX_DEPTH).map_err(|errno| match errno {
                // What cannot be read could still have been renamed; and the caller may have descriptors left.
                Errno::ACCESS | Errno::MFILE | Errno::NFILE => Errno::XDEV,
                errno => errno,
            })?;
            renameat_with(&new.parent, &unfinished, &new.parent, &new.name, self.flags)?;
            Ok(to)
        });
        match renamed {
            Ok(to) => {
                unlink_all(&from, &to, MAX_DEPTH);
                // It stays with what was made in it meanwhile.
                let _ = unlinkat(&old.parent, &old.name, AtFlags::REMOVEDIR);
                Ok(())
            }
            Err(errno) => {
                remove_all(&new.parent, &unfinished, MAX_DEPTH);
                Err(errno)
            }
        }
    }
}

/// Never follows a link, and never leaves the overlay: what is mounted in a directory cannot be moved with it.
fn open_directory(parent: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    openat2(parent, name, DIRECTORY, NO_MODE, resolve)
}

/// A new directory in which the moved one comes about.
fn make_unfinished(parent: &OwnedFd) -> Result<OsString, Errno> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    for _ in 0..MAX_NAMES {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("{UNFINISHED}{number}"));
        match mkdirat(parent, &name, Mode::RWXU) {
            // A broker of this session that was killed left it.
            Err(Errno::EXIST) => {}
            made => return made.map(|()| name),
        }
    }
    Err(Errno::XDEV)
}

/// Gives everything in `from` a name in `to`, and `to` what `from` has besides its name.
fn link_all(from: &OwnedFd, to: &OwnedFd, depth: usize) -> Result<(), Errno> {
    let depth = depth.checked_sub(1).ok_or(Errno::XDEV)?;
    for entry in Dir::read_from(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_dots(name) {
            continue;
        }
        if is_directory(entry.file_type(), from, name)? {
            let below = open_directory(from, name)?;
            mkdirat(to, name, Mode::RWXU)?;
            link_all(&below, &open_directory(to, name)?, depth)?;
        } else {
            linkat(from, name, to, name, AtFlags::empty()).map_err(|errno| match errno {
                // A file of somebody else's cannot be linked (fs.protected_hardlinks), but could have been renamed.
                Errno::PERM | Errno::MLINK => Errno::XDEV,
                errno => errno,
            })?;
        }
    }
    take_over(&fstat(from)?, from, to)
}

/// Permissions, attributes and times.
fn take_over(found: &Stat, from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    copy_attributes(from, to)?;
    fchmod(to, Mode::from_raw_mode(found.st_mode & 0o1777))?;
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
    };
    let times = Timestamps {
        last_access: time(found.st_atime, found.st_atime_nsec),
        last_modification: time(found.st_mtime, found.st_mtime_nsec),
    };
    futimens(to, &times)
}

fn copy_attributes(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    // The largest list and value that the kernel knows (xattr(7)).
    let mut names = vec![0; 65_536];
    let length = match flistxattr(from, &mut names) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        length => length?,
    };
    let mut value = vec![0; if length == 0 { 0 } else { 65_536 }];
    let names = names[..length].split_inclusive(|byte| *byte == 0);
    for name in names.filter(|name| name.starts_with(b"user.")) {
        let name = CStr::from_bytes_with_nul(name).map_err(|_| Errno::INVAL)?;
        let length = fgetxattr(from, name, &mut value)?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// Removes the names in `from` of what has one in `to`. What cannot be removed stays.
fn unlink_all(from: &OwnedFd, to: &OwnedFd, depth: usize) {
    let (Some(depth), Ok(entries)) = (depth.checked_sub(1), Dir::read_from(to)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if is_dots(name) {
            continue;
        }
        let look = |directory: &OwnedFd| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let (Ok(old), Ok(new)) = (look(from), look(to)) else { continue };
        let kind = FileType::from_raw_mode(old.st_mode);
        if kind != FileType::from_raw_mode(new.st_mode) {
            continue;
        }
        if kind == FileType::Directory {
            let open = |directory: &OwnedFd| open_directory(directory, name);
            if let (Ok(old), Ok(new)) = (open(from), open(to)) {
                unlink_all(&old, &new, depth);
            }
            let _ = unlinkat(from, name, AtFlags::REMOVEDIR);
        } else if is_one_file(&old, &new) {
            let _ = unlinkat(from, name, AtFlags::empty());
        }
    }
}

/// An overlay shows two names of one file with two inode numbers if one of them was found in the lower layer. That they were
/// linked changed the times of both.
fn is_one_file(one: &Stat, other: &Stat) -> bool {
    let seen = |stat: &Stat| {
        let changed = (stat.st_ctime, stat.st_ctime_nsec);
        let modified = (stat.st_mtime, stat.st_mtime_nsec);
        (changed, modified, stat.st_size, stat.st_mode, stat.st_nlink)
    };
    one.st_nlink > 1 && seen(one) == seen(other)
}

/// Removes an unfinished directory, whose files all have another name.
fn remove_all(parent: &OwnedFd, name: impl rustix::path::Arg + Copy, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Ok(directory) = open_directory(parent, name)
        && let Ok(entries) = Dir::read_from(&directory)
    {
        for entry in entries.flatten() {
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            if unlinkat(&directory, name, AtFlags::empty()).is_err() {
                remove_all(&directory, name, depth);
            }
        }
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}

fn is_directory(kind: FileType, parent: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    Ok(match kind {
        FileType::Unknown => {
            let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            FileType::from_raw_mode(found.st_mode) == FileType::Directory
        }
        kind => kind == FileType::Directory,
    })
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
