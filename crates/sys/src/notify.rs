//! The supervisor's side of seccomp user notification: receive a call, answer it, pass a descriptor. See
//! seccomp_unotify(2). Must never interpret a call: the receiver decides.

#![expect(unsafe_code, reason = "the ioctls of a listener have no safe wrapper")]

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::check;

// _IOC('!', number, size) of include/uapi/linux/seccomp.h; the sizes are checked below.
const RECEIVE: u32 = 0xc050_2100;
const SEND: u32 = 0xc018_2101;
const ID_VALID: u32 = 0x4008_2102;
const ADD_DESCRIPTOR: u32 = 0x4018_2103;
const SET_FLAGS: u32 = 0x4008_2104;

const RESPONSE_CONTINUE: u32 = 1;
/// Runs the receiver on the caller's CPU at once instead of waking another one (6.6).
const SYNC_WAKE_UP: u64 = 1;

/// `struct seccomp_notif`, which holds a `struct seccomp_data`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawNotification {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    arch: u32,
    instruction_pointer: u64,
    args: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct RawResponse {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// `struct seccomp_notif_addfd`.
#[repr(C)]
struct RawDescriptor {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

const _: () = assert!(size_of::<RawNotification>() == (RECEIVE >> 16 & 0x3fff) as usize);
const _: () = assert!(size_of::<RawResponse>() == (SEND >> 16 & 0x3fff) as usize);
const _: () = assert!(size_of::<RawDescriptor>() == (ADD_DESCRIPTOR >> 16 & 0x3fff) as usize);

/// A system call that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Identifies the call in every response; never reused.
    pub id: u64,
    /// The calling *thread*, in the receiver's pid namespace; `None` if it has no pid there.
    pub thread: Option<Pid>,
    pub number: u32,
    pub args: [u64; 6],
}

/// What becomes of a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// It returns this value; the kernel does not execute it.
    Value(i64),
    /// It fails with this errno; the kernel does not execute it.
    Fail(Errno),
    /// The kernel executes it, **reading its arguments from memory again**: correct only where something else refuses
    /// what must not happen.
    Continue,
}

/// Receives the notified calls of a filter. All waiting calls fail with `ENOSYS` when its last descriptor is closed.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    pub fn new(listener: OwnedFd) -> Self {
        Self(listener)
    }

    /// Asks for wake-ups on the caller's CPU, which halves the cost of a round trip. Fails on kernels before 6.6.
    pub fn prefer_one_cpu(&self) -> Result<(), Errno> {
        // SAFETY: this request takes its argument as a number.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) }.into())
            .map(drop)
    }

    /// Waits for the next call. `ENOENT`: its thread has died; call again.
    pub fn receive(&self) -> Result<Notification, Errno> {
        // The kernel refuses a buffer that is not zeroed.
        let mut raw = RawNotification::default();
        // SAFETY: the kernel writes one `struct seccomp_notif`, which `raw` is (sizes asserted above).
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE as _, &raw mut raw) };
        check(returned.into())?;
        let thread = i32::try_from(raw.pid).ok().and_then(Pid::from_raw);
        let number = raw.number.cast_unsigned();
        Ok(Notification { id: raw.id, thread, number, args: raw.args })
    }

    /// Whether the call still waits. Only then does what was read from its thread since belong to that thread.
    pub fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one u64.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), ID_VALID as _, &raw const id) }.into())
            .is_ok()
    }

    /// Answers a call. `ENOENT`: the call no longer waits.
    pub fn respond(&self, id: u64, response: Response) -> Result<(), Errno> {
        let (value, error, flags) = match response {
            Response::Value(value) => (value, 0, 0),
            Response::Fail(errno) => (0, -errno.raw_os_error(), 0),
            Response::Continue => (0, 0, RESPONSE_CONTINUE),
        };
        let raw = RawResponse { id, value, error, flags };
        // SAFETY: the kernel reads one `struct seccomp_notif_resp`, which `raw` is.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw const raw) }.into())
            .map(drop)
    }

    /// Installs a copy of `file` in the caller and returns its number there. The call still waits for a response, so
    /// that our descriptor can be closed before the caller continues.
    pub fn give(&self, id: u64, file: BorrowedFd<'_>, close_on_exec: bool) -> Result<i64, Errno> {
        let source = file.as_raw_fd().cast_unsigned();
        let target_flags = if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
        let raw = RawDescriptor { id, flags: 0, source, target: 0, target_flags };
        // SAFETY: the kernel reads one `struct seccomp_notif_addfd`, which `raw` is.
        let returned =
            unsafe { libc::ioctl(self.0.as_raw_fd(), ADD_DESCRIPTOR as _, &raw const raw) };
        check(returned.into())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
