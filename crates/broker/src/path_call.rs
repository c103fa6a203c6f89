//! Calls that name a path and write nothing, and the meaning of their arguments. They continue as soon as the
//! path exists, so the number alone identifies them.

use crate::call::{CWD, PathArg};
use crate::path_access::Wants;
use palisade_bpf::{Arch, table};
use palisade_sys::OFlags;
use palisade_sys::notify::Notification;
use rustix::fs::{Access, AtFlags};

/// `O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | __O_TMPFILE`: what `open` must not have to be one of these.
const WRITES_OR_CREATES: u32 = 0x0040_0243;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Open,
    OpenAt,
    Here {
        follow: bool,
        wants: Wants,
    },
    At {
        follow: bool,
        wants: Wants,
    },
    /// The flags in this argument say whether links are followed.
    AtWith {
        flags: usize,
        wants: Wants,
    },
    /// access(2) and its kin.
    Access,
    AccessAt,
    AccessAtWith {
        flags: usize,
    },
}

const FOLLOWS: Shape = Shape::Here { follow: true, wants: Wants::Look };
const STAYS: Shape = Shape::Here { follow: false, wants: Wants::Look };

const LOOKING: [(&str, Shape); 19] = [
    ("open", Shape::Open),
    ("openat", Shape::OpenAt),
    ("stat", FOLLOWS),
    ("lstat", STAYS),
    ("newfstatat", Shape::AtWith { flags: 3, wants: Wants::Look }),
    ("statx", Shape::AtWith { flags: 2, wants: Wants::Look }),
    ("access", Shape::Access),
    ("faccessat", Shape::AccessAt),
    ("faccessat2", Shape::AccessAtWith { flags: 3 }),
    ("readlink", STAYS),
    ("readlinkat", Shape::At { follow: false, wants: Wants::Look }),
    ("statfs", FOLLOWS),
    ("chdir", Shape::Here { follow: true, wants: Wants::Enter }),
    ("getxattr", FOLLOWS),
    ("lgetxattr", STAYS),
    ("listxattr", FOLLOWS),
    ("llistxattr", STAYS),
    ("getxattrat", Shape::AtWith { flags: 2, wants: Wants::Look }),
    ("listxattrat", Shape::AtWith { flags: 2, wants: Wants::Look }),
];

const EXECUTING: [(&str, Shape); 2] = [
    ("execve", Shape::Here { follow: true, wants: Wants::Execute }),
    ("execveat", Shape::AtWith { flags: 4, wants: Wants::Execute }),
];

/// By number: checked for every notification.
#[derive(Debug)]
pub(crate) struct PathCalls(Vec<Option<Shape>>);

impl PathCalls {
    /// `executes`: whether starting a program counts.
    pub(crate) fn of(arch: Arch, executes: bool) -> Self {
        let executing = EXECUTING.iter().filter(|_| executes);
        let mut shapes = Vec::new();
        for (name, shape) in LOOKING.iter().chain(executing) {
            let number = table::number(arch, name).and_then(|number| usize::try_from(number).ok());
            let Some(number) = number else { continue };
            if shapes.len() <= number {
                shapes.resize(number + 1, None);
            }
            shapes[number] = Some(*shape);
        }
        Self(shapes)
    }

    pub(crate) fn parse(&self, notification: &Notification) -> Option<PathCall> {
        let Notification { args, .. } = notification;
        let shape = (*self.0.get(usize::try_from(notification.number).ok()?)?)?;
        let here = PathArg { dir: CWD, address: args[0] };
        let at = PathArg { dir: int(args[0]).cast_signed(), address: args[1] };
        Some(match shape {
            Shape::Open => opening(here, int(args[1]))?,
            Shape::OpenAt => opening(at, int(args[2]))?,
            Shape::Here { follow, wants } => PathCall::looking(here, follow, wants),
            Shape::At { follow, wants } => PathCall::looking(at, follow, wants),
            Shape::AtWith { flags, wants } => PathCall::looking(at, follows(args[flags]), wants),
            Shape::Access => testing(here, true, args[1]),
            Shape::AccessAt => testing(at, true, args[2]),
            Shape::AccessAtWith { flags } => testing(at, follows(args[flags]), args[2]),
        })
    }
}

impl PathCall {
    pub(crate) fn looking(path: PathArg, follow: bool, wants: Wants) -> Self {
        Self { path, follow, wants, close_on_exec: false, tests_writing: None }
    }
}

fn follows(flags: u64) -> bool {
    !AtFlags::from_bits_retain(int(flags)).contains(AtFlags::SYMLINK_NOFOLLOW)
}

fn testing(path: PathArg, follow: bool, mode: u64) -> PathCall {
    let mode = Access::from_bits_truncate(int(mode));
    let tests_writing = mode.contains(Access::WRITE_OK).then_some(mode);
    PathCall { tests_writing, ..PathCall::looking(path, follow, Wants::Look) }
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

/// The kernel, too, reads these arguments as ints and leaves the upper half alone.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
fn int(argument: u64) -> u32 {
    argument as u32
}

#[cfg(test)]
#[path = "path_call_tests.rs"]
mod tests;
