//! Modes with the set-group-id bit. On a directory it says whose group new files get, and many tools set it; on a file it
//! lends its group to everybody who runs it, and is refused (F14). The filter cannot tell the two apart. Here the object is held
//! by a descriptor, looked at, and changed by that same descriptor. Other modes are left to the kernel, unless they are asked about.

use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::numbered::name_of_own;
use crate::perform::object::open_object;
use crate::perform::{CallExecutor, Done, Outcome, done};
use palisade_sys::{Errno, Mode};
use rustix::fs::{AtFlags, FileType, chmodat, fstat};
use std::os::fd::OwnedFd;

impl CallExecutor {
    pub(crate) fn change_mode(
        &self,
        caller: &Caller,
        path: PathArg,
        mode: u32,
        flags: u32,
    ) -> Outcome {
        if mode & Mode::SGID.bits() == 0 {
            let call = Call::ChangeMode { path, mode, flags };
            return self.changed_by_kernel(caller, call);
        }
        let file = self.named_object(caller, path, flags)?;
        self.change(caller, &file, mode)
    }

    pub(crate) fn change_mode_of(&self, caller: &Caller, number: i32, mode: u32) -> Outcome {
        let file = open_object(caller, number)?;
        self.change(caller, &file, mode)
    }

    pub(crate) fn change(&self, caller: &Caller, file: &OwnedFd, mode: u32) -> Outcome {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let is_directory = FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Directory;
        if mode.contains(Mode::SUID) || (mode.contains(Mode::SGID) && !is_directory) {
            return Ok(Done::Refused(Errno::PERM));
        }
        caller.confirm()?;
        // By our own descriptor, which may be one for its path only.
        let own = name_of_own(file);
        chmodat(self.map.proc, own, mode, AtFlags::empty())?;
        Ok(done())
    }
}
