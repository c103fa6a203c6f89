//! Modes with the set-group-id bit. On a directory it says whose group new files get, and many tools set it; on a file it
//! lends its group to everybody who runs it, and is refused (F14). The filter cannot tell the two apart. Here the object is held
//! by a descriptor, looked at, and changed by that same descriptor.

use crate::call::PathArg;
use crate::caller::Caller;
use crate::descriptor::numbered_descriptor;
use crate::perform::{Done, Stop, Workshop, done};
use crate::place::Start;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{AtFlags, FileType, chmodat, fcntl_getfl, fstat};
use std::os::fd::{AsRawFd as _, OwnedFd};

impl Workshop {
    pub(crate) fn change_mode(
        &self,
        caller: &Caller,
        path: PathArg,
        mode: u32,
        flags: u32,
    ) -> Result<Done, Stop> {
        let flags = AtFlags::from_bits_retain(flags);
        if !flags.difference(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let bytes = caller.path(path.address)?;
        let stays = flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        let file = if bytes.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            caller.file(path.dir)?
        } else if let Some(number) = numbered_descriptor(&bytes, caller).filter(|_| !stays) {
            caller.file(number).map_err(|_| Errno::NOENT)?
        } else {
            let start = Start::Caller(caller, path.dir);
            let pin = if stays { OFlags::NOFOLLOW } else { OFlags::empty() };
            // What is in `/proc` has no such bit.
            self.map.pin(start, &bytes, pin)?.ok_or(Errno::PERM)?
        };
        self.change(caller, &file, mode)
    }

    pub(crate) fn change_mode_of(
        &self,
        caller: &Caller,
        number: i32,
        mode: u32,
    ) -> Result<Done, Stop> {
        let file = caller.take(number)?;
        if fcntl_getfl(&file)?.contains(OFlags::PATH) {
            return Err(Errno::BADF.into());
        }
        self.change(caller, &file, mode)
    }

    fn change(&self, caller: &Caller, file: &OwnedFd, mode: u32) -> Result<Done, Stop> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let is_directory = FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Directory;
        if !is_directory || mode.contains(Mode::SUID) {
            return Ok(Done::Refused(Errno::PERM));
        }
        caller.confirm()?;
        // By our own descriptor, which may be one for its path only.
        let own = format!("self/fd/{}", file.as_raw_fd());
        chmodat(self.map.proc, own, mode, AtFlags::empty())?;
        Ok(done())
    }
}
