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

    /// Whether other calls of its kind may be judged and performed at the same time. What one of them makes changes
    /// nothing of what another is judged by, except what makes a git directory, which is judged alone (`lock.rs`).
    ///
    /// Links do not: a link takes what was looked at by its name, and a symbolic link could come to have that name.
    pub(crate) fn may_go_beside_others(self) -> bool {
        matches!(self, Self::Open { .. } | Self::MakeDirectory { .. })
    }

    /// Whether its target exists once it has succeeded, even if it did not before.
    pub(crate) fn may_make(self) -> bool {
        match self {
            Self::Open { flags, .. } => flags & OFlags::CREATE.bits() != 0,
            Self::Rename { .. } => true,
            call => call.only_makes(),
        }
    }

    /// The flags of the file that it opens.
    pub(crate) fn wants_close_on_exec(self) -> bool {
        matches!(self, Self::Open { flags, .. } if flags & OFlags::CLOEXEC.bits() != 0)
    }
}

/// The arguments of a notified call, read as the kernel reads them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args<'a>(&'a [u64; 6]);

impl Args<'_> {
    pub(crate) fn raw(self, index: usize) -> u64 {
        self.0[index]
    }

    /// The kernel, too, reads these arguments as ints and leaves the upper half alone.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
    pub(crate) fn int(self, index: usize) -> u32 {
        self.0[index] as u32
    }

    fn descriptor(self, index: usize) -> i32 {
        self.int(index).cast_signed()
    }

    /// A path that is relative to the working directory.
    pub(crate) fn path(self, index: usize) -> PathArg {
        PathArg { dir: CWD, address: self.0[index] }
    }

    /// A directory, and a path that is relative to it.
    pub(crate) fn path_at(self, index: usize) -> PathArg {
        PathArg { dir: self.descriptor(index), address: self.0[index + 1] }
    }

    fn owner(self, index: usize) -> [u32; 2] {
        [self.int(index), self.int(index + 1)]
    }

    fn times(self, index: usize, format: TimesFormat) -> TimesArg {
        TimesArg { address: self.0[index], format }
    }

    fn new_attribute(self) -> AttributeArg {
        let [_, name, value, size, ..] = *self.0;
        AttributeArg::Set { name, value, size, flags: self.int(4) }
    }

    fn removed_attribute(self) -> AttributeArg {
        AttributeArg::Remove { name: self.0[1] }
    }
}

/// How the arguments of a call are read.
pub(crate) type Reader<T> = fn(Args<'_>) -> T;

/// Readers by the number of their call; needed for every notification.
#[derive(Debug)]
pub(crate) struct CallTable<T>(HashMap<u32, Reader<T>>);

impl<T> CallTable<T> {
    pub(crate) fn new(
        arch: Arch,
        rows: impl IntoIterator<Item = (&'static str, Reader<T>)>,
    ) -> Self {
        let rows = rows.into_iter();
        Self(rows.filter_map(|(name, reader)| Some((table::number(arch, name)?, reader))).collect())
    }

    pub(crate) fn read(&self, notification: &Notification) -> Option<T> {
        self.0.get(&notification.number).map(|reader| reader(Args(&notification.args)))
    }
}

/// `AT_SYMLINK_NOFOLLOW`.
const STAYS: u32 = AtFlags::SYMLINK_NOFOLLOW.bits();
const REMOVEDIR: u32 = AtFlags::REMOVEDIR.bits();
/// As creat(2) defines it.
const CREAT: u32 = OFlags::CREATE.bits() | OFlags::WRONLY.bits() | OFlags::TRUNC.bits();

const PERFORMED: [(&str, Reader<Call>); 36] = [
    ("open", |a| Call::Open { path: a.path(0), flags: a.int(1), mode: a.int(2) }),
    ("openat", |a| Call::Open { path: a.path_at(0), flags: a.int(2), mode: a.int(3) }),
    ("creat", |a| Call::Open { path: a.path(0), flags: CREAT, mode: a.int(1) }),
    ("mkdir", |a| Call::MakeDirectory { path: a.path(0), mode: a.int(1) }),
    ("mkdirat", |a| Call::MakeDirectory { path: a.path_at(0), mode: a.int(2) }),
    ("mknod", |a| Call::MakeNode { path: a.path(0), mode: a.int(1), device: a.int(2).into() }),
    ("mknodat", |a| Call::MakeNode { path: a.path_at(0), mode: a.int(2), device: a.int(3).into() }),
    ("rename", |a| Call::Rename { from: a.path(0), to: a.path(1), flags: 0 }),
    ("renameat", |a| Call::Rename { from: a.path_at(0), to: a.path_at(2), flags: 0 }),
    ("renameat2", |a| Call::Rename { from: a.path_at(0), to: a.path_at(2), flags: a.int(4) }),
    ("link", |a| Call::Link { from: a.path(0), to: a.path(1), flags: 0 }),
    ("linkat", |a| Call::Link { from: a.path_at(0), to: a.path_at(2), flags: a.int(4) }),
    ("symlink", |a| Call::SymbolicLink { target: a.raw(0), path: a.path(1) }),
    ("symlinkat", |a| Call::SymbolicLink { target: a.raw(0), path: a.path_at(1) }),
    ("unlink", |a| Call::Remove { path: a.path(0), flags: 0 }),
    ("unlinkat", |a| Call::Remove { path: a.path_at(0), flags: a.int(2) }),
    ("rmdir", |a| Call::Remove { path: a.path(0), flags: REMOVEDIR }),
    ("bind", |a| Call::Bind { socket: a.descriptor(0), address: a.raw(1), length: a.raw(2) }),
    ("truncate", |a| Call::Truncate { path: a.path(0), length: a.raw(1) }),
    ("chmod", |a| Call::ChangeMode { path: a.path(0), mode: a.int(1), flags: 0 }),
    ("fchmod", |a| Call::ChangeModeOf { file: a.descriptor(0), mode: a.int(1) }),
    ("fchmodat", |a| Call::ChangeMode { path: a.path_at(0), mode: a.int(2), flags: 0 }),
    ("fchmodat2", |a| Call::ChangeMode { path: a.path_at(0), mode: a.int(2), flags: a.int(3) }),
    ("chown", |a| Call::ChangeOwner { path: a.path(0), owner: a.owner(1), flags: 0 }),
    ("lchown", |a| Call::ChangeOwner { path: a.path(0), owner: a.owner(1), flags: STAYS }),
    ("fchown", |a| Call::ChangeOwnerOf { file: a.descriptor(0), owner: a.owner(1) }),
    ("fchownat", |a| Call::ChangeOwner { path: a.path_at(0), owner: a.owner(2), flags: a.int(4) }),
    ("utime", |a| times(a.path(0), a.times(1, TimesFormat::Seconds), 0)),
    ("utimes", |a| times(a.path(0), a.times(1, TimesFormat::Microseconds), 0)),
    ("futimesat", |a| times(a.path_at(0), a.times(2, TimesFormat::Microseconds), 0)),
    ("utimensat", |a| times(a.path_at(0), a.times(2, TimesFormat::Nanoseconds), a.int(3))),
    ("setxattr", |a| attribute(a.path(0), a.new_attribute(), 0)),
    ("lsetxattr", |a| attribute(a.path(0), a.new_attribute(), STAYS)),
    ("removexattr", |a| attribute(a.path(0), a.removed_attribute(), 0)),
    ("lremovexattr", |a| attribute(a.path(0), a.removed_attribute(), STAYS)),
    ("umask", |_| Call::Umask),
];

const EXECUTED: [(&str, Reader<PathArg>); 2] =
    [("execve", |a| a.path(0)), ("execveat", |a| a.path_at(0))];

fn times(path: PathArg, times: TimesArg, flags: u32) -> Call {
    Call::ChangeTimes { path, times, flags }
}

fn attribute(path: PathArg, attribute: AttributeArg, flags: u32) -> Call {
    Call::ChangeAttribute { path, attribute, flags }
}

#[derive(Debug)]
pub(crate) struct Calls {
    performed: CallTable<Call>,
    executed: CallTable<PathArg>,
}

impl Calls {
    pub(crate) fn of(arch: Arch) -> Self {
        let performed = CallTable::new(arch, PERFORMED);
        Self { performed, executed: CallTable::new(arch, EXECUTED) }
    }

    /// `None` for a call that the broker does not perform.
    pub(crate) fn parse(&self, notification: &Notification) -> Option<Asked> {
        let performed = self.performed.read(notification).map(Asked::Perform);
        performed.or_else(|| self.executed.read(notification).map(Asked::Exec))
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
