//! Opening for writing, and files without a name.

use crate::NO_MODE;
use crate::brokered_trees::Placement;
use crate::call::PathArg;
use crate::caller::Caller;
use crate::numbered::numbered_descriptor;
use crate::perform::{CallExecutor, Done, Outcome, Stop, ours};
use crate::place::{Found, ResolvedParent, Start};
use crate::slow;
use crate::verdict::{Allowed, Coming, Denied};
use palisade_sys::notify::Response;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::openat;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// `__O_TMPFILE`, without the `O_DIRECTORY` that belongs to it.
const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);

impl CallExecutor {
    pub(crate) fn open(
        &mut self,
        caller: &Caller,
        path: PathArg,
        flags: u32,
        mode: u32,
    ) -> Outcome {
        let flags = OFlags::from_bits_retain(flags);
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let bytes = caller.path(path.address)?;
        let start = Start::Caller(caller, path.dir);
        if flags.contains(OFlags::PATH) {
            // Neither creates nor writes, and Landlock is not asked (do_dentry_open()).
            return Err(Stop::Continue);
        }
        if flags.intersects(UNNAMED) {
            return self.open_unnamed(caller, (start, &bytes), flags, mode);
        }
        if flags.contains(OFlags::DIRECTORY) || bytes.ends_with(b"/") {
            // Means a directory, and those are not written: EISDIR or ENOTDIR before Landlock is asked, and with
            // O_CREAT an error for the flags or the slash alone.
            return Err(Stop::Continue);
        }
        let stays =
            flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::CREATE | OFlags::EXCL);
        if stays {
            let place = ours(self.map.locate(start, &bytes)?)?;
            return self.open_place(caller, &place, flags, mode);
        }
        if let Some(number) = numbered_descriptor(&bytes, caller) {
            return self.open_descriptor(caller, number, flags);
        }
        let place = ours(self.map.locate(start, &bytes)?)?;
        let opened = self.open_place(caller, &place, flags, mode);
        // No link was followed, so whatever was done was done in this place.
        let is_final = matches!(opened, Ok(_) | Err(Stop::Lock(_) | Stop::LeftToServer));
        if is_final || place.link_target().is_none() {
            return opened;
        }
        self.judged_paths.clear();
        match self.map.follow_links(start, place)? {
            Found::Descriptor(number) => self.open_descriptor(caller, number, flags),
            found => self.open_place(caller, &ours(found)?, flags, mode),
        }
    }

    /// Opens what stands in a place, or makes it.
    pub(crate) fn open_place(
        &mut self,
        caller: &Caller,
        place: &ResolvedParent,
        flags: OFlags,
        mode: Mode,
    ) -> Outcome {
        if place.is_directory_meant {
            // So says a link that led here.
            return Err(never_a_file(place, flags).into());
        }
        let allowed = match self.judged(place, Coming::Written) {
            Err(Stop::Denied(path, denied)) => return Err(denied_or(place, flags, path, denied)),
            judged => judged?,
        };
        self.take_umask(caller)?;
        if allowed == Allowed::AsJudgedContent {
            return self.open_config(caller, place, flags, mode);
        }
        let is_new = flags.contains(OFlags::CREATE | OFlags::EXCL);
        // A pipe without a reader, or a file with a lease, would keep us; a new file has neither.
        let waiting = if is_new { OFlags::empty() } else { OFlags::NONBLOCK };
        let safely = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | waiting;
        caller.confirm()?;
        let file = match openat(&place.parent, &place.name, safely, mode) {
            Ok(file) => file,
            Err(Errno::NXIO | Errno::AGAIN) if !flags.contains(OFlags::NONBLOCK) => {
                return Ok(slow::Opening::of(place, flags)
                    .map_or_else(|errno| Done::Answer(Response::Fail(errno)), Done::Later));
            }
            Err(errno) => return Err(errno.into()),
        };
        if !waiting.is_empty() && !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&file, flags & slow::SETTABLE)?;
        }
        self.note(place, allowed);
        Ok(Done::File(file))
    }

    /// A file without a name needs no judging. It gets one by a link, which is judged by the name it makes, and never
    /// one under which it would be read as a setting: a program that holds it open could still write it then.
    fn open_unnamed(
        &mut self,
        caller: &Caller,
        (start, path): (Start<'_>, &[u8]),
        flags: OFlags,
        mode: Mode,
    ) -> Outcome {
        let Some((dir, path)) = self.map.directory(start, path)? else {
            // In `/proc`, which has no such files.
            return Err(Stop::Continue);
        };
        if self.map.ground.standing(&path) == Placement::Elsewhere {
            // The run's own, or not writable: Landlock's answer for that place is always the same.
            return Err(Stop::Continue);
        }
        self.take_umask(caller)?;
        caller.confirm()?;
        Ok(Done::File(openat(&dir, ".", flags | OFlags::CLOEXEC, mode)?))
    }
}

/// What the kernel says of a name with a slash behind it, which can only be a directory.
fn never_a_file(place: &ResolvedParent, flags: OFlags) -> Errno {
    if flags.contains(OFlags::CREATE) {
        return Errno::ISDIR;
    }
    let pin = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(&place.parent, &place.name, pin, NO_MODE) {
        Ok(_) => Errno::ISDIR,
        Err(errno) => errno,
    }
}

/// Where the kernel would not have opened it anyway, that is the answer.
fn denied_or(place: &ResolvedParent, flags: OFlags, path: PathBuf, denied: Denied) -> Stop {
    let exists = crate::exists::exists(place.parent.as_fd(), &place.name);
    if exists && flags.contains(OFlags::CREATE | OFlags::EXCL) {
        Errno::EXIST.into()
    } else if !exists && !flags.contains(OFlags::CREATE) {
        Errno::NOENT.into()
    } else {
        Stop::Denied(path, denied)
    }
}
