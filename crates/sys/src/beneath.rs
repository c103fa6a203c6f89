//! Opens and creates files below a directory descriptor. Must never leave the directory, nor follow a link
//! where the function does not say so: a tree prepared for a sandbox may contain names an attacker chose.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{At, Result, SysError};

/// openat2(2) fails with `EAGAIN` when a concurrent rename keeps it from proving that a `..` stays below the root.
const RESOLVE_TRIES: u32 = 32;

/// Opens `path` as if `root` were `/`; any link on the way is an error (`ELOOP`). The descriptor is
/// close-on-exec. See openat2(2).
pub fn open_beneath(root: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    open_how(root, path, flags, Mode::empty())
}

/// The same, if the kernel has cached every name on the way (`RESOLVE_CACHED`, 5.12); `EAGAIN` otherwise. So it
/// triggers no automount and asks no file server. A link as the last component is an error, too.
pub fn open_if_known(root: impl AsFd, path: &Path) -> Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::CACHED;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(root, path, flags, Mode::empty(), resolve).at("openat2", path)
}

/// Opens `path`, which must not be absolute, below `root` and on the same mount; any link on the way is
/// an error (`ELOOP`), and so is another mount (`EXDEV`). The descriptor is close-on-exec.
pub fn open_on_mount(root: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_XDEV
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags, Mode::empty(), resolve)
}

/// Resolves `path`, following links that stay below `root`, and opens the result (`O_PATH`). `EXDEV` if it leads out or
/// through an absolute link, `ELOOP` at a magic link of `/proc`.
pub fn resolve_beneath(root: impl AsFd, path: &Path) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, OFlags::PATH, Mode::empty(), resolve)
}

/// Opens one entry of a directory (`O_PATH`) without following a link. Does not need openat2(2).
pub fn open_entry(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    if matches!(name.as_encoded_bytes(), b"" | b"." | b"..")
        || name.as_encoded_bytes().contains(&b'/')
    {
        return Err(SysError::new("openat", name.display().to_string(), Errno::INVAL));
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).at("openat", Path::new(name))
}

/// Creates a regular file that must not exist yet, open for writing. The umask applies.
pub fn create_file_beneath(root: impl AsFd, path: &Path, mode: Mode) -> Result<OwnedFd> {
    open_how(root, path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)
}

/// Creates the directories of `path` that are missing and opens the last one (`O_PATH`). The umask
/// applies. `..` is refused.
pub fn mkdir_p_beneath(root: impl AsFd, path: &Path, mode: Mode) -> Result<OwnedFd> {
    let refused = |part| matches!(part, Component::ParentDir | Component::Prefix(_));
    if path.components().any(refused) {
        return Err(SysError::new("mkdir", path.display().to_string(), Errno::INVAL));
    }
    mkdir_missing(root.as_fd(), path, mode)
}

fn mkdir_missing(root: BorrowedFd<'_>, path: &Path, mode: Mode) -> Result<OwnedFd> {
    let directory = OFlags::PATH | OFlags::DIRECTORY;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    // Usually it is there, or all but the last name are. Looked up first: on a read-only tree, mkdir(2) would fail with
    // EROFS even if the directory exists.
    let (parent, name) = match (open_beneath(root, path, directory), path.file_name()) {
        (Err(error), Some(name)) if error.errno == Errno::NOENT => {
            (mkdir_missing(root, path.parent().unwrap_or(Path::new("")), mode)?, name)
        }
        (opened, _) => return opened,
    };
    match rustix::fs::mkdirat(&parent, name, mode) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno).at("mkdir", path),
    }
    open_beneath(&parent, Path::new(name), directory)
        .map_err(|error| SysError { subject: path.display().to_string(), ..error })
}

/// Creates a symbolic link at `path` that holds `target`.
pub fn symlink_beneath(root: impl AsFd, target: &Path, path: &Path) -> Result<()> {
    let (parent, name) = open_parent(root, path)?;
    rustix::fs::symlinkat(target, parent, name).at("symlink", path)
}

/// Creates an overlay whiteout, a character device 0:0. Since 5.8 this needs no privilege.
pub fn mknod_whiteout(dir: impl AsFd, name: &OsStr) -> Result<()> {
    let (parent, name) = open_parent(dir, Path::new(name))?;
    rustix::fs::mknodat(parent, name, FileType::CharacterDevice, Mode::empty(), 0)
        .at("mknod", Path::new(name))
}

fn open_parent(root: impl AsFd, path: &Path) -> Result<(OwnedFd, &OsStr)> {
    let Some(name) = path.file_name() else {
        return Err(SysError::new("open", path.display().to_string(), Errno::INVAL));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    Ok((open_beneath(root, parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
}

fn open_how(root: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // No O_NOFOLLOW: with O_PATH it would open a trailing link itself, which NO_SYMLINKS refuses.
    openat2(root, path, flags, mode, resolve)
}

fn openat2(
    root: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(root.as_fd(), path, flags, mode, resolve) {
            Err(Errno::AGAIN) if tries < RESOLVE_TRIES => tries += 1,
            Err(Errno::INTR) => {}
            opened => return opened.at("openat2", path),
        }
    }
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
