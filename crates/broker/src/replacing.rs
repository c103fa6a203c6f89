//! A file that is to take the place of one on another mount: programs write beside what they change and rename that over it,
//! and what was granted by itself stands on a mount of its own. A rename there gets the content over, and removes the source.

use crate::call::PathArg;
use crate::caller::Caller;
use crate::perform::Workshop;
use crate::place::Place;
use crate::{NO_MODE, git};
use palisade_sys::{Errno, Mode, OFlags, mounts};
use rustix::fs::{AtFlags, FileType, fstat, ftruncate, openat, unlinkat};
use std::os::fd::{AsFd as _, OwnedFd};

/// Nobody else is served meanwhile; who gets `EXDEV` copies by itself.
const LARGEST: u64 = 64 << 20;
const CHUNK: usize = 128 << 10;
/// Nothing that is opened so keeps us waiting.
pub(crate) const TO_WRITE: OFlags =
    OFlags::WRONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// What is to be moved.
#[derive(Debug)]
pub(crate) struct Movable {
    place: Place,
    file: OwnedFd,
    mode: u32,
}

impl Workshop {
    /// A regular file that is not too large, where calls are performed.
    pub(crate) fn movable(&self, caller: &Caller, from: PathArg) -> Result<Movable, Errno> {
        let place = self.place_of(caller, from, false).ok_or(Errno::XDEV)?;
        Movable::open(place)
    }
}

impl Movable {
    pub(crate) fn open(place: Place) -> Result<Self, Errno> {
        if !git::exists(place.parent.as_fd(), &place.name) {
            return Err(Errno::NOENT);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(&place.parent, &place.name, flags | OFlags::CLOEXEC, NO_MODE);
        let file = file.map_err(|_| Errno::XDEV)?;
        let found = fstat(&file)?;
        let is_regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_regular || found.st_size.cast_unsigned() > LARGEST {
            return Err(Errno::XDEV);
        }
        Ok(Self { place, file, mode: found.st_mode })
    }

    /// To a name that is not taken, or over the file that has it.
    pub(crate) fn move_to(self, new: &Place) -> Result<(), Errno> {
        let flags = TO_WRITE | OFlags::CREATE | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(self.mode & 0o777);
        let target = openat(&new.parent, &new.name, flags, mode)?;
        self.move_into(&target)
    }

    /// Writes over what is there, cuts off the rest, and removes the source last: whatever fails, one of the two has the
    /// content.
    pub(crate) fn move_into(self, target: &OwnedFd) -> Result<(), Errno> {
        let mut chunk = vec![0; CHUNK];
        let mut length = 0;
        loop {
            let count = rustix::io::read(&self.file, &mut chunk)?;
            if count == 0 {
                break;
            }
            let mut rest = &chunk[..count];
            while !rest.is_empty() {
                rest = &rest[rustix::io::write(target, rest)?..];
            }
            length += count as u64;
        }
        ftruncate(target, length)?;
        unlinkat(&self.place.parent, &self.place.name, AtFlags::empty())
    }
}

/// Whether what stands in a place was granted by itself: the kernel would answer with `EBUSY`.
pub(crate) fn stands_on_a_mount_of_its_own(place: &Place) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there = openat(&place.parent, &place.name, flags, NO_MODE);
    let mount = there.ok().and_then(|there| mounts::mount_id(there).ok());
    mount.is_some() && mount != mounts::mount_id(&place.parent).ok()
}
