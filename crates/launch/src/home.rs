//! The private home directory as the supervisor holds it, to see what the command left there after all
//! processes have ended.

use std::os::fd::OwnedFd;

#[derive(Debug)]
pub struct PrivateHome {
    /// The top of its file system; for looking only.
    pub directory: OwnedFd,
    /// Of the file system, before the command started.
    pub inodes_at_start: u64,
}

impl PrivateHome {
    /// `None` where that is not counted.
    pub fn inodes_in_use(&self) -> Option<u64> {
        inodes_in_use(&self.directory)
    }
}

pub(crate) fn inodes_in_use(directory: &OwnedFd) -> Option<u64> {
    let found = rustix::fs::fstatvfs(directory).ok().filter(|found| found.f_files > 0)?;
    Some(found.f_files.saturating_sub(found.f_ffree))
}
