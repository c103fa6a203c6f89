//! The fast way: is what a call names there? Most calls are about things that are, and each pays for this
//! look, so it allocates nothing and makes two system calls.
//!
//! Nothing is given here: the kernel resolves the path anew, and the mount view decides what it finds.

use crate::call::{CWD, PathArg};
use crate::caller::Caller;
use crate::own_path;
use crate::path_call::PathCall;
use crate::touch::LONGEST_PATH;
use palisade_sys::{Errno, other};
use rustix::fs::{Access, AtFlags, accessat};
use std::ffi::CStr;
use std::io::Write as _;

/// For `THREAD/fd/NUMBER/` before a path.
const ROOM: usize = 32;
/// Longer than nearly all paths.
const USUAL: usize = 256;

/// What is the sandbox's own, and never asked about.
const OWN: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// The path of the call at hand.
#[derive(Debug)]
pub(crate) struct PathText {
    bytes: Box<[u8; ROOM + LONGEST_PATH]>,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// It is there, or it is none of our business.
    GoOn,
    Missing,
}

impl PathText {
    pub(crate) fn new() -> Self {
        Self { bytes: Box::new([0; ROOM + LONGEST_PATH]), start: ROOM, end: ROOM }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Copies the path of `call` and looks for it. Where the path says so itself (`/proc/self/cwd/…`), `call`
    /// starts somewhere else afterwards.
    pub(crate) fn glance(&mut self, caller: &Caller, call: &mut PathCall) -> Glance {
        if self.read(caller, call.path.address).is_err() || self.start == self.end {
            return Glance::GoOn;
        }
        if OWN.iter().any(|own| is_below(self.bytes(), own)) && !self.enter(caller, &mut call.path)
        {
            return Glance::GoOn;
        }
        self.look(caller, call)
    }

    fn read(&mut self, caller: &Caller, address: u64) -> Result<(), Errno> {
        self.start = ROOM;
        let usual = &mut self.bytes[ROOM..ROOM + USUAL];
        let length = match other::read_string(caller.thread, address, usual) {
            Err(Errno::NAMETOOLONG) => {
                other::read_string(caller.thread, address, &mut self.bytes[ROOM..])?
            }
            read => read?,
        };
        self.end = ROOM + length;
        Ok(())
    }

    /// Below `/proc` or `/dev`, a path that goes on from a directory of the caller's. False for all others.
    fn enter(&mut self, caller: &Caller, path: &mut PathArg) -> bool {
        let is_own = |number| caller.numbers_inside().contains(&number);
        let Some((dir, length)) = own_path::leave(self.bytes(), is_own) else { return false };
        *path = PathArg { dir, ..*path };
        self.start += length;
        true
    }

    fn look(&mut self, caller: &Caller, call: &PathCall) -> Glance {
        let follow = if call.follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        // With the effective ids: asked for the real ones, the kernel makes credentials for it each time.
        let flags = follow | AtFlags::EACCESS;
        let looked = if self.bytes[self.start] == b'/' {
            self.text().and_then(|path| accessat(rustix::fs::CWD, path, Access::EXISTS, flags))
        } else {
            self.below_proc(caller, call.path.dir)
                .and_then(|path| accessat(caller.proc, path, Access::EXISTS, flags))
        };
        match looked {
            Err(Errno::NOENT) => Glance::Missing,
            _ => Glance::GoOn,
        }
    }

    fn text(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes[self.start..]).map_err(|_| Errno::INVAL)
    }

    /// A relative path as the host's `/proc` has it; written into the room before it.
    fn below_proc(&mut self, caller: &Caller, dir: i32) -> Result<&CStr, Errno> {
        let mut prefix = [0; ROOM];
        let mut room = prefix.as_mut_slice();
        let thread = caller.thread.as_raw_pid();
        let written = match dir {
            CWD => write!(room, "{thread}/cwd/"),
            number => write!(room, "{thread}/fd/{number}/"),
        };
        let left = room.len();
        let length = ROOM - left;
        let start = self.start.checked_sub(length).filter(|_| written.is_ok());
        let start = start.ok_or(Errno::NAMETOOLONG)?;
        self.bytes[start..self.start].copy_from_slice(&prefix[..length]);
        CStr::from_bytes_until_nul(&self.bytes[start..]).map_err(|_| Errno::INVAL)
    }
}

fn is_below(path: &[u8], top: &[u8]) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.first().is_none_or(|next| *next == b'/'))
}
