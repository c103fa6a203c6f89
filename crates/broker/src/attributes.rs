//! Modes, owners, times and extended attributes of a file named by its path. The mounts alone say whether they may be changed,
//! and Landlock nothing, so the kernel performs these calls; but where only reading was granted, changing is a question
//! (GATE-10), and what was allowed once is done here, by the descriptor that was lent for it.

use crate::NO_MODE;
use crate::call::{AttributeArg, PathArg, TimesArg, TimesFormat};
use crate::caller::Caller;
use crate::numbered::name_of_own;
use crate::perform::{CallExecutor, Done, Stop, done};
use crate::place::ResolvedParent;
use palisade_sys::{Errno, OFlags};
use rustix::fs::{
    AtFlags, StatVfsMountFlags, Timespec, Timestamps, UTIME_NOW, XattrFlags, fremovexattr,
    fsetxattr, fstatvfs, openat, utimensat,
};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

/// `XATTR_NAME_MAX` and `XATTR_SIZE_MAX`.
const MAX_NAME_BYTES: usize = 255;
const MAX_VALUE_BYTES: u64 = 65536;

impl CallExecutor {
    /// Leaves the call to the kernel. `EROFS` if the kernel would say so because of the mount, so that it can be asked about.
    pub(crate) fn changed_by_kernel(
        &self,
        caller: &Caller,
        path: PathArg,
        flags: u32,
    ) -> Result<Done, Stop> {
        if !self.asks_first {
            return Err(Stop::Continue);
        }
        let follow = flags & AtFlags::SYMLINK_NOFOLLOW.bits() == 0;
        let place = self.place_of(caller, path, follow);
        Err(match place.is_some_and(|place| is_on_read_only_mount(&place)) {
            true => Errno::ROFS.into(),
            false => Stop::Continue,
        })
    }

    /// `file` is lent for this call.
    pub(crate) fn change_times(
        &self,
        caller: &Caller,
        file: &OwnedFd,
        times: TimesArg,
    ) -> Result<Done, Stop> {
        let times = times.read(caller)?;
        caller.confirm()?;
        utimensat(self.map.proc, name_of_own(file), &times, AtFlags::empty())?;
        Ok(done())
    }

    /// `file` is lent for this call.
    pub(crate) fn change_attribute(
        &self,
        caller: &Caller,
        file: &OwnedFd,
        attribute: AttributeArg,
    ) -> Result<Done, Stop> {
        let (AttributeArg::Set { name, .. } | AttributeArg::Remove { name }) = attribute;
        let name = caller.path(name)?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Errno::RANGE.into());
        }
        let name = OsStr::from_bytes(&name);
        let open = || {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            openat(self.map.proc, name_of_own(file), flags, NO_MODE)
        };
        match attribute {
            AttributeArg::Set { value, size, flags, .. } => {
                if size > MAX_VALUE_BYTES {
                    return Err(Errno::TOOBIG.into());
                }
                let size = usize::try_from(size).map_err(|_| Errno::TOOBIG)?;
                let value = if size == 0 { Vec::new() } else { caller.bytes(value, size)? };
                caller.confirm()?;
                fsetxattr(open()?, name, &value, XattrFlags::from_bits_retain(flags))?;
            }
            AttributeArg::Remove { .. } => {
                caller.confirm()?;
                fremovexattr(open()?, name)?;
            }
        }
        Ok(done())
    }
}

impl TimesArg {
    fn read(self, caller: &Caller) -> Result<Timestamps, Errno> {
        if self.address == 0 {
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            return Ok(Timestamps { last_access: now, last_modification: now });
        }
        // The access first, everywhere.
        let numbers = |count: usize| -> Result<Vec<i64>, Errno> {
            let bytes = caller.bytes(self.address, count * size_of::<i64>())?;
            let (numbers, _) = bytes.as_chunks();
            Ok(numbers.iter().map(|number| i64::from_ne_bytes(*number)).collect())
        };
        let timespec = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        let (last_access, last_modification) = match self.format {
            TimesFormat::Seconds => {
                let read = numbers(2)?;
                (timespec(read[0], 0), timespec(read[1], 0))
            }
            TimesFormat::Microseconds => {
                let read = numbers(4)?;
                if [read[1], read[3]].iter().any(|part| !(0..1_000_000).contains(part)) {
                    return Err(Errno::INVAL);
                }
                (timespec(read[0], read[1] * 1000), timespec(read[2], read[3] * 1000))
            }
            TimesFormat::Nanoseconds => {
                let read = numbers(4)?;
                (timespec(read[0], read[1]), timespec(read[2], read[3]))
            }
        };
        Ok(Timestamps { last_access, last_modification })
    }
}

fn is_on_read_only_mount(place: &ResolvedParent) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(&place.parent, &place.name, flags, NO_MODE);
    let mount = found.and_then(|found| fstatvfs(&found));
    mount.is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}
