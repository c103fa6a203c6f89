//! Extended attributes: which ones are the session's own, and which are the overlay's. Only `user.` attributes that are
//! not named like the overlay's ever reach the host.

use palisade_sys::{At as _, Errno, Result as SysResult};
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fsetxattr};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::{Path, PathBuf};

/// Also what a session escaped: `user.overlay.overlay.opaque` is its own `user.overlay.opaque`, which a later overlay on
/// the host would obey.
const OF_OVERLAYS: &[u8] = b"user.overlay.";
const OPAQUE: &str = "user.overlay.opaque";
const ORIGIN: &str = "user.overlay.origin";
/// The kernel's own bounds (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const MAX_BYTES: usize = 65_536;

pub(crate) type UserAttributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Whether a directory of an upper layer hides what lies below it.
pub(crate) fn is_opaque(directory: impl AsFd) -> bool {
    let mut value = [0; 4];
    matches!(fgetxattr(directory, OPAQUE, &mut value), Ok(1)) && value[0] == b'y'
}

pub(crate) fn set_opaque(directory: impl AsFd, path: &Path) -> SysResult<()> {
    fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty()).at("fsetxattr", path)
}

/// Makes a directory of an upper layer hide what lies below it, if the other one does.
pub(crate) fn copy_opaque(from: impl AsFd, to: impl AsFd, path: &Path) -> SysResult<()> {
    match is_opaque(from) {
        true => set_opaque(to, path),
        false => Ok(()),
    }
}

/// Makes a file have these attributes of the session's own, and no others.
pub(crate) fn replace_attributes(
    file: impl AsFd,
    wanted: &UserAttributes,
    path: &Path,
) -> SysResult<()> {
    let file = file.as_fd();
    for name in user_attributes(file, path)?.into_keys() {
        if !wanted.contains_key(&name) {
            rustix::fs::fremovexattr(file, name.as_slice()).at("fremovexattr", path)?;
        }
    }
    set_attributes(file, wanted, path)
}

/// Whether an entry of an upper layer began as a copy of one below it.
pub(crate) fn is_copied_up(entry: &Path) -> bool {
    rustix::fs::lgetxattr_query(entry, ORIGIN).is_ok()
}

/// The attributes that would be carried to the host.
pub(crate) fn user_attributes(file: impl AsFd, path: &Path) -> SysResult<UserAttributes> {
    let file = file.as_fd();
    let mut found = UserAttributes::new();
    let names = match list(file) {
        // A file system without attributes has none.
        Err(Errno::OPNOTSUPP) => return Ok(found),
        names => names.at("flistxattr", path)?,
    };
    for name in names.split(|byte| *byte == 0) {
        if !name.starts_with(b"user.") || name.starts_with(OF_OVERLAYS) {
            continue;
        }
        match value(file, name) {
            Ok(value) => drop(found.insert(name.to_vec(), value)),
            // Removed in between.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno).at("fgetxattr", path),
        }
    }
    Ok(found)
}

pub(crate) fn set_attributes(
    file: impl AsFd,
    attributes: &UserAttributes,
    path: &Path,
) -> SysResult<()> {
    for (name, value) in attributes {
        match fsetxattr(file.as_fd(), name.as_slice(), value, XattrFlags::empty()) {
            // The project's file system has none: they are lost, as with cp(1).
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno).at("fsetxattr", path),
        }
    }
    Ok(())
}

/// Removes what must not come to the host with an entry that is moved there.
pub(crate) fn strip(entry: &Path) -> SysResult<()> {
    let mut buffer = Vec::new();
    for name in names_at(entry, &mut buffer)? {
        let is_privilege = name == b"security.capability";
        let is_of_overlay = name.starts_with(OF_OVERLAYS) || name.starts_with(b"trusted.overlay.");
        if is_privilege || is_of_overlay {
            rustix::fs::lremovexattr(entry, name).at("lremovexattr", entry)?;
        }
    }
    Ok(())
}

fn names_at<'b>(
    entry: &Path,
    buffer: &'b mut Vec<u8>,
) -> SysResult<impl Iterator<Item = &'b [u8]> + use<'b>> {
    let mut length = match rustix::fs::llistxattr_query(entry) {
        Err(Errno::OPNOTSUPP) => 0,
        length => length.at("llistxattr", entry)?,
    };
    if length > 0 {
        buffer.resize(MAX_BYTES, 0);
        length = rustix::fs::llistxattr(entry, buffer.as_mut_slice()).at("llistxattr", entry)?;
    }
    Ok(buffer[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()))
}

/// The entry of an open directory as a path: attributes of links and of unreadable files have no other way.
pub(crate) fn path_in(directory: impl AsFd, name: &std::ffi::OsStr) -> PathBuf {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd()));
    path.push(name);
    path
}

fn list(file: impl AsFd) -> Result<Vec<u8>, Errno> {
    let file = file.as_fd();
    // Most files have none: then one call is enough.
    if flistxattr_query(file)? == 0 {
        return Ok(Vec::new());
    }
    let mut names = vec![0; MAX_BYTES];
    let length = flistxattr(file, names.as_mut_slice())?;
    names.truncate(length);
    Ok(names)
}

fn value(file: impl AsFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; MAX_BYTES];
    let length = fgetxattr(file, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}
