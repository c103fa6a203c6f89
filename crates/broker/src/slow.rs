//! Opening what may block for long (a pipe without a reader, a file under a lease) in a child of the
//! broker's, so that a caller who waits keeps nobody else waiting (F15).

use crate::NO_MODE;
use crate::place::Place;
use palisade_sys::clone::{Forked, fork};
use palisade_sys::notify::{Listener, Response};
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_sys::{Errno, OFlags};
use rustix::fs::openat;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::Duration;

/// Each is a process; a caller that wants more of them waits for nothing useful.
const MOST: usize = 32;

/// A file that was judged, held by itself and not by a name.
#[derive(Debug)]
pub(crate) struct Opening {
    file: OwnedFd,
    flags: OFlags,
}

impl Opening {
    pub(crate) fn of(place: &Place, flags: OFlags) -> Result<Self, Errno> {
        let pin = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&place.parent, &place.name, pin, NO_MODE)?;
        Ok(Self { file, flags })
    }
}

/// The children at work.
#[derive(Debug, Default)]
pub(crate) struct Helpers(Vec<OwnedFd>);

impl Helpers {
    /// Answers `id` when the file is open, however long that takes.
    pub(crate) fn open(
        &mut self,
        listener: &Listener,
        id: u64,
        opening: &Opening,
        host_proc: &OwnedFd,
    ) -> Result<(), Errno> {
        self.0.retain(|helper| {
            let mut ended = [PollFd::new(helper, PollFlags::IN)];
            matches!(proc::poll(&mut ended, Some(Duration::ZERO)), Ok(0))
        });
        if self.0.len() >= MOST {
            return Err(Errno::NFILE);
        }
        match fork().map_err(|error| error.errno)? {
            Forked::Child => {
                let path = format!("self/fd/{}", opening.file.as_raw_fd());
                let once = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let flags = opening.flags.difference(once) | OFlags::CLOEXEC | OFlags::NOCTTY;
                // If the caller is gone by now there is nobody to tell.
                let _ = match openat(host_proc, path, flags, NO_MODE) {
                    Ok(file) => {
                        let close_on_exec = opening.flags.contains(OFlags::CLOEXEC);
                        listener.respond_with(id, file.as_fd(), close_on_exec)
                    }
                    Err(errno) => listener.respond(id, Response::Fail(errno)),
                };
                proc::exit_now(0)
            }
            Forked::Parent { pidfd, .. } => {
                self.0.push(pidfd);
                Ok(())
            }
        }
    }
}
