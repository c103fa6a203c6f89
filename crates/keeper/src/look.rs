//! Finds what is at a path of the host by walking it component by component from the root's descriptor.
//!
//! Every link that is followed is reported with its target: links are created inside as well, and a question is
//! about where they lead. Must never enter `/proc`, `/sys` or `/dev`, where paths are not files of a user, nor
//! trust magic links there. Must never trigger an automount: the command chose the name, and `/net/NAME` would
//! contact that machine before anybody was asked.

use crate::message::FileKind;
use palisade_sys::beneath::{open_beneath, open_if_known};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result, SysError, mounts};
use rustix::fs::{FileType, Stat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// As the kernel (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
const CLOSED: [&str; 3] = ["proc", "sys", "dev"];
/// `linux/magic.h`: procfs, sysfs and devpts may be mounted elsewhere, too.
pub(crate) const CLOSED_MAGIC: [i64; 4] = [0x9fa0, 0x6265_6572, 0x1cd1, AUTOFS_MAGIC];
/// An automount mounts on lookup.
const AUTOFS_MAGIC: i64 = 0x0187;

const ENTRY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The host's tree.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) root: OwnedFd,
}

/// What was found, held by its descriptor.
#[derive(Debug)]
pub(crate) struct HostFile {
    pub(crate) file: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) stat: Stat,
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

impl Host {
    /// None where there is nothing, or nothing we may see.
    pub(crate) fn look(&self, path: &Path, follow: bool) -> Result<Option<HostFile>> {
        match self.walk(path, follow) {
            // A name that is too long or contains a NUL names nothing.
            Err(error)
                if matches!(
                    error.errno,
                    Errno::NOENT
                        | Errno::NOTDIR
                        | Errno::ACCESS
                        | Errno::LOOP
                        | Errno::NAMETOOLONG
                        | Errno::INVAL
                ) =>
            {
                Ok(None)
            }
            walked => walked,
        }
    }

    fn walk(&self, path: &Path, follow: bool) -> Result<Option<HostFile>> {
        if !path.is_absolute() {
            return Ok(None);
        }
        let bytes = path.as_os_str().as_bytes();
        let is_directory_meant = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        let seen = match self.straight(path)? {
            Some(seen) => Some(seen),
            None => Walk::new(self.root.as_fd(), path)?.run(follow || is_directory_meant)?,
        };
        let Some(seen) = seen else { return Ok(None) };
        if is_closed(&seen.path)
            || CLOSED_MAGIC.contains(&mounts::fstatfs_magic(&seen.file)?)
            || (is_directory_meant && seen.kind != FileKind::Directory)
        {
            return Ok(None);
        }
        Ok(Some(seen))
    }

    /// The whole path in one call, if it contains no link, no `..` and no new mount.
    fn straight(&self, path: &Path) -> Result<Option<HostFile>> {
        if path.components().any(|part| part == Component::ParentDir) || is_closed(path) {
            return Ok(None);
        }
        match open_if_known(&self.root, path) {
            // Without `.`, doubled and trailing slashes.
            Ok(file) => HostFile::of(file, path.components().collect(), Vec::new()).map(Some),
            Err(error) if matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {
                Err(error)
            }
            // A link, a name that has to be looked up first, or a kernel without support.
            Err(_) => Ok(None),
        }
    }

    /// Whether git would read a file as a hook or a setting: its content is judged only in trees that the
    /// broker knows as a whole.
    pub(crate) fn is_in_git_directory(&self, seen: &HostFile) -> bool {
        let has = |directory: &HostFile, name: &str| {
            rustix::fs::statat(&directory.file, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        let is_git = |directory: &HostFile| {
            (has(directory, "objects") && has(directory, "refs"))
                || (has(directory, "HEAD") && has(directory, "commondir"))
        };
        // For a directory, what is created in it counts.
        let above = seen.path.ancestors().skip(usize::from(seen.kind != FileKind::Directory));
        above.filter_map(|path| self.directory(path).ok()).any(|directory| is_git(&directory))
    }

    /// An error if the path no longer leads to what was found: a person may take minutes to answer, and what is
    /// written to a file that was removed or replaced meanwhile would be lost.
    pub(crate) fn still_has(&self, seen: &HostFile) -> Result<()> {
        match seen.path.file_name() {
            Some(_) => self.directory_of(seen).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The directory that something was found in, if it is still there.
    pub(crate) fn directory_of(&self, seen: &HostFile) -> Result<HostFile> {
        let gone = || SysError::new("openat2", seen.path.display().to_string(), Errno::NOENT);
        let (parent, name) = seen.path.parent().zip(seen.path.file_name()).ok_or_else(gone)?;
        let directory = self.directory(parent)?;
        let stays = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(&directory.file, Path::new(name), stays)
            .at("newfstatat", &seen.path)?;
        let is_same = (found.st_dev, found.st_ino) == (seen.stat.st_dev, seen.stat.st_ino);
        is_same.then_some(directory).ok_or_else(gone)
    }

    /// A directory by its real path; a link anywhere in it is an error.
    pub(crate) fn directory(&self, path: &Path) -> Result<HostFile> {
        if is_closed(path) || path.components().any(|part| part == Component::ParentDir) {
            return Err(SysError::new("openat2", path.display().to_string(), Errno::ACCESS));
        }
        let file = open_beneath(&self.root, path, OFlags::PATH | OFlags::DIRECTORY)?;
        HostFile::of(file, path.components().collect(), Vec::new())
    }
}

impl HostFile {
    fn of(file: OwnedFd, path: PathBuf, links: Vec<(PathBuf, PathBuf)>) -> Result<Self> {
        let stat = rustix::fs::fstat(&file).at("fstat", &path)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Link,
            _ => FileKind::Special,
        };
        Ok(Self { file, path, kind, stat, links })
    }
}

/// Whether a path, real so far, is never looked at.
fn is_closed(path: &Path) -> bool {
    let mut parts = path.components().skip(1);
    parts.next().is_some_and(|first| CLOSED.iter().any(|closed| first.as_os_str() == *closed))
}

/// A walk in progress.
struct Walk<'h> {
    root: BorrowedFd<'h>,
    root_device: u64,
    /// The directories of the path, from below the root: `..` leads to the previous one, whatever was renamed
    /// meanwhile.
    at: Vec<WalkPosition>,
    /// The remaining names, the next one last.
    rest: Vec<OsString>,
    links: Vec<(PathBuf, PathBuf)>,
}

struct WalkPosition {
    name: OsString,
    directory: OwnedFd,
    device: u64,
    mounts_on_demand: bool,
}

impl<'h> Walk<'h> {
    fn new(root: BorrowedFd<'h>, path: &Path) -> Result<Self> {
        let root_device = rustix::fs::fstat(root).call("fstat")?.st_dev;
        let mut walk =
            Self { root, root_device, at: Vec::new(), rest: Vec::new(), links: Vec::new() };
        walk.go_on_with(path);
        Ok(walk)
    }

    fn go_on_with(&mut self, path: &Path) {
        if path.is_absolute() {
            self.at.clear();
        }
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        self.rest.extend(names);
    }

    fn run(mut self, follow: bool) -> Result<Option<HostFile>> {
        while let Some(name) = self.rest.pop() {
            if name == ".." {
                self.at.pop();
                continue;
            }
            if self.at.is_empty() && CLOSED.iter().any(|closed| name == *closed) {
                return Ok(None);
            }
            let is_last = self.rest.is_empty();
            match self.enter(&name, is_last)? {
                Entered::Through(place) => self.at.push(place),
                Entered::Link(_, _) if self.links.len() == MAX_LINKS => {
                    return Err(Errno::LOOP).at("openat", &self.path());
                }
                Entered::Link(link, text) => {
                    let place = self.path().join(&name);
                    self.links.push((place.clone(), text.clone()));
                    if is_last && !follow {
                        return HostFile::of(link, place, self.links).map(Some);
                    }
                    self.go_on_with(&text);
                }
                Entered::Last(file) => {
                    return HostFile::of(file, self.path().join(&name), self.links).map(Some);
                }
            }
        }
        let path = self.path();
        let file = match self.at.pop() {
            Some(place) => place.directory,
            None => self.root.try_clone_to_owned().at("dup", &path)?,
        };
        HostFile::of(file, path, self.links).map(Some)
    }

    fn enter(&self, name: &OsStr, is_last: bool) -> Result<Entered> {
        let path = Path::new(name);
        let (from, device, mounts_on_demand) =
            self.at.last().map_or((self.root, self.root_device, false), |place| {
                (place.directory.as_fd(), place.device, place.mounts_on_demand)
            });
        // Not as a directory: as the last component, it triggers no automount.
        let file = if mounts_on_demand {
            open_if_known(from, path).map_err(|error| SysError { errno: Errno::NOENT, ..error })?
        } else {
            rustix::fs::openat(from, path, ENTRY, Mode::empty()).at("openat", path)?
        };
        let stat = rustix::fs::fstat(&file).at("fstat", path)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let mounts_on_demand = if stat.st_dev == device {
                    mounts_on_demand
                } else {
                    mounts::fstatfs_magic(&file)? == AUTOFS_MAGIC
                };
                let (name, device) = (name.to_owned(), stat.st_dev);
                Ok(Entered::Through(WalkPosition {
                    name,
                    directory: file,
                    device,
                    mounts_on_demand,
                }))
            }
            FileType::Symlink => {
                let text = rustix::fs::readlinkat(&file, c"", Vec::new()).at("readlinkat", path)?;
                Ok(Entered::Link(file, OsString::from_vec(text.into_bytes()).into()))
            }
            _ if is_last => Ok(Entered::Last(file)),
            _ => Err(Errno::NOTDIR).at("openat", path),
        }
    }

    /// Where we are.
    fn path(&self) -> PathBuf {
        let mut path = PathBuf::from("/");
        path.extend(self.at.iter().map(|place| &place.name));
        path
    }
}

enum Entered {
    Through(WalkPosition),
    Link(OwnedFd, PathBuf),
    Last(OwnedFd),
}
