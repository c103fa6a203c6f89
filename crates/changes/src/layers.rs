//! The project and the upper layers on it, each behind a descriptor. Knows what whiteouts and opaque directories mean, and
//! opens entries for reading. Must never follow a link, leave a layer or cross a mount, nor wait for a FIFO.

use crate::attributes::is_opaque;
use crate::copy_record::CopyRecord;
use crate::entry::{Found, KEPT_BITS};
use crate::paths::{or_dot, parent_and_name};
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult, SysError};
use rustix::fs::{AtFlags, chmod, fstat, readlinkat, statat};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// Opening a FIFO or a device neither waits nor takes a terminal.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// How many unreadable entries of a session are made readable: each holds a descriptor.
const MAX_UNLOCKED: usize = 256;

/// A project with what a session changed in it.
///
/// A session may leave files that their owner cannot read (mode 000). Such entries are made readable while this exists, and
/// get their permissions back when it is dropped.
#[derive(Debug)]
pub struct Layers {
    /// Newest first; the project is the last.
    dirs: Vec<OwnedFd>,
    /// How many of them are looked at as changes; those after them are what the changes are compared with.
    fresh: usize,
    /// Paths of the project that the session could not see.
    hidden: HashSet<PathBuf>,
    /// The newest layer is a copy of the project, and this is what it was before the session could change it.
    copied: Option<CopyRecord>,
    unlocked: Mutex<Vec<Unlocked>>,
}

#[derive(Debug)]
struct Unlocked {
    entry: OwnedFd,
    found: Found,
}

impl Layers {
    /// `uppers` are the `upper` directories, newest first.
    pub fn new(project: OwnedFd, uppers: Vec<OwnedFd>) -> Self {
        Self::between(project, Vec::new(), uppers)
    }

    /// The changes from one checkpoint to a later one: `base` are the layers of the earlier one, `uppers` those added after
    /// it, both newest first. Such changes can be shown but not applied.
    pub fn between(project: OwnedFd, base: Vec<OwnedFd>, uppers: Vec<OwnedFd>) -> Self {
        let fresh = uppers.len();
        let dirs = uppers.into_iter().chain(base).chain([project]).collect();
        Self { dirs, fresh, hidden: HashSet::new(), copied: None, unlocked: Mutex::default() }
    }

    /// A project and a copy of it that a session worked in.
    pub fn of_copy(project: OwnedFd, copy: OwnedFd, record: CopyRecord) -> Self {
        let mut layers = Self::new(project, vec![copy]);
        layers.copied = Some(record);
        layers
    }

    /// Where the changes are made in a copy, not in an overlay.
    pub(crate) fn copied(&self) -> Option<&CopyRecord> {
        self.copied.as_ref()
    }

    /// Two states of one session, each as one upper layer that holds all of its changes ([`crate::compare`]).
    ///
    /// `hidden` are paths that the session cannot see: the project has nothing there, nor below. What a session put in such a
    /// place must never be replaced by the host's file, which its commands could then read.
    pub fn states(project: OwnedFd, before: OwnedFd, now: OwnedFd, hidden: &[PathBuf]) -> Self {
        let mut states = Self::between(project, vec![before], vec![now]);
        states.hidden = hidden.iter().cloned().collect();
        states
    }

    /// The same for a session that works in a copy, of which each state is the whole tree. The project itself can be one.
    pub fn states_of_copies(
        project: OwnedFd,
        before: OwnedFd,
        now: OwnedFd,
        hidden: &[PathBuf],
    ) -> Self {
        let mut states = Self::states(project, before, now, hidden);
        states.copied = Some(CopyRecord::default());
        states
    }

    /// Whether a layer is the project, where hidden paths are the host's.
    fn is_of_host(&self, layer: usize) -> bool {
        let inode = |layer| fstat(self.root(layer)).map(|stat| (stat.st_dev, stat.st_ino));
        !self.is_upper(layer)
            || (self.copied.is_some() && inode(layer).ok() == inode(self.project()).ok())
    }

    fn is_hidden(&self, path: &Path) -> bool {
        !self.hidden.is_empty() && path.ancestors().any(|above| self.hidden.contains(above))
    }

    /// The same by paths.
    pub fn open(project: &Path, uppers: &[&Path]) -> SysResult<Self> {
        let open = |path: &Path| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).at("open", path)
        };
        let uppers = uppers.iter().map(|path| open(path)).collect::<SysResult<_>>()?;
        Ok(Self::new(open(project)?, uppers))
    }

    /// Whether this is the newest upper layer: another one may have taken its name.
    pub fn is_newest(&self, upper: BorrowedFd<'_>) -> SysResult<bool> {
        let found = |layer| fstat(layer).call("fstat").map(|stat| Found::of(&stat));
        Ok(found(self.root(0))?.is_same_inode(&found(upper)?))
    }

    pub(crate) fn project(&self) -> usize {
        self.dirs.len().saturating_sub(1)
    }

    pub(crate) fn fresh(&self) -> usize {
        self.fresh
    }

    /// Whether the changes are compared with the project itself.
    pub(crate) fn is_whole(&self) -> bool {
        self.fresh == self.project()
    }

    /// The layers that show the project with all changes. A copy shows all of it by itself.
    pub(crate) fn all(&self) -> Vec<usize> {
        match &self.copied {
            Some(_) => (0..self.fresh).collect(),
            None => (0..self.dirs.len()).collect(),
        }
    }

    /// The layers that the changes are compared with.
    pub(crate) fn old(&self) -> Vec<usize> {
        (self.fresh..self.dirs.len()).collect()
    }

    pub(crate) fn root(&self, layer: usize) -> BorrowedFd<'_> {
        self.dirs[layer].as_fd()
    }

    fn is_upper(&self, layer: usize) -> bool {
        layer < self.project()
    }

    pub(crate) fn has_unlocked(&self) -> bool {
        !self.unlocked().is_empty()
    }

    /// None also if something on the way is no directory.
    pub(crate) fn stat(&self, layer: usize, path: &Path) -> SysResult<Option<Found>> {
        let Some((parent, name)) = parent_and_name(path) else {
            return Ok(Some(Found::of(&fstat(self.root(layer)).at("fstat", path)?)));
        };
        let parent = match self.open_parent(layer, parent) {
            Err(error) if is_absence(error.errno) => return Ok(None),
            parent => parent?,
        };
        self.stat_in(parent.as_fd(), name)
    }

    pub(crate) fn stat_in(&self, dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<Option<Found>> {
        match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(errno) if is_absence(errno) => Ok(None),
            Ok(stat) => Ok(Some(self.as_before(Found::of(&stat)))),
            Err(errno) => Err(errno).at("statat", Path::new(name)),
        }
    }

    /// Where an entry is looked up, renamed and removed.
    pub(crate) fn open_parent(&self, layer: usize, path: &Path) -> SysResult<OwnedFd> {
        self.opened(layer, path, OFlags::PATH | OFlags::DIRECTORY)
    }

    pub(crate) fn open_directory(&self, layer: usize, path: &Path) -> SysResult<OwnedFd> {
        self.opened(layer, path, DIRECTORY)
    }

    /// A regular file; `EINVAL` if it is anything else.
    pub(crate) fn open_file(&self, layer: usize, path: &Path) -> SysResult<(OwnedFd, Found)> {
        let file = self.opened(layer, path, FILE)?;
        let found = self.as_before(Found::of(&fstat(&file).at("fstat", path)?));
        if found.kind != crate::entry::EntryKind::File {
            return Err(SysError::new("open", path.display().to_string(), Errno::INVAL));
        }
        Ok((file, found))
    }

    pub(crate) fn read_link(&self, layer: usize, path: &Path) -> SysResult<Vec<u8>> {
        let Some((parent, name)) = parent_and_name(path) else {
            return Err(SysError::new("readlink", "", Errno::INVAL));
        };
        let parent = self.open_parent(layer, parent)?;
        readlinkat(&parent, name, Vec::new())
            .map(std::ffi::CString::into_bytes)
            .at("readlink", path)
    }

    pub(crate) fn link_target(&self, layer: usize, path: &Path) -> SysResult<PathBuf> {
        Ok(OsString::from_vec(self.read_link(layer, path)?).into())
    }

    /// What the layers show under one name of a directory that is merged from `dirs`.
    pub(crate) fn stack(
        &self,
        dirs: &[(usize, OwnedFd)],
        name: &OsStr,
        path: &Path,
    ) -> SysResult<Stack> {
        let mut stack = Stack::default();
        for (layer, dir) in dirs {
            if self.is_hidden(path) && self.is_of_host(*layer) {
                continue;
            }
            match self.stat_in(dir.as_fd(), name)? {
                None => {}
                Some(found) if found.is_directory() => {
                    stack.top.get_or_insert((*layer, found));
                    stack.layers.push(*layer);
                    if self.is_upper(*layer)
                        && (self.copied.is_some() || is_opaque(self.open_directory(*layer, path)?))
                    {
                        stack.hides_below = true;
                        return Ok(stack);
                    }
                }
                Some(found) => {
                    let is_deletion =
                        self.is_upper(*layer) && found.is_whiteout && self.copied.is_none();
                    if stack.top.is_none() && !is_deletion {
                        stack.top = Some((*layer, found));
                    }
                    stack.hides_below = true;
                    return Ok(stack);
                }
            }
        }
        Ok(stack)
    }

    /// What these layers show at a path: the layer it comes from, and the entry.
    pub(crate) fn find(
        &self,
        layers: Vec<usize>,
        path: &Path,
    ) -> SysResult<Option<(usize, Found)>> {
        let mut layers = layers;
        let mut walked = PathBuf::new();
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let mut dirs = Vec::new();
            for layer in &layers {
                match self.open_parent(*layer, &walked) {
                    Err(error) if is_absence(error.errno) => {}
                    dir => dirs.push((*layer, dir?)),
                }
            }
            walked.push(name);
            let stack = self.stack(&dirs, name, &walked)?;
            if names.peek().is_none() {
                return Ok(stack.top);
            }
            layers = stack.layers;
        }
        Ok(None)
    }

    fn opened(&self, layer: usize, path: &Path, flags: OFlags) -> SysResult<OwnedFd> {
        let path = or_dot(path);
        match open_on_mount(self.root(layer), path, flags) {
            Err(error) if error.errno == Errno::ACCESS && self.is_upper(layer) => {
                self.unlock(layer, path).map_err(|_| error)?;
                open_on_mount(self.root(layer), path, flags)
            }
            // A directory that can be opened, but whose entries nobody can reach (mode 400).
            Ok(directory)
                if flags.contains(OFlags::DIRECTORY)
                    && self.is_upper(layer)
                    && statat(&directory, ".", AtFlags::empty()).err() == Some(Errno::ACCESS) =>
            {
                self.unlock(layer, path)?;
                open_on_mount(self.root(layer), path, flags)
            }
            opened => opened,
        }
    }

    /// Makes an entry of an upper layer readable, and the directories on the way.
    fn unlock(&self, layer: usize, path: &Path) -> SysResult<()> {
        let mut current = open_on_mount(self.root(layer), Path::new("."), OFlags::PATH)?;
        for name in path.iter().filter(|name| *name != ".") {
            current = open_entry(&current, name)?;
            let found = Found::of(&fstat(&current).at("fstat", path)?);
            let needed = match found.kind {
                crate::entry::EntryKind::Directory => 0o500,
                crate::entry::EntryKind::File => 0o400,
                _ => return Ok(()),
            };
            if found.mode & needed == needed {
                continue;
            }
            let mut unlocked = self.unlocked();
            if unlocked.len() >= MAX_UNLOCKED {
                return Err(SysError::new("chmod", path.display().to_string(), Errno::ACCESS));
            }
            set_mode(current.as_fd(), (found.mode & KEPT_BITS) | needed, path)?;
            let entry = rustix::io::fcntl_dupfd_cloexec(&current, 0).at("fcntl", path)?;
            unlocked.push(Unlocked { entry, found });
        }
        Ok(())
    }

    /// With the permissions that it had before we made it readable.
    fn as_before(&self, found: Found) -> Found {
        let unlocked = self.unlocked();
        let before = unlocked.iter().find(|unlocked| unlocked.found.is_same_inode(&found));
        before.map_or(found, |before| Found { mode: before.found.mode, ..found })
    }

    /// Gives entries that were made readable their permissions back.
    pub(crate) fn lock_again(&self) {
        for Unlocked { entry, found } in self.unlocked().drain(..).rev() {
            // Never with set-id bits: the entry may have been moved to the host.
            let _ = set_mode(entry.as_fd(), found.mode & KEPT_BITS, Path::new(""));
        }
    }

    fn unlocked(&self) -> MutexGuard<'_, Vec<Unlocked>> {
        self.unlocked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Layers {
    fn drop(&mut self) {
        self.lock_again();
    }
}

/// What several layers show at one path.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    /// The entry that is seen, and its layer; none for "deleted" or absent.
    pub(crate) top: Option<(usize, Found)>,
    /// If it is a directory: the layers that it is merged from.
    pub(crate) layers: Vec<usize>,
    /// Whether layers below the last of these do not count.
    pub(crate) hides_below: bool,
}

/// For descriptors without rights to the content, too (`O_PATH`): fchmod(2) refuses those.
pub(crate) fn set_mode(entry: BorrowedFd<'_>, mode: u32, path: &Path) -> SysResult<()> {
    let link = format!("/proc/self/fd/{}", entry.as_raw_fd());
    chmod(link, Mode::from_raw_mode(mode)).at("chmod", path)
}

/// The name is not there, or something on the way to it is no directory of this tree.
pub(crate) fn is_absence(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}
