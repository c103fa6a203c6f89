//! Notified calls by name, and the meaning of their arguments. Addresses stay numbers: this module reads
//! nothing from the caller.

use palisade_bpf::{Arch, table};
use palisade_sys::OFlags;
use palisade_sys::notify::Notification;
use rustix::fs::AtFlags;
use std::collections::HashMap;

/// `AT_FDCWD`.
pub(crate) const CWD: i32 = -100;

/// A directory descriptor of the caller and a path that may be relative to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathArg {
    pub(crate) dir: i32,
    pub(crate) address: u64,
}

/// What a notified call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To be performed by the broker.
    Perform(Call),
    /// An exec, which only the caller can perform.
    Exec(PathArg),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Open { path: PathArg, flags: u32, mode: u32 },
    MakeDirectory { path: PathArg, mode: u32 },
    MakeNode { path: PathArg, mode: u32, device: u64 },
    Rename { from: PathArg, to: PathArg, flags: u32 },
    Link { from: PathArg, to: PathArg, flags: u32 },
    SymbolicLink { target: u64, path: PathArg },
    Remove { path: PathArg, flags: u32 },
    Bind { socket: i32, address: u64, length: u64 },
    Truncate { path: PathArg, length: u64 },
    ChangeMode { path: PathArg, mode: u32, flags: u32 },
    ChangeModeOf { file: i32, mode: u32 },
    ChangeOwner { path: PathArg, owner: [u32; 2], flags: u32 },
    ChangeOwnerOf { file: i32, owner: [u32; 2] },
    ChangeTimes { path: PathArg, times: TimesArg, flags: u32 },
    ChangeAttribute { path: PathArg, attribute: AttributeArg, flags: u32 },
    Umask,
}

/// Where the new times of a file are, none for now, and how they are written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimesArg {
    pub(crate) address: u64,
    pub(crate) format: TimesFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimesFormat {
    /// `struct utimbuf`.
    Seconds,
    /// `struct timeval[2]`.
    Microseconds,
    /// `struct timespec[2]`.
    Nanoseconds,
}

/// What becomes of an extended attribute, by the address of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeArg {
    Set { name: u64, value: u64, size: u64, flags: u32 },
    Remove { name: u64 },
}

impl Call {
    /// The path that it creates, writes or removes.
    pub(crate) fn target(self) -> Option<PathArg> {
        match self {
            Self::Open { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::MakeNode { path, .. }
            | Self::SymbolicLink { path, .. }
            | Self::Remove { path, .. }
            | Self::Truncate { path, .. }
            | Self::ChangeMode { path, .. }
            | Self::ChangeOwner { path, .. }
            | Self::ChangeTimes { path, .. }
            | Self::ChangeAttribute { path, .. }
            | Self::Rename { to: path, .. }
            | Self::Link { to: path, .. } => Some(path),
            Self::Bind { .. }
            | Self::ChangeModeOf { .. }
            | Self::ChangeOwnerOf { .. }
            | Self::Umask => None,
        }
    }

    /// Whether a link as the last component of [`Self::target`] is followed.
    pub(crate) fn follows_target(self) -> bool {
        const STAYS: u32 = OFlags::NOFOLLOW.bits() | OFlags::EXCL.bits();
        match self {
            Self::Open { flags, .. } => flags & STAYS == 0,
            Self::ChangeMode { flags, .. }
            | Self::ChangeOwner { flags, .. }
            | Self::ChangeTimes { flags, .. }
            | Self::ChangeAttribute { flags, .. } => flags & AtFlags::SYMLINK_NOFOLLOW.bits() == 0,
            Self::Truncate { .. } => true,
            _ => false,
        }
    }

    /// Whether it only creates: if its target exists, it fails and changes nothing.
    pub(crate) fn only_makes(self) -> bool {
        const NEW: u32 = OFlags::CREATE.bits() | OFlags::EXCL.bits();
        match self {
            Self::Open { flags, .. } => flags & NEW == NEW,
            Self::MakeDirectory { .. }
            | Self::MakeNode { .. }
            | Self::SymbolicLink { .. }
            | Self::Link { .. }
            | Self::Bind { .. } => true,
            _ => false,
        }
    }

    /// The flags of the file that it opens.
    pub(crate) fn wants_close_on_exec(self) -> bool {
        matches!(self, Self::Open { flags, .. } if flags & OFlags::CLOEXEC.bits() != 0)
    }
}

/// Which call a number is; needed for every notification.
#[derive(Debug)]
pub(crate) struct Calls(HashMap<u32, CallKind>);

#[derive(Clone, Copy, Debug)]
enum CallKind {
    Open,
    OpenAt,
    Create,
    MakeDirectory,
    MakeDirectoryAt,
    MakeNode,
    MakeNodeAt,
    Rename,
    RenameAt,
    RenameAt2,
    Link,
    LinkAt,
    SymbolicLink,
    SymbolicLinkAt,
    Remove,
    RemoveAt,
    RemoveDirectory,
    Bind,
    Truncate,
    ChangeMode,
    ChangeModeOf,
    ChangeModeAt,
    ChangeModeAt2,
    ChangeOwner,
    ChangeOwnerOfLink,
    ChangeOwnerOf,
    ChangeOwnerAt,
    ChangeTimes(TimesFormat),
    ChangeTimesAt,
    ChangeTimesAtWith,
    SetAttribute { flags: u32 },
    RemoveAttribute { flags: u32 },
    Umask,
    Exec,
    ExecAt,
}

/// `AT_SYMLINK_NOFOLLOW`.
const STAYS: u32 = AtFlags::SYMLINK_NOFOLLOW.bits();

const KINDS: [(&str, CallKind); 38] = [
    ("open", CallKind::Open),
    ("openat", CallKind::OpenAt),
    ("creat", CallKind::Create),
    ("mkdir", CallKind::MakeDirectory),
    ("mkdirat", CallKind::MakeDirectoryAt),
    ("mknod", CallKind::MakeNode),
    ("mknodat", CallKind::MakeNodeAt),
    ("rename", CallKind::Rename),
    ("renameat", CallKind::RenameAt),
    ("renameat2", CallKind::RenameAt2),
    ("link", CallKind::Link),
    ("linkat", CallKind::LinkAt),
    ("symlink", CallKind::SymbolicLink),
    ("symlinkat", CallKind::SymbolicLinkAt),
    ("unlink", CallKind::Remove),
    ("unlinkat", CallKind::RemoveAt),
    ("rmdir", CallKind::RemoveDirectory),
    ("bind", CallKind::Bind),
    ("truncate", CallKind::Truncate),
    ("chmod", CallKind::ChangeMode),
    ("fchmod", CallKind::ChangeModeOf),
    ("fchmodat", CallKind::ChangeModeAt),
    ("fchmodat2", CallKind::ChangeModeAt2),
    ("chown", CallKind::ChangeOwner),
    ("lchown", CallKind::ChangeOwnerOfLink),
    ("fchown", CallKind::ChangeOwnerOf),
    ("fchownat", CallKind::ChangeOwnerAt),
    ("utime", CallKind::ChangeTimes(TimesFormat::Seconds)),
    ("utimes", CallKind::ChangeTimes(TimesFormat::Microseconds)),
    ("futimesat", CallKind::ChangeTimesAt),
    ("utimensat", CallKind::ChangeTimesAtWith),
    ("setxattr", CallKind::SetAttribute { flags: 0 }),
    ("lsetxattr", CallKind::SetAttribute { flags: STAYS }),
    ("removexattr", CallKind::RemoveAttribute { flags: 0 }),
    ("lremovexattr", CallKind::RemoveAttribute { flags: STAYS }),
    ("umask", CallKind::Umask),
    ("execve", CallKind::Exec),
    ("execveat", CallKind::ExecAt),
];

impl Calls {
    pub(crate) fn of(arch: Arch) -> Self {
        let known = KINDS.into_iter();
        Self(known.filter_map(|(name, kind)| Some((table::number(arch, name)?, kind))).collect())
    }

    /// `None` for a call that the broker does not perform.
    pub(crate) fn parse(&self, notification: &Notification) -> Option<Asked> {
        let Notification { args, .. } = notification;
        let at = |dir: usize| PathArg { dir: int(args[dir]).cast_signed(), address: args[dir + 1] };
        let owner = |user: usize| [int(args[user]), int(args[user + 1])];
        let here = |address: usize| PathArg { dir: CWD, address: args[address] };
        Some(Asked::Perform(match self.0.get(&notification.number)? {
            CallKind::Open => Call::Open { path: here(0), flags: int(args[1]), mode: int(args[2]) },
            CallKind::OpenAt => Call::Open { path: at(0), flags: int(args[2]), mode: int(args[3]) },
            CallKind::Create => {
                let flags = creat_flags();
                Call::Open { path: here(0), flags, mode: int(args[1]) }
            }
            CallKind::MakeDirectory => Call::MakeDirectory { path: here(0), mode: int(args[1]) },
            CallKind::MakeDirectoryAt => Call::MakeDirectory { path: at(0), mode: int(args[2]) },
            CallKind::MakeNode => {
                Call::MakeNode { path: here(0), mode: int(args[1]), device: device(args[2]) }
            }
            CallKind::MakeNodeAt => {
                Call::MakeNode { path: at(0), mode: int(args[2]), device: device(args[3]) }
            }
            CallKind::Rename => Call::Rename { from: here(0), to: here(1), flags: 0 },
            CallKind::RenameAt => Call::Rename { from: at(0), to: at(2), flags: 0 },
            CallKind::RenameAt2 => Call::Rename { from: at(0), to: at(2), flags: int(args[4]) },
            CallKind::Link => Call::Link { from: here(0), to: here(1), flags: 0 },
            CallKind::LinkAt => Call::Link { from: at(0), to: at(2), flags: int(args[4]) },
            CallKind::SymbolicLink => Call::SymbolicLink { target: args[0], path: here(1) },
            CallKind::SymbolicLinkAt => Call::SymbolicLink { target: args[0], path: at(1) },
            CallKind::Remove => Call::Remove { path: here(0), flags: 0 },
            CallKind::RemoveAt => Call::Remove { path: at(0), flags: int(args[2]) },
            CallKind::RemoveDirectory => {
                Call::Remove { path: here(0), flags: AtFlags::REMOVEDIR.bits() }
            }
            CallKind::Bind => {
                let socket = int(args[0]).cast_signed();
                Call::Bind { socket, address: args[1], length: args[2] }
            }
            CallKind::Truncate => Call::Truncate { path: here(0), length: args[1] },
            CallKind::ChangeMode => {
                Call::ChangeMode { path: here(0), mode: int(args[1]), flags: 0 }
            }
            CallKind::ChangeModeOf => {
                Call::ChangeModeOf { file: int(args[0]).cast_signed(), mode: int(args[1]) }
            }
            CallKind::ChangeModeAt => {
                Call::ChangeMode { path: at(0), mode: int(args[2]), flags: 0 }
            }
            CallKind::ChangeModeAt2 => {
                Call::ChangeMode { path: at(0), mode: int(args[2]), flags: int(args[3]) }
            }
            CallKind::ChangeOwner => Call::ChangeOwner { path: here(0), owner: owner(1), flags: 0 },
            CallKind::ChangeOwnerOfLink => {
                Call::ChangeOwner { path: here(0), owner: owner(1), flags: STAYS }
            }
            CallKind::ChangeOwnerOf => {
                Call::ChangeOwnerOf { file: int(args[0]).cast_signed(), owner: owner(1) }
            }
            CallKind::ChangeOwnerAt => {
                Call::ChangeOwner { path: at(0), owner: owner(2), flags: int(args[4]) }
            }
            CallKind::ChangeTimes(format) => {
                let times = TimesArg { address: args[1], format: *format };
                Call::ChangeTimes { path: here(0), times, flags: 0 }
            }
            CallKind::ChangeTimesAt => {
                let times = TimesArg { address: args[2], format: TimesFormat::Microseconds };
                Call::ChangeTimes { path: at(0), times, flags: 0 }
            }
            CallKind::ChangeTimesAtWith => {
                let times = TimesArg { address: args[2], format: TimesFormat::Nanoseconds };
                Call::ChangeTimes { path: at(0), times, flags: int(args[3]) }
            }
            CallKind::SetAttribute { flags } => {
                let (name, value, size) = (args[1], args[2], args[3]);
                let attribute = AttributeArg::Set { name, value, size, flags: int(args[4]) };
                Call::ChangeAttribute { path: here(0), attribute, flags: *flags }
            }
            CallKind::RemoveAttribute { flags } => {
                let attribute = AttributeArg::Remove { name: args[1] };
                Call::ChangeAttribute { path: here(0), attribute, flags: *flags }
            }
            CallKind::Umask => Call::Umask,
            CallKind::Exec => return Some(Asked::Exec(here(0))),
            CallKind::ExecAt => return Some(Asked::Exec(at(0))),
        }))
    }
}

/// The kernel reads an unsigned int.
fn device(argument: u64) -> u64 {
    u64::from(int(argument))
}

/// As creat(2) defines it.
fn creat_flags() -> u32 {
    (OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC).bits()
}

/// The kernel, too, reads these arguments as ints and leaves the upper half alone.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
fn int(argument: u64) -> u32 {
    argument as u32
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
