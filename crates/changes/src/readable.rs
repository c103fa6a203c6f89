//! Opens what its owner may have made unreadable: a session decides on the permissions of what it writes. Must never follow a
//! link, and leaves permissions as they were.

use crate::entry::{EntryKind, Found, KEPT_BITS};
use crate::layers::set_mode;
use palisade_sys::beneath::open_entry;
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult, SysError};
use rustix::fs::{fstat, openat};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// Opening a FIFO or a device neither waits nor takes a terminal.
pub(crate) const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An entry that its owner may have made unreadable, which it is again afterwards.
pub(crate) struct Readable {
    pub(crate) file: OwnedFd,
    closed: Option<(OwnedFd, u32)>,
}

impl From<OwnedFd> for Readable {
    fn from(file: OwnedFd) -> Self {
        Self { file, closed: None }
    }
}

impl Drop for Readable {
    fn drop(&mut self) {
        if let Some((entry, mode)) = &self.closed {
            // If it fails, the entry is gone.
            let _ = set_mode(entry.as_fd(), *mode, Path::new(""));
        }
    }
}

pub(crate) fn open_readable(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    path: &Path,
) -> SysResult<Readable> {
    let flags = flags | OFlags::CLOEXEC;
    match openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        // What can be listed but not entered is of no use.
        Ok(file) if flags.contains(OFlags::DIRECTORY) && is_closed_directory(&file, path)? => {}
        opened => return opened.at("openat", path).map(|file| Readable { file, closed: None }),
    }
    readable(open_entry(dir, name)?, flags, path)
}

fn is_closed_directory(entry: &OwnedFd, path: &Path) -> SysResult<bool> {
    let found = Found::of(&fstat(entry).at("fstat", path)?);
    Ok(found.is_directory() && found.mode & 0o500 != 0o500)
}

/// Opens what a descriptor without rights to the content (`O_PATH`) stands for.
pub(crate) fn readable(entry: OwnedFd, flags: OFlags, path: &Path) -> SysResult<Readable> {
    let found = Found::of(&fstat(&entry).at("fstat", path)?);
    if !matches!(found.kind, EntryKind::Directory | EntryKind::File) {
        return Err(SysError::new("openat", path.display().to_string(), Errno::NOENT));
    }
    let link = format!("/proc/self/fd/{}", entry.as_raw_fd());
    let needed = if found.is_directory() { 0o500 } else { 0o400 };
    if found.mode & needed == needed {
        let file = rustix::fs::open(link, flags, Mode::empty()).at("open", path)?;
        return Ok(Readable { file, closed: None });
    }
    let mode = found.mode & KEPT_BITS;
    set_mode(entry.as_fd(), mode | needed, path)?;
    match rustix::fs::open(link, flags, Mode::empty()) {
        Ok(file) => Ok(Readable { file, closed: Some((entry, mode)) }),
        Err(errno) => {
            set_mode(entry.as_fd(), mode, path)?;
            Err(errno).at("open", path)
        }
    }
}
