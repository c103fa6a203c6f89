//! Finds the file that is about to be executed, and checks it against a list of programs.
//!
//! It only looks. Where exec is forbidden, the broker's answer decides; where programs are listed, Landlock
//! does, and the result here is only reported.

use crate::NO_MODE;
use crate::call::PathArg;
use crate::caller::Caller;
use crate::numbered::own_descriptor;
use crate::place::Map;
use palisade_plan::model::Executables;
use palisade_sys::{Errno, OFlags};
use rustix::fs::{FileType, ResolveFlags, fstat, openat2, stat};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What a path given to exec names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    Program {
        /// Without links.
        path: PathBuf,
        /// Device and number.
        inode: (u64, u64),
    },
    /// The kernel would not start it for any user. Common when a program is searched in `PATH`.
    NoProgram(Errno),
    /// Only the caller can resolve it, for example its own `/proc/self/exe`.
    Unknown,
}

pub(crate) fn meant(map: &Map, caller: &Caller, at: PathArg, path: &[u8]) -> Meant {
    let file = match open(caller, at, path) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) if path.starts_with(b"/proc/") => return Meant::Unknown,
        Err(errno @ (Errno::NOENT | Errno::NOTDIR)) => return Meant::NoProgram(errno),
        Err(_) => return Meant::Unknown,
    };
    let (Ok(found), Ok(path)) = (fstat(&file), map.path_of(file.as_fd())) else {
        return Meant::Unknown;
    };
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if is_file && found.st_mode & 0o111 != 0 {
        Meant::Program { path, inode: (found.st_dev, found.st_ino) }
    } else {
        Meant::NoProgram(Errno::ACCESS)
    }
}

fn open(caller: &Caller, at: PathArg, path: &[u8]) -> Result<OwnedFd, Errno> {
    if path.is_empty() {
        return caller.file(at.dir);
    }
    if let Some(number) = own_descriptor(path) {
        return caller.file(number);
    }
    let base = if path.starts_with(b"/") { None } else { Some(caller.directory(at.dir)?) };
    let base = base.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(base, OsStr::from_bytes(path), flags, NO_MODE, ResolveFlags::NO_MAGICLINKS)
}

/// As Landlock counts: a file under any name, or everything below a directory.
pub(crate) fn is_listed(list: &Executables, path: &Path, inode: (u64, u64)) -> bool {
    list.paths().any(|listed| {
        path.starts_with(listed)
            || stat(listed).is_ok_and(|found| (found.st_dev, found.st_ino) == inode)
    })
}
