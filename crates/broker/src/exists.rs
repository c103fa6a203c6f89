//! Whether a directory holds a name.

use rustix::fs::{AtFlags, statat};
use std::os::fd::BorrowedFd;

pub(crate) fn exists(dir: BorrowedFd<'_>, name: impl rustix::path::Arg) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}
