//! Calls that name a path and write nothing, and the meaning of their arguments. They continue as soon as the
//! path exists, so the number alone identifies them.

use crate::call::{CallTable, PathArg, Reader};
use palisade_bpf::Arch;
use palisade_gate::Wants;
use palisade_sys::OFlags;
use palisade_sys::notify::Notification;
use rustix::fs::{Access, AtFlags};

/// `O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | __O_TMPFILE`: what `open` must not have to be one of these.
const WRITES_OR_CREATES: u32 = 0x0040_0243;
/// inotify_add_watch(2)
const IN_DONT_FOLLOW: u32 = 0x0200_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathCall {
    pub(crate) path: PathArg,
    /// Whether a link as the last component is followed.
    pub(crate) follow: bool,
    pub(crate) wants: Wants,
    /// Of the file that it opens.
    pub(crate) close_on_exec: bool,
    /// The mode access(2) asks for, if that includes writing.
    pub(crate) tests_writing: Option<Access>,
}

const LOOKING: [(&str, Reader<Option<PathCall>>); 21] = [
    ("open", |a| opening(a.path(0), a.int(1))),
    ("openat", |a| opening(a.path_at(0), a.int(2))),
    ("stat", |a| looking(a.path(0), true)),
    ("lstat", |a| looking(a.path(0), false)),
    ("newfstatat", |a| looking(a.path_at(0), follows(a.int(3)))),
    ("statx", |a| looking(a.path_at(0), follows(a.int(2)))),
    ("access", |a| testing(a.path(0), a.int(1), true)),
    ("faccessat", |a| testing(a.path_at(0), a.int(2), true)),
    ("faccessat2", |a| testing(a.path_at(0), a.int(2), follows(a.int(3)))),
    ("readlink", |a| looking(a.path(0), false)),
    ("readlinkat", |a| looking(a.path_at(0), false)),
    ("statfs", |a| looking(a.path(0), true)),
    ("chdir", |a| Some(PathCall::looking(a.path(0), true, Wants::Enter))),
    ("getxattr", |a| looking(a.path(0), true)),
    ("lgetxattr", |a| looking(a.path(0), false)),
    ("listxattr", |a| looking(a.path(0), true)),
    ("llistxattr", |a| looking(a.path(0), false)),
    ("getxattrat", |a| looking(a.path_at(0), follows(a.int(2)))),
    ("listxattrat", |a| looking(a.path_at(0), follows(a.int(2)))),
    ("inotify_add_watch", |a| looking(a.path(1), a.int(2) & IN_DONT_FOLLOW == 0)),
    ("name_to_handle_at", |a| looking(a.path_at(0), follows_if_told(a.int(4)))),
];

const EXECUTING: [(&str, Reader<Option<PathCall>>); 2] = [
    ("execve", |a| Some(PathCall::looking(a.path(0), true, Wants::Execute))),
    ("execveat", |a| Some(PathCall::looking(a.path_at(0), follows(a.int(4)), Wants::Execute))),
];

#[derive(Debug)]
pub(crate) struct PathCalls(CallTable<Option<PathCall>>);

impl PathCalls {
    /// `executes`: whether starting a program counts.
    pub(crate) fn of(arch: Arch, executes: bool) -> Self {
        let executing = EXECUTING.into_iter().filter(|_| executes);
        Self(CallTable::new(arch, LOOKING.into_iter().chain(executing)))
    }

    pub(crate) fn parse(&self, notification: &Notification) -> Option<PathCall> {
        self.0.read(notification).flatten()
    }
}

impl PathCall {
    pub(crate) fn looking(path: PathArg, follow: bool, wants: Wants) -> Self {
        Self { path, follow, wants, close_on_exec: false, tests_writing: None }
    }
}

fn follows(flags: u32) -> bool {
    !AtFlags::from_bits_retain(flags).contains(AtFlags::SYMLINK_NOFOLLOW)
}

fn follows_if_told(flags: u32) -> bool {
    AtFlags::from_bits_retain(flags).contains(AtFlags::SYMLINK_FOLLOW)
}

fn looking(path: PathArg, follow: bool) -> Option<PathCall> {
    Some(PathCall::looking(path, follow, Wants::Look))
}

fn testing(path: PathArg, mode: u32, follow: bool) -> Option<PathCall> {
    let mode = Access::from_bits_truncate(mode);
    let tests_writing = mode.contains(Access::WRITE_OK).then_some(mode);
    looking(path, follow).map(|call| PathCall { tests_writing, ..call })
}

pub(crate) fn opening(path: PathArg, flags: u32) -> Option<PathCall> {
    if flags & WRITES_OR_CREATES != 0 {
        return None;
    }
    let flags = OFlags::from_bits_retain(flags);
    let directory = flags.contains(OFlags::DIRECTORY);
    let wants = Wants::Open { directory, path_only: flags.contains(OFlags::PATH) };
    let close_on_exec = flags.contains(OFlags::CLOEXEC);
    let follow = !flags.contains(OFlags::NOFOLLOW);
    Some(PathCall { close_on_exec, ..PathCall::looking(path, follow, wants) })
}

#[cfg(test)]
#[path = "path_call_tests.rs"]
mod tests;
