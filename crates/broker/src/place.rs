//! Resolves a path of the caller to an open parent directory, its real path, and the last name.
//!
//! The broker is in the sandbox's mount namespace and root, so the kernel resolves for it as for the caller.
//! Only the last name is left unresolved, for the judge to see before anything happens to it. Magic links in
//! `/proc` are never followed.
//!
//! A directory on the way that cannot be entered is an answer, not a reason to let the kernel continue: another
//! thread may create that directory in between, and then Landlock would refuse with EACCES what two threads
//! that create the same tree may do.

use crate::below::is_below;
use crate::brokered_trees::{BrokeredTrees, Placement};
use crate::caller::Caller;
use crate::deep::path_beyond_limit;
use crate::numbered::{numbered_descriptor, own_descriptor};
use crate::unpoisoned::Unpoisoned as _;
use crate::{DIRECTORY, NO_MODE, own_path};
use palisade_sys::{Errno, OFlags, mounts};
use rustix::fs::{
    AtFlags, CWD, ResolveFlags, StatVfsMountFlags, fstat, fstatvfs, openat, openat2, readlinkat,
    statat,
};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;
/// How many directories shown for one call are remembered.
const MAX_SHOWN: usize = 256;
/// The tree in which grants made during a run are judged: names count from the root.
pub(crate) const GRANTS: &str = "/";
/// `PROC_SUPER_MAGIC`.
const PROC: i64 = 0x9fa0;

#[derive(Debug)]
pub(crate) struct ResolvedParent {
    pub(crate) parent: OwnedFd,
    pub(crate) name: OsString,
    /// The parent's real path and the name, as the sandbox sees them.
    pub(crate) path: PathBuf,
    /// The guarded tree it is in; none where nothing is judged.
    pub(crate) tree: Option<PathBuf>,
    /// Whether the caller wrote a trailing slash.
    pub(crate) is_directory_meant: bool,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Found {
    Ours(ResolvedParent),
    /// To a file that the caller holds open, by its descriptor number.
    Descriptor(i32),
    /// To `/`, `.` or `..`: there is no last name to create. The kernel sees that in the text and answers
    /// before it asks Landlock (EEXIST, EBUSY, EISDIR), whatever other threads do.
    NoName,
    /// Where nothing is brokered: an island, the run's own file systems, devices, `/proc`. The directory
    /// exists, and Landlock allows or refuses everything there by location alone, so no thread can change the
    /// answer.
    Elsewhere,
}

/// Where nothing is brokered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elsewhere;

/// Where a relative path starts: requested only if the path is relative.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    Caller(&'a Caller, i32),
    Directory(BorrowedFd<'a>),
}

impl Start<'_> {
    /// The caller's descriptor that a path names (`/dev/stdout`).
    fn descriptor_named(self, path: &[u8]) -> Option<i32> {
        match self {
            Start::Caller(caller, _) => numbered_descriptor(path, caller),
            Start::Directory(_) => own_descriptor(path),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) ground: BrokeredTrees,
    /// The host's `/proc`.
    pub(crate) proc: &'static OwnedFd,
    /// The directory in it that resolves our own descriptors to paths: needed for every call, and half as
    /// expensive as through `self`.
    pub(crate) own_descriptors: OwnedFd,
    /// Directories that were shown for one call, by device and inode.
    shown_once: Mutex<HashMap<(u64, u64), PathBuf>>,
}

impl Map {
    /// Only for the process that makes it.
    pub(crate) fn new(ground: BrokeredTrees, proc: &'static OwnedFd) -> Result<Self, Errno> {
        let own_descriptors = openat(proc, "self/fd", DIRECTORY, NO_MODE)?;
        Ok(Self { ground, proc, own_descriptors, shown_once: Mutex::default() })
    }

    /// Resolves everything but the last name.
    pub(crate) fn locate(&self, start: Start<'_>, path: &[u8]) -> Result<Found, Errno> {
        let place = match self.resolve(start, path)? {
            Found::Ours(place) => place,
            nothing_ours => return Ok(nothing_ours),
        };
        let Ok(tree) = self.tree_of(&place.path, place.parent.as_fd()) else {
            return Ok(Found::Elsewhere);
        };
        let place = ResolvedParent { tree, ..place };
        Ok(match &place.tree {
            Some(_) if place.is_granted() => self.on_top(place),
            Some(_) => Found::Ours(place),
            None => Found::Ours(self.covering(place)),
        })
    }

    /// The same for what is in a transaction, where nothing is brokered but renames of directories.
    pub(crate) fn locate_in_transaction(
        &self,
        start: Start<'_>,
        path: &[u8],
    ) -> Result<Option<ResolvedParent>, Errno> {
        let Found::Ours(place) = self.resolve(start, path)? else { return Ok(None) };
        // A path alone may lead to something else that is mounted there, or was when the caller entered it.
        let Some(top) = self.ground.transaction_of(&place.path) else { return Ok(None) };
        let top = openat2(CWD, top, DIRECTORY, NO_MODE, ResolveFlags::NO_SYMLINKS)?;
        let mount = |directory: &OwnedFd| mounts::mount_id(directory).ok();
        let is_in = mount(&top).is_some_and(|top| mount(&place.parent) == Some(top));
        Ok(is_in.then_some(place))
    }

    /// Whatever the place belongs to: it has no tree yet.
    fn resolve(&self, start: Start<'_>, path: &[u8]) -> Result<Found, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let (start, path) = enter_own(start, path);
        if is_below(path, b"/proc") {
            // What is there depends on the caller.
            return Ok(Found::Elsewhere);
        }
        let Some((directory, name, is_directory_meant)) = split(path) else {
            return Ok(Found::NoName);
        };
        let parent = match (base_of(start, path)?, directory) {
            (Some(base), b"") => base,
            (base, directory) => {
                let base = base.as_ref().map(AsFd::as_fd);
                match open_at(base, directory, DIRECTORY) {
                    Err(_) if enters_proc(base, directory) => return Ok(Found::Elsewhere),
                    opened => opened?,
                }
            }
        };
        // The gate's file system may have shown the directory for a grant that has ended.
        fstat(&parent)?;
        let mut path = self.path_of_directory(parent.as_fd())?;
        path.push(OsStr::from_bytes(name));
        let name = OsStr::from_bytes(name).to_owned();
        Ok(Found::Ours(ResolvedParent { parent, name, path, tree: None, is_directory_meant }))
    }

    /// Records a directory that is shown for one call at this path: a process that keeps it open is later on a
    /// detached mount, for which the kernel reports no path.
    pub(crate) fn remember_shown(&self, path: &Path) {
        let held = openat(CWD, path, DIRECTORY, NO_MODE).and_then(|directory| inode_of(&directory));
        if let Ok(held) = held {
            self.remember_directory(held, path.to_owned());
        }
    }

    /// The same by device and inode.
    pub(crate) fn remember_directory(&self, held: (u64, u64), path: PathBuf) {
        let mut shown = self.shown_once.lock().held();
        if shown.len() >= MAX_SHOWN {
            shown.clear();
        }
        shown.insert(held, path);
    }

    /// The mount that covers it now: a process that entered a directory before it became writable is still on
    /// the old mount. Elsewhere if its path is unknown.
    fn on_top(&self, place: ResolvedParent) -> Found {
        let is_read_only = fstatvfs(&place.parent)
            .is_ok_and(|seen| seen.f_flag.contains(StatVfsMountFlags::RDONLY));
        let Some(held) = inode_of(&place.parent).ok().filter(|_| is_read_only) else {
            return Found::Ours(place);
        };
        // Not held longer: the directory may be on a file system that does not answer.
        let shown = {
            let shown = self.shown_once.lock().held();
            shown.get(&held).cloned()
        };
        let was_shown = shown.is_some();
        let directory = shown.unwrap_or_else(|| place.directory().to_owned());
        let now = openat(CWD, &directory, DIRECTORY, NO_MODE).ok();
        let now = now.filter(|now| inode_of(now) == Ok(held));
        let path = directory.join(&place.name);
        match now {
            Some(parent) => Found::Ours(ResolvedParent { parent, path, ..place }),
            None if was_shown => Found::Ours(ResolvedParent { path, ..place }),
            None => Found::Elsewhere,
        }
    }

    /// The grant that covers a directory of our scaffolding: a process that entered it before is still below the grant.
    fn covering(&self, place: ResolvedParent) -> ResolvedParent {
        let resolve = ResolveFlags::NO_SYMLINKS;
        let now = openat2(CWD, place.directory(), DIRECTORY, NO_MODE, resolve).ok();
        match now.filter(|now| self.ground.is_grant(&place.path, now.as_fd())) {
            Some(parent) => ResolvedParent { parent, tree: Some(PathBuf::from(GRANTS)), ..place },
            None => place,
        }
    }

    /// The tree in which a name in this directory is judged; none where nothing is judged.
    pub(crate) fn tree_of(
        &self,
        path: &Path,
        directory: BorrowedFd<'_>,
    ) -> Result<Option<PathBuf>, Elsewhere> {
        match self.ground.standing(path) {
            Placement::In(tree) => Ok(Some(tree.to_owned())),
            // A tree of the host, writable if that was granted: judged from where the grant begins.
            Placement::Unjudged if self.ground.is_grant(path, directory) => {
                Ok(Some(PathBuf::from(GRANTS)))
            }
            Placement::Unjudged => Ok(None),
            Placement::Elsewhere => Err(Elsewhere),
        }
    }

    /// The same, following links as the last component.
    pub(crate) fn locate_target(&self, start: Start<'_>, path: &[u8]) -> Result<Found, Errno> {
        if let Some(number) = start.descriptor_named(path) {
            return Ok(Found::Descriptor(number));
        }
        match self.locate(start, path)? {
            Found::Ours(place) => self.follow_links(start, place),
            nothing_ours => Ok(nothing_ours),
        }
    }

    /// Where the links lead that begin in this place, which a path from `start` led to.
    pub(crate) fn follow_links(
        &self,
        start: Start<'_>,
        place: ResolvedParent,
    ) -> Result<Found, Errno> {
        let mut found = Found::Ours(place);
        for _ in 0..MAX_LINKS {
            let Found::Ours(place) = &found else { return Ok(found) };
            let Some(target) = place.link_target() else { return Ok(found) };
            if let Some(number) = start.descriptor_named(&target) {
                return Ok(Found::Descriptor(number));
            }
            found = self.locate(Start::Directory(place.parent.as_fd()), &target)?;
        }
        Err(Errno::LOOP)
    }

    /// Opens what a path names, anywhere in the view.
    pub(crate) fn open_to_truncate(&self, start: Start<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let base = base_of(start, path)?;
        match open_at(base.as_ref().map(AsFd::as_fd), path, flags) {
            // A pipe without a reader, which cannot be truncated anyway.
            Err(Errno::NXIO) => Err(Errno::INVAL),
            opened => opened,
        }
    }

    /// Holds what a path names without opening it. None in `/proc`, where only the caller can resolve it.
    pub(crate) fn pin(
        &self,
        start: Start<'_>,
        path: &[u8],
        flags: OFlags,
    ) -> Result<Option<OwnedFd>, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let (start, path) = enter_own(start, path);
        let base = base_of(start, path)?;
        let base = base.as_ref().map(AsFd::as_fd);
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        match open_at(base, path, flags) {
            Err(_) if enters_proc(base, path) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The directory that a whole path names, held open, with its real path. None in `/proc`.
    pub(crate) fn directory(
        &self,
        start: Start<'_>,
        path: &[u8],
    ) -> Result<Option<(OwnedFd, PathBuf)>, Errno> {
        let Some(found) = self.pin(start, path, OFlags::DIRECTORY)? else { return Ok(None) };
        let path = self.path_of_directory(found.as_fd())?;
        Ok(Some((found, path)))
    }

    /// The real path of a descriptor.
    pub(crate) fn path_of(&self, fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        let own = fd.as_raw_fd().to_string();
        let path = readlinkat(&self.own_descriptors, own, Vec::with_capacity(256))?;
        Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
    }

    /// The same for a directory, however long its path is.
    fn path_of_directory(&self, fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        match self.path_of(fd) {
            Err(Errno::NAMETOOLONG) => path_beyond_limit(fd, |fd| self.path_of(fd)),
            found => found,
        }
    }
}

/// Where a path through the caller's own entry in `/proc` continues.
fn enter_own<'s, 'p>(start: Start<'s>, path: &'p [u8]) -> (Start<'s>, &'p [u8]) {
    let Start::Caller(caller, _) = start else { return (start, path) };
    let is_own = |number| caller.numbers_inside().contains(&number);
    match own_path::leave(path, is_own) {
        Some((number, length)) => (Start::Caller(caller, number), &path[length..]),
        None => (start, path),
    }
}

/// None for an absolute path.
fn base_of(start: Start<'_>, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    match start {
        _ if path.starts_with(b"/") => Ok(None),
        Start::Caller(caller, number) => caller.directory(number).map(Some),
        Start::Directory(fd) => fd.try_clone_to_owned().map(Some).map_err(|e| errno_of(&e)),
    }
}

fn open_at(base: Option<BorrowedFd<'_>>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let at = base.unwrap_or(CWD);
    openat2(at, OsStr::from_bytes(path), flags, NO_MODE, ResolveFlags::NO_MAGICLINKS)
}

/// Whether a path that could not be resolved leads through `/proc`: the caller finds other things there than we
/// do (`self`, its descriptors), and only the kernel can answer.
fn enters_proc(base: Option<BorrowedFd<'_>>, path: &[u8]) -> bool {
    const PASSED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let names = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    };
    let root = || openat(CWD, "/", DIRECTORY, NO_MODE);
    let started = match base {
        Some(base) if !path.starts_with(b"/") => openat(base, ".", DIRECTORY, NO_MODE),
        _ => root(),
    };
    let Ok(mut at) = started else { return false };
    let mut left: VecDeque<Vec<u8>> = names(path).into();
    let mut links = 0;
    loop {
        if mounts::fstatfs_magic(&at).is_ok_and(|magic| magic == PROC) {
            return true;
        }
        let Some(name) = left.pop_front() else { return false };
        let name = OsStr::from_bytes(&name);
        if let Ok(target) = readlinkat(&at, name, Vec::new()) {
            links += 1;
            if links > MAX_LINKS {
                return false;
            }
            let target = target.into_bytes();
            for name in names(&target).into_iter().rev() {
                left.push_front(name);
            }
            if target.starts_with(b"/") {
                let Ok(root) = root() else { return false };
                at = root;
            }
            continue;
        }
        let Ok(next) = openat(&at, name, PASSED, NO_MODE) else { return false };
        at = next;
    }
}

fn inode_of(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(directory).map(|it| (it.st_dev, it.st_ino))
}

impl ResolvedParent {
    /// Whether what is here, or the directory it would be created in, was granted during the run.
    pub(crate) fn was_granted(&self, ground: &BrokeredTrees) -> bool {
        let there = self.pin();
        let held = there.as_ref().map_or(self.parent.as_fd(), AsFd::as_fd);
        ground.is_grant(&self.path, held)
    }

    /// Opens what is here as a path only, also if it is a link.
    pub(crate) fn pin(&self) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.parent, &self.name, flags, NO_MODE).ok()
    }

    /// The link's target, if it is a link.
    pub(crate) fn link_target(&self) -> Option<Vec<u8>> {
        let target = readlinkat(&self.parent, &self.name, Vec::new()).ok()?;
        Some(target.into_bytes())
    }

    /// The name with the caller's trailing slash: the kernel then accepts only a directory.
    pub(crate) fn name_as_written(&self) -> Cow<'_, OsStr> {
        if !self.is_directory_meant {
            return Cow::Borrowed(&self.name);
        }
        let mut name = self.name.clone();
        name.push("/");
        Cow::Owned(name)
    }

    /// Whether this is where `file` stands.
    pub(crate) fn is(&self, file: &OwnedFd) -> bool {
        let found = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let held = fstat(file);
        found.is_ok_and(|found| {
            held.is_ok_and(|held| (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino))
        })
    }

    /// Whether it is part of a grant made during the run.
    pub(crate) fn is_granted(&self) -> bool {
        self.tree.as_deref() == Some(Path::new(GRANTS))
    }

    pub(crate) fn duplicate(&self) -> Result<Self, Errno> {
        let parent = self.parent.try_clone().map_err(|error| errno_of(&error))?;
        let (name, path, tree) = (self.name.clone(), self.path.clone(), self.tree.clone());
        Ok(Self { parent, name, path, tree, is_directory_meant: self.is_directory_meant })
    }

    /// The directory's own path.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Directory part, last name, and whether slashes follow it. None if there is no last name to judge: the path
/// is empty, `/`, or ends in `.` or `..`.
fn split(path: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
    let start = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let name = &path[start..end];
    (name != b"." && name != b"..").then_some((&path[..start], name, end < path.len()))
}

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_last_name_is_what_comes_after_the_last_slash() {
        assert_eq!(split(b"a"), Some((&b""[..], &b"a"[..], false)));
        assert_eq!(split(b"a/b"), Some((&b"a/"[..], &b"b"[..], false)));
        assert_eq!(split(b"/a"), Some((&b"/"[..], &b"a"[..], false)));
        assert_eq!(split(b"//a//b//"), Some((&b"//a//"[..], &b"b"[..], true)));
        assert_eq!(split(b"../.x"), Some((&b"../"[..], &b".x"[..], false)));
    }

    #[test]
    fn a_path_without_a_last_name_has_none() {
        for path in [&b""[..], b"/", b"//", b".", b"..", b"a/..", b"a/.", b"../"] {
            assert_eq!(split(path), None, "{path:?}");
        }
    }
}
