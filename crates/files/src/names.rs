//! Operations on names: stat, make, rename, remove. Each is what a program does that is started in the sandbox; nothing is
//! decided here.

use crate::protocol::{FileError, FileInfo};
use palisade_sys::{Errno, Mode};
use rustix::fs::{AtFlags, CWD, FileType as KernelType, RenameFlags, Stat};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Permissions of a new directory, less the umask.
const NEW_DIRECTORY: Mode = Mode::from_raw_mode(0o777);

/// What goes wrong in a call at a path.
pub(crate) trait At<T> {
    fn at(self, call: &str, path: &Path) -> Result<T, FileError>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, call: &str, path: &Path) -> Result<T, FileError> {
        self.map_err(|errno| FileError { call: call.to_owned(), path: path.to_owned(), errno })
    }
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, call: &str, path: &Path) -> Result<T, FileError> {
        // One without a number is of our own making: a write that ended before its last byte.
        self.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).at(call, path)
    }
}

pub(crate) fn info(path: &Path, follow_links: bool) -> Result<FileInfo, FileError> {
    let flags = if follow_links { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let stat = rustix::fs::statat(CWD, path, flags).at("stat", path)?;
    Ok(FileInfo::new(&stat, link_target(&stat, path)))
}

/// Where a link leads. One that is gone meanwhile leads nowhere.
pub(crate) fn link_target(stat: &Stat, path: &Path) -> Option<PathBuf> {
    if KernelType::from_raw_mode(stat.st_mode) != KernelType::Symlink {
        return None;
    }
    let target = rustix::fs::readlink(path, Vec::new()).ok()?;
    Some(OsString::from_vec(target.into_bytes()).into())
}

pub(crate) fn make_directory(path: &Path, make_parents: bool) -> Result<FileInfo, FileError> {
    match rustix::fs::mkdir(path, NEW_DIRECTORY) {
        Err(Errno::NOENT) if make_parents => {
            make_parents_of(path)?;
            // Another process may have been as fast.
            ignore_existing(rustix::fs::mkdir(path, NEW_DIRECTORY), path)?;
        }
        Err(Errno::EXIST) if make_parents => {}
        made => made.at("mkdir", path)?,
    }
    let info = info(path, true)?;
    if info.file_type == crate::FileType::Directory {
        Ok(info)
    } else {
        Err(Errno::EXIST).at("mkdir", path)
    }
}

pub(crate) fn make_parents_of(path: &Path) -> Result<(), FileError> {
    match path.parent() {
        None => Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Ok(()),
        Some(parent) => make_directory(parent, true).map(drop),
    }
}

fn ignore_existing(made: Result<(), Errno>, path: &Path) -> Result<(), FileError> {
    match made {
        Err(Errno::EXIST) => Ok(()),
        made => made.at("mkdir", path),
    }
}

pub(crate) fn rename(from: &Path, to: &Path, replace: bool) -> Result<FileInfo, FileError> {
    let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    rustix::fs::renameat_with(CWD, from, CWD, to, flags).at("rename", from)?;
    info(to, false)
}

pub(crate) fn remove(path: &Path, recursive: bool) -> Result<(), FileError> {
    let stat = rustix::fs::lstat(path).at("stat", path)?;
    if KernelType::from_raw_mode(stat.st_mode) != KernelType::Directory {
        return rustix::fs::unlink(path).at("unlink", path);
    }
    if !recursive {
        return rustix::fs::rmdir(path).at("rmdir", path);
    }
    // By descriptors, so that no link that appears meanwhile leads anywhere else.
    std::fs::remove_dir_all(path).at("remove", path)
}
