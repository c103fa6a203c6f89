//! Whether a directory may be shown as a whole: nothing below it that has to be asked about separately, and
//! nothing that leads elsewhere.
//!
//! The search is bounded. What could not be searched counts as not harmless: then its parts are asked about one
//! by one.

use crate::look::CLOSED_MAGIC;
use palisade_plan::is_dotenv;
use palisade_sys::{Errno, Mode, OFlags, mounts};
use rustix::fs::{Dir, FileType, fstat, openat};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

/// How many names are looked at; the sources of a large program have some ten thousand.
const MAX_NAMES: usize = 300_000;
/// Short compared with the time a person takes to answer.
const MAX_SURVEY_TIME: Duration = Duration::from_millis(700);
/// Directories open at the same time.
const MAX_DEPTH: usize = 128;

/// Opens a name without triggering an automount.
const ENTRY: OFlags =
    OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// `top` is a directory of the host's, by an `O_PATH` descriptor.
pub(crate) fn is_harmless(top: &OwnedFd) -> bool {
    let mut walk = Walk { names: 0, until: Instant::now() + MAX_SURVEY_TIME };
    walk.is_harmless(top, 0).unwrap_or(false)
}

struct Walk {
    names: usize,
    until: Instant,
}

impl Walk {
    fn is_harmless(&mut self, directory: &OwnedFd, depth: usize) -> Result<bool, Errno> {
        let listing = match openat(directory, ".", LISTED, Mode::empty()) {
            Ok(listing) => listing,
            // The command cannot read it either.
            Err(Errno::ACCESS) => return Ok(true),
            Err(errno) => return Err(errno),
        };
        let device = fstat(&listing)?.st_dev;
        let mut below = Vec::new();
        for entry in Dir::new(listing)? {
            let entry = entry?;
            self.names += 1;
            if self.names > MAX_NAMES
                || (self.names.is_multiple_of(256) && Instant::now() > self.until)
            {
                return Ok(false);
            }
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if is_dotenv(OsStr::from_bytes(name)) {
                return Ok(false);
            }
            match entry.file_type() {
                // A process that can see the socket can talk to the program behind it.
                FileType::Socket => return Ok(false),
                FileType::Directory | FileType::Unknown => below.push(name.to_vec()),
                _ => {}
            }
        }
        if depth == MAX_DEPTH && !below.is_empty() {
            return Ok(false);
        }
        for name in below {
            match openat(directory.as_fd(), name.as_slice(), ENTRY, Mode::empty()) {
                Ok(entry) => {
                    let is_mount = fstat(&entry)?.st_dev != device;
                    if is_mount && is_closed(&entry) {
                        return Ok(false);
                    }
                    if !self.is_harmless(&entry, depth + 1)? {
                        return Ok(false);
                    }
                }
                // Removed, or of an unknown type and not a directory.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(true)
    }
}

/// Other processes, devices, automounts.
fn is_closed(entry: &OwnedFd) -> bool {
    mounts::fstatfs_magic(entry).map_or(true, |magic| CLOSED_MAGIC.contains(&magic))
}
