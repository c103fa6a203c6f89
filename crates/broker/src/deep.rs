//! Finds the path of a directory deeper than `PATH_MAX`. `/proc` and getcwd(2) fail there, but a program can
//! descend step by step, as `rm -r` and file system tests do.

use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{AtFlags, Dir, fstat, openat, statat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Deeper than any legitimate program goes.
const MAX_STEPS: usize = 100_000;

/// Goes up until `path_of` succeeds, and finds the name of each directory in its parent. A removed directory
/// has no name: ENOENT, as every call in it returns.
pub(crate) fn path_beyond_limit(
    dir: BorrowedFd<'_>,
    path_of: impl Fn(BorrowedFd<'_>) -> Result<PathBuf, Errno>,
) -> Result<PathBuf, Errno> {
    let mut names: Vec<OsString> = Vec::new();
    let mut at = openat(dir, ".", DIRECTORY, NO_MODE)?;
    for _ in 0..MAX_STEPS {
        let above = openat(&at, "..", DIRECTORY, NO_MODE)?;
        names.push(name_in(&above, &at)?);
        match path_of(above.as_fd()) {
            Err(Errno::NAMETOOLONG) => at = above,
            Err(errno) => return Err(errno),
            Ok(mut path) => {
                path.extend(names.into_iter().rev());
                return Ok(path);
            }
        }
    }
    Err(Errno::NAMETOOLONG)
}

fn name_in(above: &OwnedFd, dir: &OwnedFd) -> Result<OsString, Errno> {
    let wanted = fstat(dir)?;
    let is_wanted = |name: &OsStr| {
        statat(above, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino))
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = openat(above, ".", flags, NO_MODE)?;
    let mut others = Vec::new();
    for entry in Dir::read_from(&listed)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if entry.ino() != wanted.st_ino {
            // On some file systems a listing has other inode numbers.
            others.push(name.to_owned());
        } else if is_wanted(name) {
            return Ok(name.to_owned());
        }
    }
    others.into_iter().find(|name| is_wanted(name)).ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mkdirat, open};

    /// Proves: FS-9 deep-paths
    #[test]
    fn a_directory_below_the_limit_is_found_by_going_up() {
        let top = tempfile::tempdir().unwrap();
        let mut at = open(top.path(), DIRECTORY, NO_MODE).unwrap();
        let mut expected = top.path().to_owned();
        for index in 0..40 {
            let name = format!("{index:0>150}");
            mkdirat(&at, &name, rustix::fs::Mode::RWXU).unwrap();
            mkdirat(&at, format!("beside-{index}"), rustix::fs::Mode::RWXU).unwrap();
            at = openat(&at, &name, DIRECTORY, NO_MODE).unwrap();
            expected.push(name);
        }
        let path_of = |fd: BorrowedFd<'_>| {
            use std::os::fd::AsRawFd as _;
            let path =
                rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
            Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
        };
        assert_eq!(path_of(at.as_fd()), Err(Errno::NAMETOOLONG), "deep enough");
        assert_eq!(path_beyond_limit(at.as_fd(), path_of), Ok(expected));
    }
}
