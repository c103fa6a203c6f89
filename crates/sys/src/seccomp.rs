//! Installs a seccomp filter and asks what the kernel supports. See seccomp(2). Must never interpret a filter:
//! its content is decided elsewhere.

#![expect(unsafe_code, reason = "seccomp has no safe wrapper")]

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::error::{At, Result, SysError, check};
use crate::flags::flag_set;

/// One instruction of classic BPF, laid out as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SockFilter {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

#[repr(C)]
struct SockProgram {
    length: libc::c_ushort,
    filter: *const SockFilter,
}

flag_set! {
    /// How a filter is installed.
    pub struct SeccompFlags: libc::c_ulong {
        /// Log every action but allow.
        LOG = 1 << 1;
        /// Return a descriptor on which `USER_NOTIF` calls arrive (5.0).
        NEW_LISTENER = 1 << 3;
        /// Once received, only a fatal signal interrupts the waiting call (5.19).
        WAIT_KILLABLE_RECV = 1 << 5;
    }
}

/// The sizes of the user notification structures in the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifySizes {
    pub notification: u16,
    pub response: u16,
    pub data: u16,
}

/// Permanently installs a filter on this thread; needs no_new_privs or CAP_SYS_ADMIN. With
/// [`SeccompFlags::NEW_LISTENER`] it returns the listener, close-on-exec; `EBUSY` if one of the installed filters
/// already has one.
pub fn install(filter: &[SockFilter], flags: SeccompFlags) -> Result<Option<OwnedFd>> {
    let length = libc::c_ushort::try_from(filter.len())
        .map_err(|_| SysError::new("seccomp", "filter is too long", Errno::INVAL))?;
    let program = SockProgram { length, filter: filter.as_ptr() };
    // SAFETY: `program` has the layout of `struct sock_fprog`, its pointer covers exactly `length`
    // instructions, and the kernel copies them before it returns.
    let returned =
        unsafe { seccomp(libc::SECCOMP_SET_MODE_FILTER, flags.bits(), &raw const program) };
    let listener = returned.call("seccomp")?;
    if !flags.contains(SeccompFlags::NEW_LISTENER) {
        return Ok(None);
    }
    let listener =
        i32::try_from(listener).map_err(|_| SysError::new("seccomp", "listener", Errno::BADF))?;
    // SAFETY: with NEW_LISTENER a success is a new descriptor that nobody else owns.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
}

/// The sizes of the notification structures (5.0); an error if the kernel has no user notification.
pub fn notify_sizes() -> Result<NotifySizes> {
    let mut sizes =
        libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel writes one `struct seccomp_notif_sizes`, which `sizes` is.
    unsafe { seccomp(libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes) }
        .call("seccomp SECCOMP_GET_NOTIF_SIZES")?;
    Ok(NotifySizes {
        notification: sizes.seccomp_notif,
        response: sizes.seccomp_notif_resp,
        data: sizes.seccomp_data,
    })
}

/// # Safety
/// `argument` must point to what `operation` reads or writes.
unsafe fn seccomp<T>(
    operation: libc::c_uint,
    flags: libc::c_ulong,
    argument: *const T,
) -> std::result::Result<libc::c_long, Errno> {
    // SAFETY: our caller guarantees it.
    check(unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, argument) })
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
