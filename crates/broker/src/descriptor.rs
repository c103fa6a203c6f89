//! Files that the caller names by its own descriptors: `/dev/stdout`, `/proc/self/fd/N`, `AT_EMPTY_PATH`.
//!
//! What is held open for writing may be opened for writing once more: nothing is gained by that. Anything
//! more is judged by the name the file has now. Names of `/proc` are read as the caller means them and never
//! resolved: for the kernel, `self` would be the broker.

use crate::caller::Caller;
use crate::ground::Standing;
use crate::perform::{Done, Stop, Workshop, done};
use crate::place::Place;
use crate::slow;
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{AtFlags, FileType, fcntl_getfl, fstat, linkat, openat, statat};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;

const OWN_DIRECTORIES: [&[u8]; 3] = [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/"];
const STREAMS: [&[u8]; 3] = [b"/dev/stdin", b"/dev/stdout", b"/dev/stderr"];
const WORKING_DIRECTORIES: [&[u8]; 2] = [b"/proc/self/cwd/", b"/proc/thread-self/cwd/"];
/// `AT_FDCWD`.
const CWD: i32 = -100;

/// The number in `/proc/self/fd/N`, the usual way to name an open file.
pub(crate) fn own_descriptor(path: &[u8]) -> Option<i32> {
    let stream = STREAMS.iter().zip(0..).find(|(stream, _)| **stream == path);
    stream.map(|(_, number)| number).or_else(|| number(below(path)?))
}

/// A path that goes on from a directory the caller names so: its descriptor, and the rest of the path.
pub(crate) fn from_own_directory(path: &[u8]) -> Option<(i32, &[u8])> {
    let (directory, rest) =
        match WORKING_DIRECTORIES.iter().find_map(|prefix| path.strip_prefix(*prefix)) {
            Some(rest) => (CWD, rest),
            None => {
                let path = below(path)?;
                let end = path.iter().position(|byte| *byte == b'/')?;
                (number(&path[..end])?, &path[end..])
            }
        };
    let start = rest.iter().position(|byte| *byte != b'/')?;
    Some((directory, &rest[start..]))
}

fn below(path: &[u8]) -> Option<&[u8]> {
    OWN_DIRECTORIES.iter().find_map(|prefix| path.strip_prefix(*prefix))
}

fn number(digits: &[u8]) -> Option<i32> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

impl Workshop {
    /// Opens once more what the caller holds.
    pub(crate) fn open_descriptor(
        &mut self,
        caller: &Caller,
        number: i32,
        flags: OFlags,
    ) -> Result<Done, Stop> {
        let Ok(file) = caller.take(number) else { return Err(Stop::Continue) };
        caller.confirm()?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            // Pipes, terminals, sockets, memory: Landlock has nothing to say of them.
            return Err(Stop::Continue);
        }
        if !is_held(fcntl_getfl(&file)?, flags) {
            let place = self.present_place(&file)?.ok_or(Stop::Continue)?;
            self.judge.may_be_linked(&place).map_err(|denied| Stop::Denied(place.path, denied))?;
        }
        let created = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags.difference(created) | OFlags::CLOEXEC | OFlags::NOCTTY;
        let path = format!("self/fd/{}", file.as_raw_fd());
        match openat(self.map.proc, path, flags | OFlags::NONBLOCK, NO_MODE) {
            Ok(again) => {
                rustix::fs::fcntl_setfl(&again, flags & slow::SETTABLE)?;
                Ok(Done::File(again))
            }
            Err(Errno::AGAIN) if !flags.contains(OFlags::NONBLOCK) => {
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
        new: &Place,
    ) -> Result<Done, Stop> {
        let file = caller.file(number)?;
        if let Some(old) = self.present_place(&file)? {
            self.judge.may_be_linked(&old).map_err(|denied| Stop::Denied(old.path, denied))?;
        }
        caller.confirm()?;
        // By our own descriptor: the caller's may be another file by now.
        let source = format!("self/fd/{}", file.as_raw_fd());
        linkat(self.map.proc, source, &new.parent, &new.name, AtFlags::SYMLINK_FOLLOW)?;
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
    pub(crate) fn present_place(&self, file: &OwnedFd) -> Result<Option<Place>, Errno> {
        let path: PathBuf = self.map.path_of(file.as_fd())?;
        let tree = match self.map.ground.standing(&path) {
            Standing::In(tree) => Some(tree.to_owned()),
            Standing::Unjudged => None,
            Standing::Elsewhere => return Ok(None),
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let Ok(parent) = openat(rustix::fs::CWD, parent, DIRECTORY, NO_MODE) else {
            return Ok(None);
        };
        let (held, found) = (fstat(file)?, statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW));
        if !found.is_ok_and(|found| (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)) {
            return Ok(None);
        }
        let name = name.to_owned();
        Ok(Some(Place { parent, name, path, tree, is_directory_meant: false }))
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
