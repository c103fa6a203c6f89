//! The fast path: does the path of a call exist? For most calls it does, and each pays for this check, so it
//! allocates nothing and makes two system calls.
//!
//! Nothing is granted here: the kernel resolves the path again, and the mount view decides what it finds.

use crate::below::is_below;
use crate::call::{CWD, PathArg};
use crate::caller::Caller;
use crate::own_path;
use crate::path_call::PathCall;
use crate::remote::Remote;
use palisade_gate::MAX_PATH_BYTES;
use palisade_sys::{Errno, Pid, other};
use rustix::fs::{Access, AtFlags, accessat};
use std::ffi::CStr;
use std::io::Write as _;

/// For `THREAD/fd/NUMBER/` before a path.
const ROOM: usize = 32;
/// Longer than nearly all paths.
const USUAL: usize = 256;

/// Paths of the sandbox's own, which are never asked about.
pub(crate) const OWN: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// The path of the current call.
#[derive(Debug)]
pub(crate) struct PathText {
    bytes: Box<[u8; ROOM + MAX_PATH_BYTES]>,
    start: usize,
    end: usize,
    /// Of the last relative path: the next one usually starts in the same directory.
    prefix: Prefix,
}

/// A directory of a thread as a path in the host's `/proc`, with a trailing slash.
#[derive(Debug)]
struct Prefix {
    of: Option<(Pid, i32)>,
    text: [u8; ROOM],
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// It exists, or the broker has nothing to decide.
    GoOn,
    /// Not to be checked at all.
    Remote,
    Missing,
}

impl PathText {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Box::new([0; ROOM + MAX_PATH_BYTES]),
            start: ROOM,
            end: ROOM,
            prefix: Prefix { of: None, text: [0; ROOM], length: 0 },
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Copies the path of `call` and checks it. Where the path itself names another start (`/proc/self/cwd/…`),
    /// `call` starts there afterwards.
    pub(crate) fn glance(
        &mut self,
        remote: &Remote,
        caller: &Caller,
        call: &mut PathCall,
    ) -> Glance {
        if self.read(caller, call.path.address).is_err() || self.start == self.end {
            return Glance::GoOn;
        }
        if OWN.iter().any(|own| is_below(self.bytes(), own)) && !self.enter(caller, &mut call.path)
        {
            return Glance::GoOn;
        }
        if remote.has(caller, call.path.dir, self.bytes()) {
            return Glance::Remote;
        }
        self.look(caller, call)
    }

    fn read(&mut self, caller: &Caller, address: u64) -> Result<(), Errno> {
        self.start = ROOM;
        let room = &mut self.bytes[ROOM..];
        let known = caller.with_known_path(address, |path| {
            let room = room.get_mut(..=path.len())?;
            room[..path.len()].copy_from_slice(path);
            room[path.len()] = 0;
            Some(path.len())
        });
        if let Some(length) = known.flatten() {
            self.end = ROOM + length;
            return Ok(());
        }
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

    /// A path below `/proc` or `/dev` that goes through a directory of the caller. False for all others.
    fn enter(&mut self, caller: &Caller, path: &mut PathArg) -> bool {
        let is_own = |number| caller.numbers_inside().contains(&number);
        let Some((dir, length)) = own_path::leave(self.bytes(), is_own) else { return false };
        *path = PathArg { dir, ..*path };
        self.start += length;
        true
    }

    fn look(&mut self, caller: &Caller, call: &PathCall) -> Glance {
        let follow = if call.follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        // With the effective ids: for the real ones, the kernel would allocate credentials each time.
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
        let prefix = self.prefix.of(caller.thread, dir).ok_or(Errno::NAMETOOLONG)?;
        let start = self.start.checked_sub(prefix.len()).ok_or(Errno::NAMETOOLONG)?;
        self.bytes[start..self.start].copy_from_slice(prefix);
        CStr::from_bytes_until_nul(&self.bytes[start..]).map_err(|_| Errno::INVAL)
    }
}

impl Prefix {
    /// None if there is no room for it.
    fn of(&mut self, thread: Pid, dir: i32) -> Option<&[u8]> {
        if self.of != Some((thread, dir)) {
            self.of = None;
            let number = thread.as_raw_pid();
            let mut room = self.text.as_mut_slice();
            match dir {
                CWD => write!(room, "{number}/cwd/").ok()?,
                dir => write!(room, "{number}/fd/{dir}/").ok()?,
            }
            self.length = ROOM - room.len();
            self.of = Some((thread, dir));
        }
        Some(&self.text[..self.length])
    }
}

#[cfg(test)]
mod tests {
    use super::{PathText, ROOM};
    use crate::call::CWD;
    use palisade_sys::Pid;

    #[test]
    fn each_thread_and_descriptor_has_its_own_directory() {
        let mut prefix = PathText::new().prefix;
        let [one, other] = [7, 4_194_304].map(|number| Pid::from_raw(number).unwrap());
        for _ in 0..2 {
            assert_eq!(prefix.of(one, CWD), Some(&b"7/cwd/"[..]));
            assert_eq!(prefix.of(one, 12), Some(&b"7/fd/12/"[..]));
            assert_eq!(prefix.of(one, 12), Some(&b"7/fd/12/"[..]));
            assert_eq!(prefix.of(other, 12), Some(&b"4194304/fd/12/"[..]));
        }
        let longest = Pid::from_raw(i32::MAX).unwrap();
        assert!(prefix.of(longest, i32::MIN).is_some_and(|text| text.len() <= ROOM));
    }
}
