//! Descriptors that a program expects under fixed numbers when it is executed. See execve(2). Must never create
//! two owners of one number: a copy is taken, and the number is closed.

#![expect(unsafe_code, reason = "a number from the command line has no owner yet")]

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags};

use super::close_range;
use crate::error::{At as _, Result, SysError};

/// The first number after the standard streams.
const FIRST_FREE: RawFd = 3;

/// Leaves this descriptor open across the next exec.
pub fn keep_over_exec(number: RawFd) -> Result<()> {
    with_number(number, |fd| rustix::io::fcntl_setfd(fd, FdFlags::empty())).call("fcntl F_SETFD")
}

/// Takes a descriptor that was left open for this program. Must be called before anything else is opened: a value that
/// already owned the number would lose it.
pub fn take_inherited(number: RawFd) -> Result<OwnedFd> {
    if number < FIRST_FREE {
        return Err(SysError::new("fcntl", number.to_string(), Errno::BADF));
    }
    let taken = with_number(number, |fd| rustix::io::fcntl_dupfd_cloexec(fd, FIRST_FREE))
        .call("fcntl F_DUPFD_CLOEXEC")?;
    close_range(number, number)?;
    Ok(taken)
}

fn with_number<T>(
    number: RawFd,
    call: impl FnOnce(BorrowedFd<'_>) -> std::result::Result<T, Errno>,
) -> std::result::Result<T, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: it lives for one call of fcntl(2), which says EBADF if the number is not open.
    call(unsafe { BorrowedFd::borrow_raw(number) })
}
