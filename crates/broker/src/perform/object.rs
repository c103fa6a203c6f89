//! The object that a call about modes or owners names, held by a descriptor: by its path, or by a descriptor of the
//! caller's. What is looked at is what is changed, whatever happens to the name meanwhile.

use crate::call::PathArg;
use crate::caller::Caller;
use crate::numbered::numbered_descriptor;
use crate::perform::{CallExecutor, Outcome};
use crate::place::Start;
use palisade_sys::{Errno, OFlags};
use rustix::fs::{AtFlags, fcntl_getfl};
use std::os::fd::OwnedFd;

impl CallExecutor {
    /// As fchmodat2(2) and fchownat(2) take it. Nothing in `/proc` can be changed in this way.
    pub(crate) fn named_object(
        &self,
        caller: &Caller,
        path: PathArg,
        flags: u32,
    ) -> Outcome<OwnedFd> {
        let flags = AtFlags::from_bits_retain(flags);
        if !flags.difference(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW).is_empty() {
            return Err(Errno::INVAL.into());
        }
        let bytes = caller.path(path.address)?;
        let stays = flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        if bytes.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            return Ok(caller.file(path.dir)?);
        }
        if let Some(number) = numbered_descriptor(&bytes, caller).filter(|_| !stays) {
            return Ok(caller.file(number).map_err(|_| Errno::NOENT)?);
        }
        let pin = if stays { OFlags::NOFOLLOW } else { OFlags::empty() };
        Ok(self.map.pin(Start::Caller(caller, path.dir), &bytes, pin)?.ok_or(Errno::PERM)?)
    }
}

/// As fchmod(2) and fchown(2) take it, which refuse a descriptor for a path only.
pub(crate) fn open_object(caller: &Caller, number: i32) -> Outcome<OwnedFd> {
    let file = caller.take(number)?;
    if fcntl_getfl(&file)?.contains(OFlags::PATH) {
        return Err(Errno::BADF.into());
    }
    Ok(file)
}
