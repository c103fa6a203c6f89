//! Locks that belong to an open file and not to a process: a fork shares them, and closing another descriptor of the
//! file does not release them. On a whole file (flock(2)), or on single bytes of it (fcntl(2), "Open file description
//! locks"). Never waits without a limit.

#![expect(unsafe_code, reason = "rustix has only the locks that belong to a process")]

use crate::error::check;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Opens a file that only serves as a lock between processes of one user.
pub fn open_lock_file(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
}

/// Tries until it gets a lock that other processes hold for an instant. False after `timeout`: a process that was
/// stopped while it holds the lock must not keep all others waiting.
pub fn lock_within(
    timeout: Duration,
    mut try_lock: impl FnMut() -> Result<bool, Errno>,
) -> Result<bool, Errno> {
    let since = Instant::now();
    let mut pause = FIRST_PAUSE;
    while !try_lock()? {
        if since.elapsed() >= timeout {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(true)
}

/// Takes a lock on the whole file, with a non-blocking operation. False if another open file holds a conflicting lock.
pub fn try_lock_file(file: impl AsFd, operation: FlockOperation) -> Result<bool, Errno> {
    match rustix::fs::flock(file, operation) {
        Err(Errno::AGAIN) => Ok(false),
        locked => locked.map(|()| true),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteLock {
    Shared,
    Exclusive,
}

/// Takes the lock, or converts the one that is held. False if another open file holds a conflicting lock.
pub fn try_lock_byte(file: impl AsFd, byte: i64, lock: ByteLock) -> Result<bool, Errno> {
    let kind = match lock {
        ByteLock::Shared => libc::F_RDLCK,
        ByteLock::Exclusive => libc::F_WRLCK,
    };
    match control(file, libc::F_OFD_SETLK, byte, kind) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

pub fn unlock_byte(file: impl AsFd, byte: i64) -> Result<(), Errno> {
    control(file, libc::F_OFD_SETLK, byte, libc::F_UNLCK).map(drop)
}

/// Whether another open file holds any lock on the byte.
pub fn is_byte_locked(file: impl AsFd, byte: i64) -> Result<bool, Errno> {
    let found = control(file, libc::F_OFD_GETLK, byte, libc::F_WRLCK)?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

fn control(file: impl AsFd, command: i32, byte: i64, kind: i32) -> Result<libc::flock, Errno> {
    let short = |number: i32| i16::try_from(number).map_err(|_| Errno::INVAL);
    let mut lock = libc::flock {
        l_type: short(kind)?,
        l_whence: short(libc::SEEK_SET)?,
        l_start: byte,
        l_len: 1,
        // Must be zero for this kind of lock.
        l_pid: 0,
    };
    // SAFETY: the kernel reads and writes one `struct flock`, which outlives the call.
    check(unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) }.into())?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn twice() -> (tempfile::TempDir, File, File) {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let path = dir.path().join("lock");
            File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
        };
        let (one, other) = (open(), open());
        (dir, one, other)
    }

    #[test]
    fn shared_locks_stand_together_and_an_exclusive_one_alone() {
        let (_dir, one, other) = twice();
        assert_eq!(try_lock_byte(&one, 1, ByteLock::Shared), Ok(true));
        assert_eq!(try_lock_byte(&other, 1, ByteLock::Shared), Ok(true));
        assert_eq!(try_lock_byte(&other, 1, ByteLock::Exclusive), Ok(false));
        unlock_byte(&one, 1).unwrap();
        assert_eq!(try_lock_byte(&other, 1, ByteLock::Exclusive), Ok(true));
        assert_eq!(try_lock_byte(&one, 1, ByteLock::Shared), Ok(false));
        assert_eq!(try_lock_byte(&one, 0, ByteLock::Shared), Ok(true), "another byte");
    }

    #[test]
    fn a_lock_shows_to_others_and_goes_with_its_open_file() {
        let (_dir, one, other) = twice();
        assert_eq!(try_lock_byte(&one, 0, ByteLock::Shared), Ok(true));
        let copy = one.try_clone().unwrap();
        assert_eq!(is_byte_locked(&other, 0), Ok(true));
        assert_eq!(is_byte_locked(&one, 0), Ok(false), "not to itself");
        drop(one);
        assert_eq!(is_byte_locked(&other, 0), Ok(true), "a copy still holds it");
        drop(copy);
        assert_eq!(is_byte_locked(&other, 0), Ok(false));
    }
}
