//! The names inside that grafts need: parent directories, mount points, links of the host.
//!
//! They are created only on the sandbox's own file systems, the *grounds*: its root, the private home
//! directory, frames. The command sees some of them read-only, and may rename and race in others, so every step
//! starts at the ground's own descriptor, follows no link and crosses no mount. Whatever the command does,
//! nothing is created anywhere else.

use crate::look::HostFile;
use crate::message::FileKind;
use palisade_sys::beneath::{open_beneath, open_on_mount};
use palisade_sys::mounts::{self, MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result, SysError};
use rustix::fs::{AtFlags, StatVfsMountFlags, StatxAttributes, StatxFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// `linux/magic.h`
const TMPFS_MAGIC: i64 = 0x0102_1994;
const FUSE_MAGIC: i64 = 0x6573_5546;
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
const CHUNK: usize = 128 << 10;
/// Never read: a mount covers it.
const PLACE_MODE: Mode = Mode::from_raw_mode(0o444);

/// A file system of the sandbox's own.
#[derive(Debug)]
struct OwnFilesystem {
    path: PathBuf,
    /// As it is mounted inside.
    root: OwnedFd,
    id: u64,
    /// The same file system on a writable mount of ours, with nothing mounted on it; or the one behind it.
    workbench: OwnedFd,
    /// Whether it is writable for the command, too.
    is_writable: bool,
}

/// A name on a ground.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    ground: usize,
    path: PathBuf,
}

/// A name that we created.
#[derive(Debug)]
struct Made {
    is_directory: bool,
    /// Its inode: the command may have replaced it.
    inode: u64,
    /// How many grafts use it.
    users: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Scaffold {
    grounds: Vec<OwnFilesystem>,
    /// Whether the gate's file system shows them, with a name for everything that the host has.
    has_stubs: bool,
    made: BTreeMap<Name, Made>,
}

impl Scaffold {
    /// Must be called inside. A ground that is not where the plan put it, or no longer a mount of its own, is
    /// left out: nothing can be shown there.
    pub(crate) fn survey(
        root: &OwnedFd,
        paths: &[PathBuf],
        stores: &[(PathBuf, OwnedFd)],
    ) -> Result<Self> {
        let mut grounds = Vec::new();
        for path in paths {
            let Ok(found) = open_beneath(root, path, DIRECTORY) else { continue };
            let store = stores.iter().find(|(at, _)| at == path).map(|(_, store)| store);
            let magic = if store.is_some() { FUSE_MAGIC } else { TMPFS_MAGIC };
            if is_own_mount(&found, magic)? {
                grounds.push(OwnFilesystem::new(path.clone(), found, store)?);
            }
        }
        let has_stubs = !stores.is_empty();
        // The first that is a prefix of a path is the one it belongs to.
        grounds.sort_by_key(|ground| std::cmp::Reverse(ground.path.components().count()));
        Ok(Self { grounds, has_stubs, made: BTreeMap::new() })
    }

    pub(crate) fn has_stubs(&self) -> bool {
        self.has_stubs
    }

    pub(crate) fn is_ground(&self, mount: u64) -> bool {
        self.grounds.iter().any(|ground| ground.id == mount)
    }

    /// Whether the command itself can create names on this ground.
    pub(crate) fn is_writable_ground(&self, mount: u64) -> bool {
        self.grounds.iter().any(|ground| ground.id == mount && ground.is_writable)
    }

    /// Creates a file with this content, or a directory, on the ground of a path, whatever is mounted there.
    /// The command owns it.
    pub(crate) fn make_own(
        &mut self,
        path: &Path,
        seen: &HostFile,
        content: Option<&OwnedFd>,
    ) -> Result<OwnedFd> {
        let name = self.name(path)?;
        let (parent, last) = self.parent(&name)?;
        let last = Path::new(last);
        let mode = Mode::from_raw_mode(seen.stat.st_mode & 0o777);
        if let Some(content) = content {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let copy = rustix::fs::openat(&parent, last, flags, mode | Mode::RUSR | Mode::WUSR);
            let copy = copy.at("open", path)?;
            self.remember(&name, &parent)?;
            copy_content(content, &copy).at("write", path)?;
        } else {
            match rustix::fs::mkdirat(&parent, last, mode | Mode::RWXU) {
                Ok(()) => self.remember(&name, &parent)?,
                // It was created for something below it.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno).at("mkdir", path),
            }
        }
        let made = open_on_mount(&parent, last, OFlags::PATH | OFlags::NOFOLLOW);
        made.map_err(|error| SysError { subject: path.display().to_string(), ..error })
    }

    /// What is on the ground of a path, whatever is mounted there.
    pub(crate) fn open_own(&self, path: &Path) -> Result<OwnedFd> {
        let name = self.name(path)?;
        let workbench = &self.grounds[name.ground].workbench;
        open_on_mount(workbench, &name.path, OFlags::PATH | OFlags::NOFOLLOW)
    }

    fn name(&self, path: &Path) -> Result<Name> {
        let on = |(ground, found): (usize, &OwnFilesystem)| {
            let rest = path.strip_prefix(&found.path).ok()?;
            rest.file_name().map(|_| Name { ground, path: rest.to_owned() })
        };
        self.grounds
            .iter()
            .enumerate()
            .find_map(on)
            .ok_or_else(|| SysError::new("openat2", path.display().to_string(), Errno::XDEV))
    }

    /// Creates a mount point, and opens it as the sandbox sees it.
    pub(crate) fn make_place(&mut self, path: &Path, kind: FileKind) -> Result<OwnedFd> {
        let name = self.make_name(path, kind)?;
        let seen = open_on_mount(
            &self.grounds[name.ground].root,
            &name.path,
            OFlags::PATH | OFlags::NOFOLLOW,
        );
        seen.map_err(|error| SysError { subject: path.display().to_string(), ..error })
    }

    /// Creates a mount point, or finds it created already, below a directory of the ground that another mount
    /// covers. `covered` is that directory, `top` its path. None if something is mounted there.
    pub(crate) fn make_covered_place(
        &mut self,
        (covered, top): (&OwnedFd, &Path),
        path: &Path,
        kind: FileKind,
    ) -> Result<Option<OwnedFd>> {
        let below = path.strip_prefix(top);
        let below =
            below.map_err(|_| SysError::new("openat2", path.display().to_string(), Errno::XDEV))?;
        let open = || open_on_mount(covered, below, OFlags::PATH | OFlags::NOFOLLOW);
        let opened = match open() {
            Err(error) if error.errno == Errno::NOENT => {
                self.make_name(path, kind)?;
                open()
            }
            opened => opened,
        };
        match opened {
            Err(error) if error.errno == Errno::XDEV => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn make_name(&mut self, path: &Path, kind: FileKind) -> Result<Name> {
        let name = self.name(path)?;
        let (parent, last) = self.parent(&name)?;
        let last = Path::new(last);
        match kind {
            FileKind::Directory => {
                rustix::fs::mkdirat(&parent, last, DIRECTORY_MODE).at("mkdir", path)?;
            }
            _ => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                rustix::fs::openat(&parent, last, flags, PLACE_MODE).at("open", path)?;
            }
        }
        self.remember(&name, &parent)?;
        Ok(name)
    }

    /// Creates a link of the host on the ground, whatever covers that. One that exists is left alone.
    pub(crate) fn make_covered_link(&mut self, path: &Path, text: &Path) -> Result<()> {
        let name = self.name(path)?;
        let (parent, last) = self.parent(&name)?;
        match rustix::fs::symlinkat(text, &parent, Path::new(last)) {
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno).at("symlink", path),
            Ok(()) => self.remember(&name, &parent),
        }
    }

    /// Creates a directory, if it does not exist.
    pub(crate) fn make_directory(&mut self, root: &OwnedFd, path: &Path) -> Result<()> {
        match open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY) {
            Err(error) if error.errno == Errno::NOENT => {
                self.make_place(path, FileKind::Directory).map(drop)
            }
            // That it was asked for by us keeps it there, where the gate's file system has it.
            there => rustix::fs::fstat(there?).at("fstat", path).map(drop),
        }
    }

    /// Creates a link of the host, if it does not exist.
    pub(crate) fn make_link(&mut self, root: &OwnedFd, path: &Path, text: &Path) -> Result<()> {
        let taken = || Err(SysError::new("symlink", path.display().to_string(), Errno::EXIST));
        match open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW) {
            // The gate's file system has the link of the host. Whoever waits to read it holds the kernel's lock on its text.
            Ok(there) if self.has_stubs => {
                return if is_link(&there)? { Ok(()) } else { taken() };
            }
            Ok(there) => {
                let same = rustix::fs::readlinkat(&there, c"", Vec::new())
                    .is_ok_and(|found| found.as_bytes() == text.as_os_str().as_bytes());
                return if same { Ok(()) } else { taken() };
            }
            Err(error) if error.errno == Errno::NOENT => {}
            Err(error) => return Err(error),
        }
        let name = self.name(path)?;
        let (parent, last) = self.parent(&name)?;
        rustix::fs::symlinkat(text, &parent, Path::new(last)).at("symlink", path)?;
        self.remember(&name, &parent)
    }

    /// The directory of a name, created if necessary.
    fn parent<'n>(&mut self, name: &'n Name) -> Result<(OwnedFd, &'n OsStr)> {
        let (Some(parent), Some(last)) = (name.path.parent(), name.path.file_name()) else {
            return Err(SysError::new("openat2", name.path.display().to_string(), Errno::INVAL));
        };
        let workbench = &self.grounds[name.ground].workbench;
        let from = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match open_on_mount(workbench, from, DIRECTORY) {
            Err(error) if error.errno == Errno::NOENT => {}
            found => return found.map(|found| (found, last)),
        }
        let mut directory = open_on_mount(workbench, Path::new("."), DIRECTORY)?;
        let mut path = PathBuf::new();
        for part in parent.components() {
            path.push(part);
            let part = Path::new(part.as_os_str());
            directory = match open_on_mount(&directory, part, DIRECTORY) {
                Err(error) if error.errno == Errno::NOENT => {
                    rustix::fs::mkdirat(&directory, part, DIRECTORY_MODE).at("mkdir", &path)?;
                    self.remember(&Name { ground: name.ground, path: path.clone() }, &directory)?;
                    open_on_mount(&directory, part, DIRECTORY)?
                }
                found => found?,
            };
        }
        Ok((directory, last))
    }

    fn remember(&mut self, name: &Name, parent: &OwnedFd) -> Result<()> {
        let last = Path::new(name.path.file_name().unwrap_or_default());
        let (inode, is_directory) = inode(parent, last)?;
        self.made.insert(name.clone(), Made { is_directory, inode, users: 0 });
        Ok(())
    }

    /// Records a use of these names and the directories above them, as far as we created them; released with
    /// [`Self::release`].
    pub(crate) fn hold<'p>(&mut self, paths: impl IntoIterator<Item = &'p Path>) -> Vec<Name> {
        let mut held = Vec::new();
        for path in paths {
            let Ok(Name { ground, path }) = self.name(path) else { continue };
            for above in path.ancestors() {
                let name = Name { ground, path: above.to_owned() };
                if let Some(made) = self.made.get_mut(&name) {
                    made.users += 1;
                    held.push(name);
                }
            }
        }
        held
    }

    /// Removes what is no longer used.
    pub(crate) fn release(&mut self, held: Vec<Name>) {
        for name in &held {
            if let Some(made) = self.made.get_mut(name) {
                made.users = made.users.saturating_sub(1);
            }
        }
        self.remove_unused(held);
    }

    /// Removes what was created for a graft that failed.
    pub(crate) fn clear(&mut self) {
        self.remove_unused(self.made.keys().cloned().collect());
    }

    /// Deepest first. What the command has put in its place, or into it, belongs to the command.
    fn remove_unused(&mut self, mut names: Vec<Name>) {
        names.sort_unstable();
        for name in names.iter().rev() {
            if self.made.get(name).is_some_and(|made| made.users == 0)
                && let Some(made) = self.made.remove(name)
            {
                self.remove(name, &made);
            }
        }
    }

    fn remove(&self, name: &Name, made: &Made) {
        let workbench = &self.grounds[name.ground].workbench;
        let parent = name.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let Ok(parent) = open_on_mount(workbench, parent.unwrap_or(Path::new(".")), DIRECTORY)
        else {
            return;
        };
        let last = Path::new(name.path.file_name().unwrap_or_default());
        if inode(&parent, last).is_ok_and(|(found, _)| found == made.inode) {
            let flags = if made.is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            // A directory that the command has put something into stays.
            let _ = rustix::fs::unlinkat(&parent, last, flags);
        }
    }
}

impl OwnFilesystem {
    fn new(path: PathBuf, root: OwnedFd, store: Option<&OwnedFd>) -> Result<Self> {
        let workbench = match store {
            Some(store) => open_on_mount(store, Path::new("."), DIRECTORY)?,
            None => {
                let workbench = mounts::open_tree(&root, Path::new(""), Recursion::Single)?;
                let writable =
                    MountAttr { clear: MountAttrs::RDONLY, private: true, ..MountAttr::default() };
                mounts::mount_setattr(&workbench, Recursion::Single, &writable)?;
                workbench
            }
        };
        let seen = rustix::fs::fstatvfs(&root).call("fstatfs")?;
        let is_writable = !seen.f_flag.contains(StatVfsMountFlags::RDONLY);
        Ok(Self { path, id: mounts::mount_id(&root)?, root, workbench, is_writable })
    }
}

fn copy_content(from: &OwnedFd, to: &OwnedFd) -> std::result::Result<(), Errno> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = rustix::io::read(from, &mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(to, rest)?..];
        }
    }
}

/// Whether this is the root of a mount of this kind: the command cannot mount, so the plan put it there.
fn is_own_mount(directory: impl AsFd, magic: i64) -> Result<bool> {
    let found =
        rustix::fs::statx(directory.as_fd(), c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
            .call("statx")?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        && mounts::fstatfs_magic(directory)? == magic)
}

fn is_link(file: &OwnedFd) -> Result<bool> {
    let found = rustix::fs::fstat(file).call("fstat")?;
    Ok(rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Symlink)
}

fn inode(parent: &OwnedFd, name: &Path) -> Result<(u64, bool)> {
    let found =
        rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).at("newfstatat", name)?;
    let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
    Ok((found.st_ino, kind == rustix::fs::FileType::Directory))
}
