//! Renames over a file on another mount. Programs write a new file beside the one they change and rename it
//! over; a file that was granted by itself is on its own mount. There a rename copies the content and removes
//! the source.
//!
//! Everything that can fail is tried before the first byte is written, so that a full disk does not destroy the
//! old content.

use crate::NO_MODE;
use crate::caller::Caller;
use crate::exists::exists;
use crate::place::ResolvedParent;
use palisade_sys::{Errno, Mode, OFlags, mounts};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, RenameFlags, StatVfsMountFlags, fallocate, fchmod, fstat,
    fstatvfs, ftruncate, openat, unlinkat,
};
use std::os::fd::{AsFd as _, OwnedFd};

/// No other call is served meanwhile; a program that gets `EXDEV` copies the file itself.
const MAX_FILE_BYTES: usize = 16 << 20;
/// Opening with these flags never blocks.
pub(crate) const TO_WRITE: OFlags =
    OFlags::WRONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// What is to be moved: a regular file that is not too large, and can be removed.
#[derive(Debug)]
pub(crate) struct Movable {
    place: ResolvedParent,
    content: Vec<u8>,
    mode: Mode,
}

impl Movable {
    pub(crate) fn open(place: ResolvedParent, caller: &Caller) -> Result<Self, Errno> {
        if !exists(place.parent.as_fd(), &place.name) {
            return Err(Errno::NOENT);
        }
        if fstatvfs(&place.parent)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(Errno::XDEV);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(&place.parent, &place.name, flags | OFlags::CLOEXEC, NO_MODE);
        let file = file.map_err(|_| Errno::XDEV)?;
        let found = fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Errno::XDEV);
        }
        let content = read_all(&file)?;
        // setrlimit(2): the caller's limit would otherwise be checked against the broker's.
        let limit = caller.largest_file().ok_or(Errno::SRCH)?;
        if content.len() as u64 > limit {
            return Err(Errno::FBIG);
        }
        Ok(Self { place, content, mode: Mode::from_raw_mode(found.st_mode & 0o777) })
    }

    /// To a free name, or over an existing file.
    pub(crate) fn move_to(self, new: &ResolvedParent, flags: RenameFlags) -> Result<(), Errno> {
        let only_new = TO_WRITE | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        match openat(&new.parent, &new.name, only_new, self.mode) {
            Ok(target) => self.move_into(&target).inspect_err(|_| {
                let _ = unlinkat(&new.parent, &new.name, AtFlags::empty());
            }),
            Err(Errno::EXIST) if flags.is_empty() => {
                let target = openat(&new.parent, &new.name, TO_WRITE | OFlags::NOFOLLOW, NO_MODE)?;
                self.move_into(&target)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Writes over what is there, cuts off the rest, and removes the source last.
    pub(crate) fn move_into(self, target: &OwnedFd) -> Result<(), Errno> {
        let found = fstat(target)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Errno::XDEV);
        }
        if Mode::from_raw_mode(found.st_mode & 0o777) != self.mode {
            fchmod(target, self.mode)?;
        }
        let length = self.content.len() as u64;
        if length > 0 {
            match fallocate(target, FallocateFlags::KEEP_SIZE, 0, length) {
                // Some file systems cannot reserve space.
                Err(Errno::OPNOTSUPP) | Ok(()) => {}
                Err(errno) => return Err(errno),
            }
        }
        let mut rest = &self.content[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(target, rest)?..];
        }
        ftruncate(target, length)?;
        unlinkat(&self.place.parent, &self.place.name, AtFlags::empty())
    }
}

fn read_all(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut content = Vec::new();
    let mut chunk = vec![0; 128 << 10];
    loop {
        match rustix::io::read(file, &mut chunk)? {
            0 => return Ok(content),
            count => content.extend_from_slice(&chunk[..count]),
        }
        if content.len() > MAX_FILE_BYTES {
            return Err(Errno::XDEV);
        }
    }
}

/// Whether what is here was granted by itself: the kernel would answer `EBUSY`.
pub(crate) fn stands_on_a_mount_of_its_own(place: &ResolvedParent) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there = openat(&place.parent, &place.name, flags, NO_MODE);
    let mount = there.ok().and_then(|there| mounts::mount_id(there).ok());
    mount.is_some() && mount != mounts::mount_id(&place.parent).ok()
}
