//! Leases (fcntl(2), "Leases"), used to find out whether a file is open for writing. Must never keep one: a
//! lease delays the next open.

#![expect(unsafe_code, reason = "F_SETLEASE has no safe wrapper")]

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Errno;

use crate::error::check;

/// Whether any descriptor or shared mapping of `file` could still write to it. `file` must be open for reading only. An
/// error where the file system has no leases, or the file belongs to another user.
pub fn has_writers(file: impl AsFd) -> Result<bool, Errno> {
    match set(&file, libc::F_RDLCK) {
        Ok(()) => set(&file, libc::F_UNLCK).map(|()| false),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

fn set(file: impl AsFd, kind: i32) -> Result<(), Errno> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the call takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_SETLEASE, kind) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::has_writers;
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_file_has_writers_for_as_long_as_one_is_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        let writer = File::create(&path).expect("a file");
        let second = writer.try_clone().expect("a second descriptor");
        let file = File::open(&path).expect("the file");
        assert_eq!(has_writers(&file), Ok(true));
        drop(writer);
        assert_eq!(has_writers(&file), Ok(true));
        drop(second);
        assert_eq!(has_writers(&file), Ok(false));
        // Nothing is kept: the file can be written at once.
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        OpenOptions::new().write(true).open(again).expect("no lease is left");
    }
}
