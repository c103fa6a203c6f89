//! Mounts served by another machine or program. A lookup there may never return, and would block all other
//! calls.
//!
//! It is not needed either: what is missing in a mount of the host is missing on the host, and there is nothing
//! to ask. A path is recognised by its text; one that leads there through a link elsewhere is looked up all the
//! same.

use crate::caller::Caller;
use crate::{NO_MODE, call::CWD};
use palisade_gate::RemoteMounts;
use palisade_sys::OFlags;
use palisade_sys::proc::read_kernel_file;
use rustix::fs::{openat, readlinkat};
use std::fs::File;
use std::os::fd::OwnedFd;

/// Of the view.
#[derive(Debug, Default)]
pub(crate) struct Remote(RemoteMounts);

impl Remote {
    /// Of a process that sees what the command sees.
    pub(crate) fn look_up(proc: &OwnedFd) -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = openat(proc, "self/mountinfo", flags, NO_MODE);
        match opened.map(|file| read_kernel_file(File::from(file))) {
            Ok(Ok(text)) => Self(RemoteMounts::of(&text)),
            // If unknown, everything is looked up.
            Ok(Err(_)) | Err(_) => Self::default(),
        }
    }

    /// Whether a path of the caller is on a remote mount, as far as its text shows.
    pub(crate) fn has(&self, caller: &Caller, dir: i32, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        if path.starts_with(b"/") {
            return self.0.has(path);
        }
        let base = match dir {
            CWD => format!("{}/cwd", caller.thread.as_raw_pid()),
            number => caller.file_path(number),
        };
        readlinkat(caller.proc, base, Vec::new()).is_ok_and(|base| self.0.has(base.as_bytes()))
    }
}
