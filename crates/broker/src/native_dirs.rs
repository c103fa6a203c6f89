//! Directories where Landlock gives the command all rights to create and write files: mounts of the run's own, such as
//! the overlay of a transaction, and directories of build output. The kernel continues such calls, which costs a small part of performing
//! them.
//!
//! The kernel reads the path again, so nothing may depend on what is found here: wherever the path leads by then,
//! Landlock allows or refuses it by location alone, and where it has no right to grant (modes, times, attributes), read-only
//! mounts do. What is found here only says whether they would allow it. If that is uncertain (a link on the way, another
//! mount, a directory that was created anew and has no rights), the call is performed like any other. Landlock lets nothing
//! leave a build directory, so renames and links there are always performed, and what leaves it is judged.

use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::path_lookup::{CallerPath, LookedUp};
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{
    AtFlags, CWD, FileType, RenameFlags, ResolveFlags, fstat, lstat, openat2, statat,
};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct NativeDirs {
    /// Longest paths first, so that the first one that contains a path is the mount it is on.
    dirs: Vec<NativeDir>,
    /// Mounts of the run's own: Landlock lets the command do everything on them.
    own: Vec<KnownMount>,
    /// Mounts of guarded trees: removing and changing attributes there plants nothing, so nothing of it is judged.
    trees: Vec<KnownMount>,
}

/// A mount, by the number that a path on it is looked up with.
#[derive(Debug)]
struct KnownMount {
    number: u64,
    /// Held so that no other mount gets the number when this one is unmounted.
    _root: OwnedFd,
}

#[derive(Debug)]
struct NativeDir {
    path: PathBuf,
    /// As it was when the rights were given.
    top: OwnedFd,
    inode: (u64, u64),
    kind: NativeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NativeKind {
    /// A mount of the run's own: Landlock lets the command rename and link there, too.
    OwnMount,
    /// A part of a guarded tree.
    BuildDir,
}

/// Where calls may be left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Own,
    /// Also in guarded trees. Not while something is visible for one call only: other calls wait for its end.
    Trees,
}

/// A path below one of the directories.
struct Below<'d> {
    dir: &'d NativeDir,
    path: Vec<u8>,
    /// Where the path below the directory begins.
    start: usize,
}

impl NativeDirs {
    /// Before the command starts. One that has changed since the plan was made is left out.
    pub(crate) fn open(own_mounts: &[PathBuf], build_dirs: &[PathBuf], trees: &[PathBuf]) -> Self {
        let (mut own, mut parts) = (Vec::new(), Vec::new());
        for path in own_mounts {
            match KnownMount::open(path) {
                Some(mount) => own.push(mount),
                None => parts.push((path, NativeKind::OwnMount)),
            }
        }
        let build_dirs = build_dirs.iter().map(|path| (path, NativeKind::BuildDir));
        let opened = parts.into_iter().chain(build_dirs);
        let opened = opened.filter_map(|(path, kind)| NativeDir::open(path, kind).ok());
        let mut dirs: Vec<NativeDir> = opened.collect();
        dirs.sort_by_key(|dir| std::cmp::Reverse(dir.path.as_os_str().len()));
        Self { dirs, own, trees: trees.iter().filter_map(|path| KnownMount::open(path)).collect() }
    }

    /// Whether Landlock and the mounts allow this call wherever its paths lead now, and nothing is to be asked about it.
    pub(crate) fn is_left_to_kernel(&self, caller: &Caller, call: Call, extent: Extent) -> bool {
        self.is_on_known_mount(caller, call, extent) || self.is_in_directory(caller, call)
    }

    /// Whatever a path leads through, the number of the mount at its end says enough.
    fn is_on_known_mount(&self, caller: &Caller, call: Call, extent: Extent) -> bool {
        let has = |found: LookedUp| self.has(found, extent);
        let look_up = |at: PathArg, follow: bool| {
            let written = caller.path(at.address).ok()?;
            CallerPath { caller, dir: at.dir, written: &written }.look_up(follow).ok()
        };
        match call {
            Call::Remove { path, flags } => {
                AtFlags::REMOVEDIR.contains(AtFlags::from_bits_retain(flags))
                    && self.may_be_removed(caller, path, extent)
            }
            Call::ChangeTimes { path, .. } | Call::ChangeAttribute { path, .. } => {
                look_up(path, call.follows_target()).is_some_and(has)
            }
            // On a file that bit is refused, and which of the two it is, the kernel would not ask.
            Call::ChangeMode { path, mode, .. } => {
                mode & Mode::SGID.bits() == 0
                    && look_up(path, call.follows_target()).is_some_and(has)
            }
            Call::Open { path, flags, .. } => {
                let opens = opens_by_name(OFlags::from_bits_retain(flags));
                opens && self.writes_to_own(caller, path, call).is_some()
            }
            Call::MakeDirectory { path, .. }
            | Call::MakeNode { path, .. }
            | Call::SymbolicLink { path, .. } => self.writes_to_own(caller, path, call).is_some(),
            Call::Rename { from, to, flags } => {
                flags & !RenameFlags::NOREPLACE.bits() == 0
                    && self.gets_name_on_own(caller, from, to, call)
            }
            Call::Link { from, to, flags: 0 } => self.gets_name_on_own(caller, from, to, call),
            _ => false,
        }
    }

    /// Whether something that is not a directory gets another name on the same mount of the run's own.
    fn gets_name_on_own(&self, caller: &Caller, from: PathArg, to: PathArg, call: Call) -> bool {
        if self.own.is_empty() {
            return false;
        }
        let Ok(written) = caller.path(from.address) else { return false };
        let path = CallerPath { caller, dir: from.dir, written: &written };
        path.look_up(false).is_ok_and(|from| {
            is_among(&self.own, from.mount)
                && !from.is_directory
                && from.has_name_on_mount()
                && self.writes_to_own(caller, to, call) == Some(from.mount)
        })
    }

    /// Also if there is nothing to remove, as long as that is said of a directory on such a mount.
    fn may_be_removed(&self, caller: &Caller, at: PathArg, extent: Extent) -> bool {
        let Ok(written) = caller.path(at.address) else { return false };
        let path = CallerPath { caller, dir: at.dir, written: &written };
        match path.look_up(false) {
            Ok(found) => self.has(found, extent) && found.has_name_on_mount(),
            Err(Errno::NOENT) => path
                .look_up_parent()
                .is_some_and(|it| it.is_ok_and(|parent| self.has(parent, extent))),
            Err(_) => false,
        }
    }

    /// On a mount where the kernel alone says what may be removed and changed.
    fn has(&self, found: LookedUp, extent: Extent) -> bool {
        let mount = found.mount;
        is_among(&self.own, mount) || (extent == Extent::Trees && is_among(&self.trees, mount))
    }

    /// The mount of the run's own on which this call makes or writes what it names.
    fn writes_to_own(&self, caller: &Caller, at: PathArg, call: Call) -> Option<u64> {
        if self.own.is_empty() {
            return None;
        }
        let written = caller.path(at.address).ok()?;
        let path = CallerPath { caller, dir: at.dir, written: &written };
        let mount = path.look_up_parent()?.ok()?.mount;
        if !is_among(&self.own, mount) {
            return None;
        }
        if call.only_makes() {
            return Some(mount);
        }
        let is_within = |found: LookedUp| found.mount == mount && found.has_name_on_mount();
        let is_left = match path.look_up(false) {
            Ok(found) if found.is_link && call.follows_target() => {
                path.look_up(true).is_ok_and(is_within)
            }
            Ok(found) => is_within(found),
            Err(errno) => errno == Errno::NOENT,
        };
        is_left.then_some(mount)
    }

    /// These directories are parts of mounts, and have no such numbers: the path itself has to lead straight down into one.
    fn is_in_directory(&self, caller: &Caller, call: Call) -> bool {
        if self.dirs.is_empty() {
            return false;
        }
        match call {
            Call::Open { path, flags, .. } => {
                let flags = OFlags::from_bits_retain(flags);
                opens_by_name(flags) && self.holds(caller, path, call.follows_target())
            }
            Call::MakeDirectory { path, .. }
            | Call::MakeNode { path, .. }
            | Call::SymbolicLink { path, .. }
            | Call::Remove { path, .. }
            | Call::ChangeTimes { path, .. }
            | Call::ChangeAttribute { path, .. } => self.holds(caller, path, call.follows_target()),
            Call::ChangeMode { path, mode, .. } => {
                mode & Mode::SGID.bits() == 0 && self.holds(caller, path, call.follows_target())
            }
            Call::Rename { from, to, flags } => {
                let known = RenameFlags::NOREPLACE.bits();
                flags & !known == 0 && self.hold_both(caller, from, to)
            }
            Call::Link { from, to, flags: 0 } => self.hold_both(caller, from, to),
            _ => false,
        }
    }

    fn holds(&self, caller: &Caller, at: PathArg, follows: bool) -> bool {
        self.below(caller, at).is_some_and(|below| below.is_within(follows))
    }

    fn hold_both(&self, caller: &Caller, from: PathArg, to: PathArg) -> bool {
        let Some(from) = self.below(caller, from) else { return false };
        self.below(caller, to).is_some_and(|to| gets_another_name(&from, &to))
    }

    fn below(&self, caller: &Caller, at: PathArg) -> Option<Below<'_>> {
        let typed = caller.path(at.address).ok()?;
        if typed.starts_with(b"/") {
            return self.find(typed);
        }
        let mut path = caller.path_of_directory(at.dir);
        path.push(b'/');
        path.extend_from_slice(&typed);
        self.find(path)
    }

    fn find(&self, path: Vec<u8>) -> Option<Below<'_>> {
        let (dir, start) = self.dirs.iter().find_map(|dir| {
            let below = path.strip_prefix(dir.path.as_os_str().as_bytes())?.strip_prefix(b"/")?;
            Some((dir, path.len() - below.len()))
        })?;
        is_plain(&path[start..]).then_some(Below { dir, path, start })
    }
}

impl KnownMount {
    /// None if this is not the root of a mount, or the kernel does not say.
    fn open(path: &Path) -> Option<Self> {
        let root = openat2(CWD, path, DIRECTORY, NO_MODE, ResolveFlags::NO_SYMLINKS).ok()?;
        let found = LookedUp::of(&root).ok()?;
        (found.is_mount_root == Some(true)).then_some(Self { number: found.mount, _root: root })
    }
}

impl NativeDir {
    fn open(path: &Path, kind: NativeKind) -> Result<Self, Errno> {
        let top = openat2(CWD, path, DIRECTORY, NO_MODE, ResolveFlags::NO_SYMLINKS)?;
        let found = fstat(&top)?;
        Ok(Self { path: path.to_owned(), top, inode: (found.st_dev, found.st_ino), kind })
    }

    /// Whether its path still leads to it: a directory above it can be renamed.
    fn is_in_place(&self) -> bool {
        lstat(&self.path).is_ok_and(|found| (found.st_dev, found.st_ino) == self.inode)
    }
}

impl Below<'_> {
    fn name(&self) -> &OsStr {
        OsStr::from_bytes(&self.path[self.start..])
    }

    /// Whether the path leads through no link and to no other mount.
    fn is_within(&self, follows: bool) -> bool {
        let last = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::CLOEXEC | last;
        // A missing name is to be made; whatever is missing, the kernel says so.
        self.dir.is_in_place()
            && matches!(
                openat2(&self.dir.top, self.name(), flags, NO_MODE, resolve),
                Ok(_) | Err(Errno::NOENT)
            )
    }

    fn is_no_directory(&self) -> bool {
        statat(&self.dir.top, self.name(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::Directory)
    }
}

fn is_among(mounts: &[KnownMount], number: u64) -> bool {
    mounts.iter().any(|mount| mount.number == number)
}

/// Whether something that is not a directory gets another name on the same mount. The kernel does not rename every
/// directory of an overlay (`overlay_move.rs`).
fn gets_another_name(from: &Below<'_>, to: &Below<'_>) -> bool {
    from.dir.kind == NativeKind::OwnMount
        && std::ptr::eq(from.dir, to.dir)
        && from.is_no_directory()
        && from.is_within(false)
        && to.is_within(false)
}

/// Whether it opens a file for writing, by its name. Landlock need not handle truncation, so what truncates without
/// writing is not left to the kernel anywhere.
fn opens_by_name(flags: OFlags) -> bool {
    const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    (writes || !flags.contains(OFlags::TRUNC))
        && !flags.intersects(UNNAMED | OFlags::DIRECTORY | OFlags::PATH)
}

/// Whether a relative path leads down and nowhere else.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

#[cfg(test)]
#[path = "native_dirs_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "native_mounts_tests.rs"]
mod native_mounts_tests;
