//! Files that the caller names by its own descriptors: `/dev/stdout`, `/proc/self/fd/N`, `AT_EMPTY_PATH`.
//!
//! What is held open for writing may be opened for writing once more: nothing is gained by that. Anything
//! more is judged by the name the file has now. Names of `/proc` are read as the caller means them and never
//! resolved: for the kernel, `self` would be the broker.

use crate::brokered_trees::Placement;
use crate::caller::Caller;
use crate::git;
use crate::perform::{CallExecutor, Done, Outcome, Stop, done};
use crate::place::ResolvedParent;
use crate::slow;
use crate::verdict::{Allowed, Coming};
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{AtFlags, FileType, fcntl_getfl, fstat, linkat, openat};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;

impl CallExecutor {
    /// Opens once more what the caller holds.
    pub(crate) fn open_descriptor(
        &mut self,
        caller: &Caller,
        number: i32,
        flags: OFlags,
    ) -> Outcome {
        // No such descriptor: nothing that Landlock could be asked about.
        let Ok(file) = caller.take(number) else { return Err(Stop::Continue) };
        caller.confirm()?;
        let found = fstat(&file)?;
        let path = self.map.path_of(file.as_fd())?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Fifo if self.map.ground.standing(&path) != Placement::Elsewhere => {}
            // Pipes without a name, terminals, sockets, memory: Landlock grants those by what they are. Directories
            // are not written (EISDIR, before it is asked).
            _ => return Err(Stop::Continue),
        }
        if !is_held(fcntl_getfl(&file)?, flags) {
            // Without a place it is outside of the trees, or has lost the name it was opened by, and cannot be judged: a
            // file handed in from the host may be either. Landlock answers for the place it knows, always the same.
            let place = self.present_place(&file)?.ok_or(Stop::Continue)?;
            self.may_be_written(&place)?;
        }
        let created = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags.difference(created) | OFlags::CLOEXEC | OFlags::NOCTTY;
        let path = format!("self/fd/{}", file.as_raw_fd());
        match openat(self.map.proc, &*path, flags | OFlags::NONBLOCK, NO_MODE) {
            Ok(again) => {
                rustix::fs::fcntl_setfl(&again, flags & slow::SETTABLE)?;
                Ok(Done::File(again))
            }
            Err(Errno::AGAIN | Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => {
                // Not by the caller's own open file, which would stay open for as long as this takes.
                let pin = OFlags::PATH | OFlags::CLOEXEC;
                let file = openat(self.map.proc, &*path, pin, NO_MODE)?;
                Ok(Done::Later(slow::Opening { file, flags }))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives a file that the caller holds open a name.
    pub(crate) fn link_descriptor(
        &mut self,
        caller: &Caller,
        number: i32,
        new: &ResolvedParent,
    ) -> Outcome {
        let file = caller.file(number)?;
        let allowed = self.judged_new(new, Coming::Link)?;
        if allowed == Allowed::AsJudgedContent {
            // The caller could go on writing it.
            return Err(Stop::Denied(new.path.clone(), git::config_denied()));
        }
        match self.present_place(&file)? {
            Some(old) => self.may_be_written(&old)?,
            // A file without a name, of which nobody but the caller knows.
            None if fstat(&file)?.st_nlink == 0 => {}
            None if crate::exists::exists(new.parent.as_fd(), &new.name) => {
                return Err(Errno::EXIST.into());
            }
            // Not of a tree, or by a name that is gone and cannot be judged: Landlock lets nothing be linked into a tree
            // from outside, and neither do we.
            None => return Err(Errno::XDEV.into()),
        }
        caller.confirm()?;
        // By our own descriptor: the caller's may be another file by now.
        let source = format!("self/fd/{}", file.as_raw_fd());
        linkat(self.map.proc, source, &new.parent, &new.name, AtFlags::SYMLINK_FOLLOW)?;
        self.note(new, allowed);
        Ok(done())
    }

    /// A file of the caller's, if it may be written through it.
    pub(crate) fn held_for_writing(&self, caller: &Caller, number: i32) -> Result<OwnedFd, Errno> {
        let file = caller.take(number)?;
        let is_writable = fcntl_getfl(&file)? & OFlags::RWMODE != OFlags::RDONLY;
        if is_writable { Ok(file) } else { Err(Errno::ACCESS) }
    }

    /// Where the file stands now. None outside the trees, and for a file without a name, which nobody
    /// will find.
    pub(crate) fn present_place(&self, file: &OwnedFd) -> Result<Option<ResolvedParent>, Errno> {
        let held = fstat(file)?;
        if held.st_nlink == 0 {
            return Ok(None);
        }
        let path: PathBuf = self.map.path_of(file.as_fd())?;
        if self.map.ground.standing(&path) == Placement::Elsewhere {
            return Ok(None);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let Ok(parent) = openat(rustix::fs::CWD, parent, DIRECTORY, NO_MODE) else {
            return Ok(None);
        };
        let Ok(tree) = self.map.tree_of(&path, parent.as_fd()) else { return Ok(None) };
        let name = name.to_owned();
        let place = ResolvedParent { parent, name, path, tree, is_directory_meant: false };
        Ok(Some(place).filter(|place| place.is(file)))
    }
}

/// Whether what is wanted can be done with the descriptor itself.
fn is_held(held: OFlags, wanted: OFlags) -> bool {
    let reads = |flags: OFlags| flags & OFlags::RWMODE != OFlags::WRONLY;
    let writes = |flags: OFlags| flags & OFlags::RWMODE != OFlags::RDONLY;
    !held.contains(OFlags::PATH)
        && (reads(held) || !reads(wanted))
        && (writes(held) || !(writes(wanted) || wanted.contains(OFlags::TRUNC)))
}

#[cfg(test)]
#[path = "descriptor_tests.rs"]
mod tests;
