//! How the first process of a run enters its group: at its creation, or as its first action. Must never leave a process
//! running outside the group without an error.

use palisade_sys::clone::{CloneFlags, Forked, clone3, clone3_into};
use palisade_sys::{At as _, Errno, SysError};
use std::os::fd::BorrowedFd;

/// How to enter the group. Descriptors only: the new process may no longer see the host's directories.
#[derive(Debug)]
pub struct GroupEntry<'a> {
    /// The group's directory (v2).
    pub(crate) directory: Option<BorrowedFd<'a>>,
    /// Open for writing: a process that writes to it enters the group.
    pub(crate) members: Vec<BorrowedFd<'a>>,
}

/// A fork, and the groups that its child still has to join.
#[derive(Debug)]
pub struct Birth<'a> {
    pub forked: Forked,
    pub to_join: ToJoin<'a>,
}

/// The groups that the new process has not joined yet.
#[derive(Debug)]
#[must_use = "without it the process is in none of these groups"]
pub struct ToJoin<'a>(Vec<BorrowedFd<'a>>);

impl<'a> GroupEntry<'a> {
    /// Open for writing: a single-threaded process that writes `0` to each of them joins the groups. The kernel checks
    /// the permission of the process that opened them, which is us.
    pub fn members(self) -> Vec<BorrowedFd<'a>> {
        self.members
    }

    /// Forks into new namespaces. The child must call [`ToJoin::join`] before it does anything else.
    pub fn clone3(self, flags: CloneFlags) -> Result<Birth<'a>, SysError> {
        if let Some(directory) = self.directory {
            match clone3_into(flags, directory) {
                // Refused by a container's profile, or by a kernel before 5.7.
                Err(error) if is_unknown(error.errno) => {}
                forked => return Ok(Birth { forked: forked?, to_join: ToJoin(Vec::new()) }),
            }
        }
        Ok(Birth { forked: clone3(flags)?, to_join: ToJoin(self.members) })
    }
}

fn is_unknown(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::PERM | Errno::TOOBIG | Errno::INVAL)
}

impl ToJoin<'_> {
    /// Moves the calling process, which must have one thread only, into the groups. The kernel checks the permission of
    /// the process that opened them.
    pub fn join(&self) -> Result<(), SysError> {
        for members in &self.0 {
            rustix::io::write(members, b"0").call("entering the control group")?;
        }
        Ok(())
    }
}
