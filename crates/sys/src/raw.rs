//! The probes of the self-check: each tries one forbidden call and returns the kernel's errno. None may leave a
//! trace when it is refused, and one that succeeds has found a hole, so its caller must stop.

#![expect(unsafe_code, reason = "keyctl has no safe wrapper")]

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::check;

/// The kernel's answer to an attempt.
pub type Attempt = Result<(), Errno>;

/// Checks whether `pid` exists and could be signalled.
pub fn try_kill0(pid: Pid) -> Attempt {
    crate::proc::kill_raw(pid.as_raw_pid(), 0)
}

/// Opens `path` for reading.
pub fn try_open_read(path: &Path) -> Attempt {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).map(drop)
}

/// Creates `path`, which must not exist, and removes it again.
pub fn try_create(path: &Path) -> Attempt {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::unlink(path)
}

/// Looks up the session keyring, which no namespace isolates.
pub fn try_keyctl() -> Attempt {
    const KEYCTL_GET_KEYRING_ID: libc::c_long = 0;
    const KEY_SPEC_SESSION_KEYRING: libc::c_long = -3;
    const DO_NOT_CREATE: libc::c_long = 0;
    // SAFETY: the operation takes numbers and touches no memory of ours.
    check(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_GET_KEYRING_ID,
            KEY_SPEC_SESSION_KEYRING,
            DO_NOT_CREATE,
        )
    })
    .map(drop)
}

#[cfg(test)]
#[path = "raw_tests.rs"]
mod tests;
