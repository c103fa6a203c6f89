//! An `openat2` that only reads, copied out of the caller's memory once and opened for it.

use crate::NO_MODE;
use crate::call::{CWD, PathArg};
use crate::caller::Caller;
use crate::numbered::name_of_own;
use crate::path_call::{PathCall, opening};
use crate::slow::SETTABLE;
use palisade_sys::{Errno, OFlags, mounts};
use rustix::fs::{FileType, ResolveFlags, fcntl_setfl, fstat, openat, openat2};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// `struct open_how` as it was first (openat2(2)), and the largest that the kernel looks at.
const FIRST_SIZE: usize = 24;
const MAX_SIZE_BYTES: usize = 4096;
/// `VALID_OPEN_FLAGS` of the kernel.
const KNOWN_FLAGS: u64 = 0o37_777_703;
/// `PROC_SUPER_MAGIC` and `SYSFS_MAGIC`: what they show depends on who looks.
const DEPENDS_ON_CALLER: [i64; 2] = [0x9fa0, 0x6265_6572];

/// With one of these a link is an error of the caller's; without, it may be one that we must not follow.
const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// A call as it was read, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(super) call: PathCall,
    pub(super) flags: OFlags,
    pub(super) resolve: ResolveFlags,
}

impl Reading {
    pub(crate) fn of(caller: &Caller) -> Result<Self, Errno> {
        let [dir, address, how, size, ..] = caller.notification.args;
        let size = usize::try_from(size).map_err(|_| Errno::TOOBIG)?;
        if size < FIRST_SIZE {
            return Err(Errno::INVAL);
        }
        if size > MAX_SIZE_BYTES {
            return Err(Errno::TOOBIG);
        }
        let how = caller.bytes(how, size)?;
        let (known, newer) = how.split_at(FIRST_SIZE);
        if newer.iter().any(|byte| *byte != 0) {
            return Err(Errno::TOOBIG);
        }
        let mut words = known.chunks_exact(8).map(|word| word.try_into().map(u64::from_ne_bytes));
        let mut word = || words.next().and_then(Result::ok).ok_or(Errno::INVAL);
        let (flags, mode, resolve) = (word()?, word()?, word()?);
        let flags = u32::try_from(flags).ok().filter(|_| flags & !KNOWN_FLAGS == 0);
        let flags = flags.ok_or(Errno::INVAL)?;
        let resolve = ResolveFlags::from_bits(resolve).ok_or(Errno::INVAL)?;
        #[expect(clippy::cast_possible_truncation, reason = "the kernel reads an int")]
        let path = PathArg { dir: (dir as u32).cast_signed(), address };
        let call = opening(path, flags).ok_or(Errno::NOSYS)?;
        if flags & OFlags::PATH.bits() != 0 {
            return Err(Errno::NOSYS);
        }
        if mode != 0 {
            return Err(Errno::INVAL);
        }
        Ok(Self { call, flags: OFlags::from_bits_retain(flags), resolve })
    }

    pub(crate) fn close_on_exec(&self) -> bool {
        self.call.close_on_exec
    }

    /// Held by itself before it is opened: opening may have an effect.
    pub(super) fn open(&self, caller: &Caller, path: &[u8]) -> Result<OwnedFd, Errno> {
        let base = match self.call.path.dir {
            CWD if path.starts_with(b"/") && !self.resolve.contains(ResolveFlags::IN_ROOT) => None,
            number => Some(caller.directory(number)?),
        };
        let at = base.as_ref().map_or(rustix::fs::CWD, |base| base.as_fd());
        let pin =
            OFlags::PATH | OFlags::CLOEXEC | (self.flags & (OFlags::NOFOLLOW | OFlags::DIRECTORY));
        let resolve = self.resolve | ResolveFlags::NO_MAGICLINKS;
        let file = match openat2(at, OsStr::from_bytes(path), pin, NO_MODE, resolve) {
            Err(Errno::LOOP) if !self.resolve.intersects(NO_LINKS) => return Err(Errno::NOSYS),
            opened => opened?,
        };
        if DEPENDS_ON_CALLER.contains(&mounts::fstatfs_magic(&file).map_err(|error| error.errno)?) {
            return Err(Errno::NOSYS);
        }
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile | FileType::Directory => self.reopen(caller, &file),
            FileType::Symlink => Err(Errno::LOOP),
            _ => Err(Errno::NOSYS),
        }
    }

    fn reopen(&self, caller: &Caller, pinned: &OwnedFd) -> Result<OwnedFd, Errno> {
        let own = name_of_own(pinned);
        let flags = self.flags.difference(OFlags::NOFOLLOW) | OFlags::CLOEXEC | OFlags::NOCTTY;
        match openat(caller.proc, own, flags | OFlags::NONBLOCK, NO_MODE) {
            // Somebody has a lease on it; the caller may wait for that, and we may not.
            Err(Errno::AGAIN) => Err(Errno::NOSYS),
            opened => {
                let file = opened?;
                fcntl_setfl(&file, self.flags & SETTABLE)?;
                Ok(file)
            }
        }
    }
}
