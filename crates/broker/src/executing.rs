//! What a program lacks to start: its interpreter or loader, or the right to be executed.
//!
//! The kernel opens those itself and would only report "no such file". This module only looks; a file that
//! changes meanwhile fails to start, or is what the view has anyway.

use crate::NO_MODE;
use crate::caller::Caller;
use crate::missing::{Missing, ScaffoldMounts};
use crate::path_call::PathCall;
use palisade_plan::program::{Needs, needs};
use palisade_sys::{Errno, OFlags};
use rustix::fs::{FileType, ResolveFlags, fstat, openat, openat2};
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// As the kernel: an interpreter may be a script, and so on (exec_binprm()).
const MAX_INTERPRETERS: usize = 5;
/// Holds the first line of a script, and the headers of nearly all programs.
const HEAD: usize = 4096;

/// The path that is missing to start a program which itself exists.
pub(crate) fn unseen(
    caller: &Caller,
    call: &PathCall,
    path: &[u8],
    grounds: &ScaffoldMounts,
) -> Option<Missing> {
    let is_whole = path.starts_with(b"/");
    let base = if is_whole { None } else { Some(caller.directory(call.path.dir).ok()?) };
    let mut program = open(base.as_ref(), path).ok()?;
    for _ in 0..MAX_INTERPRETERS {
        if let Some(path) = grounds.unexecutable(&program) {
            return Some(Missing { path, existing: 0, is_covered: false });
        }
        let next = match needs_of(caller, &program)? {
            Needs::Nothing => return None,
            Needs::Loader(path) | Needs::Interpreter { path, .. } => path,
        };
        match found(&next)? {
            Ok(found) => program = found,
            Err(Errno::NOENT) => return grounds.missing(|| Err(Errno::NOENT), bytes(&next), true),
            Err(_) => return None,
        }
    }
    None
}

/// A relative interpreter names another file in every directory.
fn found(path: &Path) -> Option<Result<OwnedFd, Errno>> {
    path.is_absolute().then(|| open(None, bytes(path)))
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn open(base: Option<&OwnedFd>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let base = base.map_or(rustix::fs::CWD, AsFd::as_fd);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(base, OsStr::from_bytes(path), flags, NO_MODE, ResolveFlags::NO_MAGICLINKS)
}

/// None for files the kernel would not start, or we cannot read.
fn needs_of(caller: &Caller, program: &OwnedFd) -> Option<Needs> {
    let found = fstat(program).ok()?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file || found.st_mode & 0o111 == 0 {
        return None;
    }
    let own = format!("self/fd/{}", program.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(caller.proc, own, flags, NO_MODE).ok()?;
    let mut head = vec![0; HEAD];
    let length = rustix::io::pread(&file, &mut head, 0).ok()?;
    head.truncate(length);
    Some(needs(&|offset, length| {
        let start = usize::try_from(offset).ok()?;
        let in_head = head.get(start..).map(|rest| &rest[..rest.len().min(length)]);
        match in_head {
            Some(part) if part.len() == length || head.len() < HEAD => Some(part.to_vec()),
            _ => {
                let mut part = vec![0; length];
                let length = rustix::io::pread(&file, &mut part, offset).ok()?;
                part.truncate(length);
                Some(part)
            }
        }
    }))
}
