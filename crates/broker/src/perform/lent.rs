//! A call that was allowed once to write: performed by the descriptor that the keeper lent for it.
//!
//! The descriptor is on a mount of its own that is attached nowhere, so nobody else can use what one call was allowed. The
//! names in a directory are judged as everywhere (FS-9); a file was judged by its name before anybody was asked.

use crate::call::Call;
use crate::caller::Caller;
use crate::lock::{Company, Locks};
use crate::perform::{CallExecutor, Done, Outcome, Stop, done};
use crate::place::{GRANTS, ResolvedParent, errno_of};
use crate::replacing::{Movable, TO_WRITE};
use crate::slow;
use palisade_sys::notify::Response;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{AtFlags, FileType, RenameFlags, fstat, openat};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

/// What was lent for one call.
#[derive(Debug)]
pub(crate) struct Lent {
    /// The file, or the directory that something is to be made in or removed from; `O_PATH`.
    pub(crate) file: OwnedFd,
    /// The real path of what the call changes, as it was asked about.
    pub(crate) path: PathBuf,
}

impl Lent {
    fn is_directory(&self) -> Result<bool, Errno> {
        Ok(FileType::from_raw_mode(fstat(&self.file)?.st_mode) == FileType::Directory)
    }

    /// The name in the directory that the call is about.
    fn place(&self) -> Result<ResolvedParent, Errno> {
        Ok(ResolvedParent {
            parent: self.file.try_clone().map_err(|error| errno_of(&error))?,
            name: self.path.file_name().ok_or(Errno::ACCESS)?.to_owned(),
            path: self.path.clone(),
            tree: Some(PathBuf::from(GRANTS)),
            is_directory_meant: false,
        })
    }

    fn own_name(&self) -> String {
        format!("self/fd/{}", self.file.as_raw_fd())
    }
}

impl CallExecutor {
    pub(crate) fn perform_lent(&mut self, caller: &Caller, call: Call, lent: &Lent) -> Done {
        self.asks_first = false;
        let done = self.with_locks((Locks::nothing(), Company::Alone), |shop| {
            shop.attempt_lent(caller, call, lent)
        });
        self.tell_of(caller, &done);
        match done {
            // Nothing of it is to be asked or left to the kernel.
            Done::Unseen(_) | Done::Answer(Response::Continue) => {
                Done::Answer(Response::Fail(Errno::ACCESS))
            }
            done => done,
        }
    }

    fn attempt_lent(&mut self, caller: &Caller, call: Call, lent: &Lent) -> Outcome {
        let is_directory = lent.is_directory()?;
        match call {
            Call::Open { flags, mode, .. } if is_directory => {
                let flags = OFlags::from_bits_retain(flags);
                let mode = Mode::from_raw_mode(mode & 0o7777);
                if flags.intersects(OFlags::TMPFILE | OFlags::PATH) {
                    return Err(Errno::ACCESS.into());
                }
                self.make_lent(caller, &lent.place()?, flags, mode)
            }
            Call::MakeDirectory { mode, .. } if is_directory => {
                self.make_directory_in(caller, &lent.place()?, mode)
            }
            Call::SymbolicLink { target, .. } if is_directory => {
                let target = caller.path(target)?;
                if target.is_empty() {
                    return Err(Errno::NOENT.into());
                }
                self.symbolic_link_in(caller, &target, &lent.place()?)
            }
            Call::Remove { flags, .. } if is_directory => {
                self.remove_at(caller, &lent.place()?, AtFlags::from_bits_retain(flags))
            }
            Call::MakeNode { mode, device, .. } if is_directory => {
                self.make_node_in(caller, &lent.place()?, mode, device)
            }
            Call::Bind { socket, .. } if is_directory => {
                self.bind_unseen(caller, socket, &lent.place()?)
            }
            // From elsewhere; within one directory a rename is never allowed once.
            Call::Rename { from, flags, .. } if is_directory => {
                let old = self.place_of(caller, from, false).ok_or(Errno::XDEV)?;
                let flags = RenameFlags::from_bits_retain(flags);
                self.rename_places(caller, &old, &lent.place()?, flags)
            }
            Call::Rename { from, flags: 0, .. } => {
                let source = self.place_of(caller, from, false).ok_or(Errno::XDEV)?;
                let source = Movable::open(source, caller)?;
                let target = openat(caller.proc, lent.own_name(), TO_WRITE, Mode::empty())?;
                caller.confirm()?;
                source.move_into(&target)?;
                Ok(done())
            }
            Call::Open { flags, .. } if !is_directory => self.open_lent(caller, lent, flags),
            Call::Truncate { length, .. } if !is_directory => {
                let limit = caller.largest_file().ok_or(Errno::SRCH)?;
                let file = openat(caller.proc, lent.own_name(), TO_WRITE, Mode::empty())?;
                caller.confirm()?;
                if length > limit && length > fstat(&file)?.st_size.cast_unsigned() {
                    return Err(Errno::FBIG.into());
                }
                rustix::fs::ftruncate(&file, length)?;
                Ok(done())
            }
            call => self.change_held(caller, call, &lent.file, &lent.path),
        }
    }

    /// Opens a name in a directory that was lent for it, and tells whether this made the file.
    fn make_lent(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        flags: OFlags,
        mode: Mode,
    ) -> Outcome {
        if !flags.contains(OFlags::CREATE) {
            return self.open_place(caller, place, flags, mode);
        }
        match self.open_place(caller, place, flags | OFlags::EXCL, mode) {
            Ok(Done::File(file)) => Ok(Done::Made(file)),
            // By another call that the same answer allowed, say.
            Err(Stop::Fail(Errno::EXIST)) if !flags.contains(OFlags::EXCL) => {
                self.open_place(caller, place, flags, mode)
            }
            other => other,
        }
    }

    fn open_lent(&mut self, caller: &Caller, lent: &Lent, flags: u32) -> Outcome {
        let flags = OFlags::from_bits_retain(flags);
        if flags.contains(OFlags::CREATE | OFlags::EXCL) {
            return Err(Errno::EXIST.into());
        }
        // It is there, and the descriptor leads to it by a link of the kernel's.
        let left_out = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::PATH | OFlags::TMPFILE;
        let safely =
            flags.difference(left_out) | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        caller.confirm()?;
        let file = openat(caller.proc, lent.own_name(), safely, Mode::empty())?;
        if !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&file, flags & slow::SETTABLE)?;
        }
        Ok(Done::File(file))
    }
}
