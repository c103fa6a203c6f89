//! How much is below some directories: every file once whatever its names, in turns that each take no longer
//! than they may. Other processes change the tree meanwhile, and may mean harm: must never follow a
//! link, leave the mount it started on, or need memory without bounds.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use palisade_sys::beneath::open_on_mount;
use palisade_sys::{Errno, OFlags, SysError};
use rustix::fs::{AtFlags, Dir, FileType, Stat};

use crate::error::UsageError;
use crate::held::{BLOCK, FileId};
use crate::places::Held;

/// More directories than may wait to be listed. A path of one is at most 4 KiB.
const MAX_PENDING: usize = 1 << 18;

/// More files with several names than are remembered; each further name counts as a file.
const MAX_LINKED: usize = 1 << 20;

/// How many entries are looked at between two looks at the clock.
const ENTRIES_A_LOOK: u32 = 32;

/// A directory whose content is counted.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    directory: OwnedFd,
    pub(crate) device: u64,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self, UsageError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |errno| SysError::new("open", path.display().to_string(), errno);
        let directory = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map_err(failed)?;
        let device = rustix::fs::fstat(&directory).map_err(failed)?.st_dev;
        Ok(Self { path: path.to_owned(), directory, device })
    }

    /// Whether a walk of this one comes to `other`, too.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let Ok(below) = other.path.strip_prefix(&self.path) else { return false };
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        open_on_mount(&self.directory, below, OFlags::PATH | OFlags::DIRECTORY).is_ok()
    }
}

/// One walk over all roots.
#[derive(Debug)]
pub(crate) struct Walk {
    pending: Vec<Place>,
    listing: Option<Listing>,
    linked: HashSet<FileId>,
    /// Counted elsewhere: files without a name that could get one before we come by.
    counted: HashMap<FileId, u64>,
    sum: Held,
    /// A directory of the command's own that it closed.
    pub(crate) closed: Option<PathBuf>,
}

#[derive(Debug)]
struct Place {
    root: usize,
    /// Below the root; empty for the root itself.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Listing {
    place: Place,
    entries: Dir,
}

impl Walk {
    /// A walk over the first `roots` roots that passes over files in `counted`.
    pub(crate) fn new(roots: usize, counted: HashMap<FileId, u64>) -> Self {
        let pending = (0..roots).rev().map(|root| Place { root, path: Vec::new() }).collect();
        Self {
            pending,
            listing: None,
            linked: HashSet::new(),
            counted,
            sum: Held::default(),
            closed: None,
        }
    }

    /// Goes on until `deadline`, or to the end. The sum when everything was walked.
    pub(crate) fn advance(
        &mut self,
        roots: &[Root],
        deadline: Option<Instant>,
    ) -> Result<Option<Held>, UsageError> {
        let mut until_clock = ENTRIES_A_LOOK;
        loop {
            if self.listing.is_none() {
                let Some(place) = self.pending.pop() else { return Ok(Some(self.sum)) };
                self.listing = self.open(roots, place)?;
            }
            self.next_entry(roots)?;
            until_clock -= 1;
            if until_clock == 0 {
                until_clock = ENTRIES_A_LOOK;
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(None);
                }
            }
        }
    }

    fn open(&mut self, roots: &[Root], place: Place) -> Result<Option<Listing>, UsageError> {
        let Some(root) = roots.get(place.root) else { return Ok(None) };
        let below = if place.path.is_empty() { b".".as_slice() } else { &place.path };
        let below = Path::new(OsStr::from_bytes(below));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let directory = match open_on_mount(&root.directory, below, flags) {
            Ok(directory) => directory,
            Err(error) => match error.errno {
                // Removed, replaced, or another mount.
                Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV => return Ok(None),
                Errno::ACCESS | Errno::PERM => {
                    if is_ours_to_fill(root, below) {
                        self.closed = Some(root.path.join(below));
                    }
                    return Ok(None);
                }
                Errno::NAMETOOLONG => return Err(UsageError::TooLarge(root.path.clone())),
                _ => return Err(error.into()),
            },
        };
        let failed =
            |errno| SysError::new("open", root.path.join(below).display().to_string(), errno);
        let stat = rustix::fs::fstat(&directory).map_err(failed)?;
        if place.path.is_empty() {
            if stat.st_nlink == 0 {
                return Err(UsageError::Vanished(root.path.clone()));
            }
            self.count(&stat);
        }
        let entries = Dir::new(directory).map_err(failed)?;
        Ok(Some(Listing { place, entries }))
    }

    fn next_entry(&mut self, roots: &[Root]) -> Result<(), UsageError> {
        let Some(listing) = &mut self.listing else { return Ok(()) };
        let root = listing.place.root;
        let entry = match listing.entries.read() {
            // A directory that was removed while it was listed ends with ENOENT.
            None | Some(Err(Errno::NOENT)) => {
                self.listing = None;
                return Ok(());
            }
            Some(Ok(entry)) => entry,
            Some(Err(errno)) => {
                let path = Path::new(OsStr::from_bytes(&listing.place.path)).display().to_string();
                return Err(SysError::new("getdents", path, errno).into());
            }
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return Ok(());
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let looked =
            listing.entries.fd().and_then(|directory| rustix::fs::statat(directory, name, flags));
        let stat = match looked {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            // May be listed, not entered. If it is the command's own, it may be filled all the same.
            Err(Errno::ACCESS) => {
                let below = Path::new(OsStr::from_bytes(&listing.place.path));
                if let Some(root) = roots.get(root).filter(|root| is_ours_to_fill(root, below)) {
                    self.closed = Some(root.path.join(below));
                }
                self.listing = None;
                return Ok(());
            }
            Err(errno) => {
                let path = name.to_string_lossy().into_owned();
                return Err(SysError::new("fstatat", path, errno).into());
            }
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let mut path = listing.place.path.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            if self.pending.len() >= MAX_PENDING {
                let root = roots.get(root).map(|root| root.path.clone());
                return Err(UsageError::TooLarge(root.unwrap_or_default()));
            }
            self.pending.push(Place { root, path });
        }
        self.count(&stat);
        Ok(())
    }

    fn count(&mut self, stat: &Stat) {
        let file = FileId { device: stat.st_dev, inode: stat.st_ino };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        // A directory has one name; its link count tells of its subdirectories.
        if !is_directory && stat.st_nlink > 1 {
            if self.linked.contains(&file) {
                return;
            }
            if self.linked.len() < MAX_LINKED {
                self.linked.insert(file);
            }
        }
        if self.counted.contains_key(&file) {
            return;
        }
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        self.sum.bytes = self.sum.bytes.saturating_add(blocks.saturating_mul(BLOCK));
        self.sum.inodes = self.sum.inodes.saturating_add(1);
    }
}

/// Whether the command could have put something into a directory that we can not list: it is our user's, who
/// can open and close it at will, or everybody may write there. Others' directories are closed to the
/// command as they are to us.
fn is_ours_to_fill(root: &Root, below: &Path) -> bool {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let Ok(directory) = open_on_mount(&root.directory, below, OFlags::PATH | OFlags::DIRECTORY)
    else {
        return false;
    };
    let Ok(stat) = rustix::fs::fstat(&directory) else { return false };
    stat.st_uid == rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
