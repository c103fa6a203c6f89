//! Opens files that may block for long (a pipe without a reader, a file under a lease) in a child process, so
//! that one waiting caller does not delay others (F15).
//!
//! The child inherits the locks of our other threads as they are at that moment, the allocator's among them: it makes
//! system calls and nothing else.

use crate::NO_MODE;
use crate::hand_out::hand_out;
use crate::place::ResolvedParent;
use palisade_sys::clone::{Forked, fork_among_threads};
use palisade_sys::notify::{Listener, Response};
use palisade_sys::proc::{self, sig};
use palisade_sys::{Errno, OFlags, Pid, creds};
use rustix::fs::openat;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// Each is a process; no legitimate caller needs more.
const MAX_HELPERS: usize = 32;

/// What can be set on an open file; an `O_NONBLOCK` that was ours is taken off with them.
pub(crate) const SETTABLE: OFlags =
    OFlags::APPEND.union(OFlags::DIRECT).union(OFlags::NOATIME).union(OFlags::NONBLOCK);

/// A file that was judged, held by a descriptor and not by a name.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) file: OwnedFd,
    pub(crate) flags: OFlags,
}

impl Opening {
    pub(crate) fn of(place: &ResolvedParent, flags: OFlags) -> Result<Self, Errno> {
        let pin = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&place.parent, &place.name, pin, NO_MODE)?;
        Ok(Self { file, flags })
    }
}

/// The children at work.
#[derive(Debug, Default)]
pub(crate) struct Helpers(Vec<Helper>);

#[derive(Debug)]
struct Helper {
    pid: Pid,
    pidfd: OwnedFd,
    /// The call it works for.
    id: u64,
}

impl Helpers {
    /// Answers `id` when the file is open, however long that takes.
    pub(crate) fn open(
        &mut self,
        listener: &Listener,
        id: u64,
        opening: &Opening,
        host_proc: &OwnedFd,
    ) -> Result<(), Errno> {
        if self.0.len() >= MAX_HELPERS {
            return Err(Errno::NFILE);
        }
        let broker = rustix::process::getpid();
        let path = CString::new(format!("self/fd/{}", opening.file.as_raw_fd()))
            .map_err(|_| Errno::INVAL)?;
        match fork_among_threads().map_err(|error| error.errno)? {
            Forked::Child => {
                let is_bound_to_broker = creds::set_pdeathsig(sig::SIGKILL).is_ok()
                    && rustix::process::getppid() == Some(broker);
                if !is_bound_to_broker {
                    let _ = listener.respond(id, Response::Fail(Errno::IO));
                    proc::exit_now(1)
                }
                let once = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let flags = opening.flags.difference(once) | OFlags::CLOEXEC | OFlags::NOCTTY;
                // If the caller is gone by now there is nobody to tell.
                let _ = match openat(host_proc, path.as_c_str(), flags, NO_MODE) {
                    Ok(file) => {
                        let close_on_exec = opening.flags.contains(OFlags::CLOEXEC);
                        hand_out(listener, id, file, close_on_exec)
                    }
                    Err(errno) => listener.respond(id, Response::Fail(errno)),
                };
                proc::exit_now(0)
            }
            Forked::Parent { pid, pidfd } => {
                self.0.push(Helper { pid, pidfd, id });
                Ok(())
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reaps those that are done, or whose caller died: a pipe must not find a writer in its place.
    pub(crate) fn tidy(&mut self, listener: &Listener) {
        self.0.retain(|helper| {
            let is_needed = listener.is_waiting(helper.id);
            if !is_needed {
                let _ = proc::pidfd_send_signal(&helper.pidfd, sig::SIGKILL);
                let _ = proc::wait_pid_rusage(helper.pid);
            }
            is_needed
        });
    }
}
