//! Inspects another process: its memory, descriptors and namespaces. Each call needs the right to trace that
//! process (ptrace(2), "Ptrace access mode checking"). Must never write into one.

#![expect(unsafe_code, reason = "process_vm_readv has no safe wrapper")]

use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType};

use crate::error::{At as _, Result, check};

/// The granularity of unreadable memory.
const PAGE: usize = 4096;

/// Copies up to `buffer.len()` bytes from `address` in the memory of `thread`. Returns how many could be read before
/// the first unreadable page.
pub fn read_memory(
    thread: Pid,
    address: u64,
    buffer: &mut [u8],
) -> std::result::Result<usize, Errno> {
    let base = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(base), iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes into `buffer`; the remote address is only
    // ever used in the other process.
    let copied = check(unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            thread.as_raw_pid(),
            &raw const local,
            1_usize,
            &raw const remote,
            1_usize,
            0_usize,
        )
    })?;
    usize::try_from(copied).map_err(|_| Errno::FAULT)
}

/// Reads a NUL-terminated string of at most `buffer.len()` bytes. Returns its length without the NUL. `ENAMETOOLONG` if
/// there is no NUL. Never reads a page beyond the one in which the string ends.
pub fn read_string(
    thread: Pid,
    address: u64,
    buffer: &mut [u8],
) -> std::result::Result<usize, Errno> {
    let mut have = 0;
    while have < buffer.len() {
        let next = address.checked_add(have as u64).ok_or(Errno::FAULT)?;
        let in_page = PAGE - usize::try_from(next % PAGE as u64).unwrap_or(0);
        let end = buffer.len().min(have + in_page);
        let copied = read_memory(thread, next, &mut buffer[have..end])?;
        if copied == 0 {
            return Err(Errno::FAULT);
        }
        if let Some(length) = buffer[have..have + copied].iter().position(|byte| *byte == 0) {
            return Ok(have + length);
        }
        have += copied;
    }
    Err(Errno::NAMETOOLONG)
}

/// A pidfd of a process, by the pid of its thread group leader.
pub fn pidfd_of(process: Pid) -> Result<OwnedFd> {
    rustix::process::pidfd_open(process, PidfdFlags::empty()).call("pidfd_open")
}

/// A copy of descriptor `number` of another process, close-on-exec (5.6).
pub fn take_descriptor(pidfd: impl AsFd, number: RawFd) -> Result<OwnedFd> {
    let pidfd = pidfd.as_fd().as_raw_fd();
    // SAFETY: the call takes numbers only.
    let taken = check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, number, 0) })
        .call("pidfd_getfd")?;
    let taken = i32::try_from(taken).map_err(|_| Errno::BADF).call("pidfd_getfd")?;
    // SAFETY: a success is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(taken) })
}

/// Moves this single-threaded process into the user and mount namespaces of another one; its root and
/// working directory become the root there (5.8).
pub fn enter_user_and_mounts(pidfd: impl AsFd) -> Result<()> {
    let both = ThreadNameSpaceType::USER | ThreadNameSpaceType::MOUNT;
    rustix::thread::move_into_thread_name_spaces(pidfd.as_fd(), both).call("setns")
}

/// Moves this single-threaded process into a user namespace, where it then has every capability.
pub fn enter_user(namespace: impl AsFd) -> Result<()> {
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::User))
        .call("setns")
}

/// Moves this single-threaded process into a mount namespace; its root and working directory become the
/// root there.
pub fn enter_mounts(namespace: impl AsFd) -> Result<()> {
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))
        .call("setns")
}

#[cfg(test)]
#[path = "other_tests.rs"]
mod tests;
