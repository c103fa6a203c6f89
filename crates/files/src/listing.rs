//! The entries of a directory and of those below it, a part at a time: a directory may have millions of them, and no more than
//! one message is in memory. By descriptors, so that no directory that is swapped for a link meanwhile leads elsewhere.

use crate::names::At as _;
use crate::protocol::{FileError, FileInfo, Listing, MAX_LISTED};
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{AtFlags, CWD, Dir, FileType as KernelType, openat, readlinkat, statat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// What an entry takes besides its path.
const REST_OF_ENTRY: usize = 64;

/// As deep as a listing goes: each level is an open descriptor.
const MAX_DEPTH: usize = 64;

#[derive(Debug)]
pub(crate) struct Walk {
    depth: usize,
    /// The directories on the way, the innermost last.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    directory: OwnedFd,
    entries: Dir,
    path: PathBuf,
}

impl Walk {
    pub(crate) fn new(path: &Path, depth: u32) -> Result<(Self, FileInfo), FileError> {
        let directory = openat(CWD, path, DIRECTORY, Mode::empty()).at("open", path)?;
        let stat = rustix::fs::fstat(&directory).at("stat", path)?;
        let entries = Dir::read_from(&directory).at("open", path)?;
        let level = Level { directory, entries, path: PathBuf::new() };
        let depth = match usize::try_from(depth) {
            Ok(depth @ 1..=MAX_DEPTH) => depth,
            _ => return Err(Errno::INVAL).at("list that many levels of", path),
        };
        Ok((Self { depth, levels: vec![level] }, FileInfo::new(&stat, None)))
    }

    /// As many as one message has room for; none at the end.
    pub(crate) fn next_entries(&mut self) -> Result<Vec<Listing>, FileError> {
        let mut listed = Vec::new();
        let mut size = 0;
        while size < MAX_LISTED {
            let Some(entry) = self.next_entry()? else { break };
            let target = entry.info.target.as_ref().map_or(0, |target| target.as_os_str().len());
            size += entry.path.as_os_str().len() + target + REST_OF_ENTRY;
            listed.push(entry);
        }
        Ok(listed)
    }

    fn next_entry(&mut self) -> Result<Option<Listing>, FileError> {
        while let Some(level) = self.levels.last_mut() {
            let Some(entry) = level.entries.read() else {
                self.levels.pop();
                continue;
            };
            let entry = entry.at("list", &level.path)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = level.path.join(name);
            let stat = match statat(&level.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Gone meanwhile, or a name without a file that may be looked at.
                Err(Errno::NOENT | Errno::ACCESS) => continue,
                Err(errno) => return Err(errno).at("stat", &path),
            };
            let kind = KernelType::from_raw_mode(stat.st_mode);
            let target = (kind == KernelType::Symlink)
                .then(|| target_at(level.directory.as_fd(), name))
                .flatten();
            let below = if kind == KernelType::Directory && self.levels.len() < self.depth {
                self.enter(name, &path)?
            } else {
                None
            };
            self.levels.extend(below);
            return Ok(Some(Listing { path, info: FileInfo::new(&stat, target) }));
        }
        Ok(None)
    }

    /// A directory that may not be opened is listed, and what is in it is not.
    fn enter(&self, name: &OsStr, path: &Path) -> Result<Option<Level>, FileError> {
        let Some(above) = self.levels.last() else { return Ok(None) };
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        let directory = match openat(&above.directory, name, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                return Ok(None);
            }
            Err(errno) => return Err(errno).at("open", path),
        };
        let entries = Dir::read_from(&directory).at("open", path)?;
        Ok(Some(Level { directory, entries, path: path.to_owned() }))
    }
}

fn target_at(directory: impl AsFd, name: &OsStr) -> Option<PathBuf> {
    let target = readlinkat(directory, name, Vec::new()).ok()?;
    Some(OsString::from_vec(target.into_bytes()).into())
}
