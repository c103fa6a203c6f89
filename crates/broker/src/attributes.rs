//! Modes, owners, times and extended attributes of a file named by its path. The mounts alone say whether they may be changed,
//! and Landlock nothing, so the kernel performs these calls; but where only reading was granted, changing is a question
//! (GATE-10), and what was allowed once is done here, by the descriptor that was lent for it.
//!
//! Calls that name an open file by its number alone (fchmod(2), futimens(3)) are not notified: every archiver makes three of
//! them for each file it unpacks, and each would cost ten times as much.

use crate::NO_MODE;
use crate::call::{AttributeArg, Call, PathArg, TimesArg, TimesFormat};
use crate::caller::Caller;
use crate::numbered::{name_of_own, numbered_descriptor};
use crate::perform::{CallExecutor, Outcome, Stop, done};
use crate::place::{Found, ResolvedParent, Start};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{
    AtFlags, StatVfsMountFlags, Timespec, Timestamps, UTIME_NOW, XattrFlags, fremovexattr,
    fsetxattr, fstatvfs, openat, utimensat,
};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// `XATTR_NAME_MAX` and `XATTR_SIZE_MAX`.
const MAX_NAME_BYTES: usize = 255;
const MAX_VALUE_BYTES: u64 = 65536;

impl CallExecutor {
    /// Leaves the call to the kernel. `EROFS` if the kernel would say so because of the mount, so that it can be asked about.
    pub(crate) fn changed_by_kernel(&self, caller: &Caller, call: Call) -> Outcome {
        let Some(path) = call.target() else { return Err(Stop::Continue) };
        let Some(place) = self.changed_place(caller, path, call.follows_target()) else {
            return Err(Stop::Continue);
        };
        let Some(file) = place.pin().filter(|_| place.is_granted() || self.asks_first) else {
            return Err(Stop::Continue);
        };
        match is_on_read_only_mount(&file) {
            true if self.asks_first => Err(Errno::ROFS.into()),
            false if place.is_granted() && self.stands_on_read_only_mount(caller, call, path) => {
                self.change_held(caller, call, &file, &place.path)
            }
            _ => Err(Stop::Continue),
        }
    }

    /// Where the object is that such a call names, also if it names it without a last name or by a descriptor.
    pub(crate) fn changed_place(
        &self,
        caller: &Caller,
        path: PathArg,
        follow: bool,
    ) -> Option<ResolvedParent> {
        let bytes = caller.path(path.address).ok()?;
        let start = Start::Caller(caller, path.dir);
        let found = match follow {
            true => self.map.locate_target(start, &bytes),
            false => self.map.locate(start, &bytes),
        };
        let file = match found.ok()? {
            Found::Ours(place) => return Some(place),
            Found::Elsewhere => return None,
            Found::NoName => self.map.pin(start, &bytes, OFlags::DIRECTORY).ok()??,
            Found::Descriptor(number) => caller.file(number).ok()?,
        };
        self.present_place(&file).ok()?
    }

    /// Whether the caller stands on the mount of before the object could be written.
    fn stands_on_read_only_mount(&self, caller: &Caller, call: Call, path: PathArg) -> bool {
        let Ok(bytes) = caller.path(path.address) else { return false };
        let held = match numbered_descriptor(&bytes, caller) {
            Some(number) => caller.file(number).ok(),
            None => {
                let stays = if call.follows_target() { OFlags::empty() } else { OFlags::NOFOLLOW };
                self.map.pin(Start::Caller(caller, path.dir), &bytes, stays).ok().flatten()
            }
        };
        held.is_some_and(|held| is_on_read_only_mount(&held))
    }

    /// Changes an object that is held by a descriptor. `path` is where it stands.
    pub(crate) fn change_held(
        &self,
        caller: &Caller,
        call: Call,
        file: &OwnedFd,
        path: &Path,
    ) -> Outcome {
        match call {
            Call::ChangeMode { mode, .. } => self.change(caller, file, mode),
            Call::ChangeOwner { owner, .. } => self.give(caller, file, path, owner),
            Call::ChangeTimes { times, .. } => self.change_times(caller, file, times),
            Call::ChangeAttribute { attribute, .. } => {
                self.change_attribute(caller, file, attribute)
            }
            _ => Err(Errno::ACCESS.into()),
        }
    }

    fn change_times(&self, caller: &Caller, file: &OwnedFd, times: TimesArg) -> Outcome {
        let times = times.read(caller)?;
        caller.confirm()?;
        utimensat(self.map.proc, name_of_own(file), &times, AtFlags::empty())?;
        Ok(done())
    }

    fn change_attribute(
        &self,
        caller: &Caller,
        file: &OwnedFd,
        attribute: AttributeArg,
    ) -> Outcome {
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

fn is_on_read_only_mount(file: &OwnedFd) -> bool {
    fstatvfs(file).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}
