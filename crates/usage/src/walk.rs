//! Measures how much is below some directories: every file once whatever its names, in slices of bounded time. Other
//! processes change the tree meanwhile and may be malicious: must never follow a link, leave the mount it started on,
//! wait for another mount's server, or need unbounded memory.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use palisade_sys::beneath::open_on_mount;
use palisade_sys::{Errno, OFlags, SysError};
use rustix::fs::{AtFlags, Dir, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};

use crate::disk_use::DiskUse;
use crate::disk_use::{BLOCK, FileId};
use crate::error::{Result, UsageError};

/// The maximum memory for directories that are still to be listed. The command chooses the names, and a path can have 4
/// KiB.
const MAX_PENDING_BYTES: usize = 16 << 20;

/// The maximum number of remembered files with several names; beyond it, each name counts as a file.
const MAX_LINKED: usize = 1 << 20;

/// How many entries are read between two reads of the clock.
const ENTRIES_A_LOOK: u32 = 32;

/// A directory whose content is counted.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) directory: OwnedFd,
    pub(crate) device: u64,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |errno| SysError::new("open", path.display().to_string(), errno);
        let directory = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map_err(failed)?;
        let device = rustix::fs::fstat(&directory).map_err(failed)?.st_dev;
        Ok(Self { path: path.to_owned(), directory, device })
    }

    /// Whether a walk of this one also reaches `other`.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let Ok(below) = other.path.strip_prefix(&self.path) else { return false };
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        open_on_mount(&self.directory, below, OFlags::PATH | OFlags::DIRECTORY).is_ok()
    }
}

/// One walk over all roots.
#[derive(Debug)]
pub(crate) struct Walk {
    pending: Vec<PendingDirectory>,
    pending_bytes: usize,
    listing: Option<Listing>,
    linked: HashSet<FileId>,
    /// Counted elsewhere: files without a name that could get one before the walk reaches it.
    counted: HashMap<FileId, u64>,
    sum: DiskUse,
    /// For a walk during which others change the tree: when that began, and how much of the sum they may have made.
    since: Option<SystemTime>,
    changed: DiskUse,
    /// A directory of the command's own that it made inaccessible.
    pub(crate) closed: Option<PathBuf>,
}

#[derive(Debug)]
struct PendingDirectory {
    root: usize,
    /// Relative to the root; empty for the root itself.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Listing {
    place: PendingDirectory,
    entries: Dir,
}

impl Walk {
    /// A walk over the first `roots` roots that skips files in `counted`.
    pub(crate) fn new(roots: usize, counted: HashMap<FileId, u64>) -> Self {
        let pending =
            (0..roots).rev().map(|root| PendingDirectory { root, path: Vec::new() }).collect();
        Self {
            pending,
            pending_bytes: 0,
            listing: None,
            linked: HashSet::new(),
            counted,
            sum: DiskUse::default(),
            since: None,
            changed: DiskUse::default(),
            closed: None,
        }
    }

    /// A walk that separates changes since `since` from what existed before. It remembers every file by its inode, even
    /// with a single name: what is moved ahead of the walk must not count twice.
    pub(crate) fn since(roots: usize, since: SystemTime) -> Self {
        Self { since: Some(since), ..Self::new(roots, HashMap::new()) }
    }

    /// What may have been created or filled since then, as part of the sum: all of a changed file, and those inodes
    /// that are not known to be older.
    pub(crate) fn changed(&self) -> DiskUse {
        self.changed
    }

    /// Continues for this many entries, or to the end.
    pub(crate) fn advance_entries(
        &mut self,
        roots: &[Root],
        entries: u32,
    ) -> Result<Option<DiskUse>> {
        for _ in 0..entries {
            if !self.step(roots)? {
                return Ok(Some(self.sum));
            }
        }
        Ok(None)
    }

    /// Continues until `deadline`, or to the end. Returns the sum when everything was walked.
    pub(crate) fn advance(
        &mut self,
        roots: &[Root],
        deadline: Option<Instant>,
    ) -> Result<Option<DiskUse>> {
        let mut until_clock = ENTRIES_A_LOOK;
        loop {
            if !self.step(roots)? {
                return Ok(Some(self.sum));
            }
            until_clock -= 1;
            if until_clock == 0 {
                until_clock = ENTRIES_A_LOOK;
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(None);
                }
            }
        }
    }

    /// Processes one entry, or the next directory. Returns whether there was one.
    fn step(&mut self, roots: &[Root]) -> Result<bool> {
        if self.listing.is_none() {
            let Some(place) = self.pending.pop() else { return Ok(false) };
            self.pending_bytes = self.pending_bytes.saturating_sub(place.size());
            self.listing = self.open(roots, place)?;
        }
        self.next_entry(roots)?;
        Ok(true)
    }

    /// The root that an incomplete walk has reached.
    pub(crate) fn came_to<'r>(&self, roots: &'r [Root]) -> Option<&'r Root> {
        let listing = self.listing.as_ref().map(|listing| &listing.place);
        roots.get(listing.or(self.pending.last())?.root)
    }

    fn open(&mut self, roots: &[Root], place: PendingDirectory) -> Result<Option<Listing>> {
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
        if place.path.is_empty() {
            let stat = stat_open(&directory).map_err(failed)?;
            if stat.stx_nlink == 0 {
                return Err(UsageError::Vanished(root.path.clone()));
            }
            self.count(&stat);
        }
        let entries = Dir::new(directory).map_err(failed)?;
        Ok(Some(Listing { place, entries }))
    }

    fn next_entry(&mut self, roots: &[Root]) -> Result<()> {
        let Some(listing) = &mut self.listing else { return Ok(()) };
        let root = listing.place.root;
        let entry = match listing.entries.read() {
            // Listing a directory that is removed meanwhile ends with ENOENT.
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
        let kind = entry.file_type();
        let looked = listing.entries.fd().and_then(|directory| look(directory, name, kind));
        let stat = match looked {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(()),
            Err(Errno::NOENT) => return Ok(()),
            // It may be listed but not searched. If it belongs to the command, it may still be filled.
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
                return Err(SysError::new("statx", path, errno).into());
            }
        };
        let was_walked = self.since.is_some() && self.linked.contains(&id_of(&stat));
        // An automount point is another mount, or will be.
        if is_directory(&stat)
            && !was_walked
            && !stat.stx_attributes.contains(StatxAttributes::AUTOMOUNT)
        {
            let mut path = listing.place.path.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            let place = PendingDirectory { root, path };
            self.pending_bytes = self.pending_bytes.saturating_add(place.size());
            if self.pending_bytes > MAX_PENDING_BYTES {
                let root = roots.get(root).map(|root| root.path.clone());
                return Err(UsageError::TooLarge(root.unwrap_or_default()));
            }
            self.pending.push(place);
        }
        self.count(&stat);
        Ok(())
    }

    fn count(&mut self, stat: &Statx) {
        let file = id_of(stat);
        let is_changed = self.since.is_some_and(|since| !is_before(stat.stx_ctime, since));
        // A directory has one name; its link count includes its subdirectories.
        if self.since.is_some() || !is_directory(stat) && stat.stx_nlink > 1 {
            if self.linked.contains(&file) {
                return;
            }
            if self.linked.len() < MAX_LINKED {
                self.linked.insert(file);
            } else if is_changed {
                // It may have been moved from where it was already counted.
                return;
            }
        }
        if self.counted.contains_key(&file) {
            return;
        }
        let held = DiskUse { bytes: stat.stx_blocks.saturating_mul(BLOCK), inodes: 1 };
        self.sum = self.sum.plus(held);
        if is_changed {
            let tells_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
            let is_older =
                tells_birth && self.since.is_some_and(|since| is_before(stat.stx_btime, since));
            let inodes = u64::from(!is_older);
            self.changed = self.changed.plus(DiskUse { inodes, ..held });
        }
    }
}

fn id_of(stat: &Statx) -> FileId {
    let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
    FileId { device, inode: stat.stx_ino }
}

/// An unknown time is not before anything.
fn is_before(time: StatxTimestamp, moment: SystemTime) -> bool {
    let Ok(moment) = moment.duration_since(SystemTime::UNIX_EPOCH) else { return false };
    let seconds = i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
    (time.tv_sec, time.tv_nsec) < (seconds, moment.subsec_nanos())
}

impl PendingDirectory {
    fn size(&self) -> usize {
        size_of::<Self>() + self.path.len()
    }
}

fn is_directory(stat: &Statx) -> bool {
    FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory
}

/// The metadata of an entry; `None` if it is a mount point of another mount. No file server is asked, since it might
/// never answer: DONT_SYNC prevents that for statx(2), but not for resolving a name that leads to the top of a network
/// mount. So a potential mount point is opened first, without crossing it. Without O_DIRECTORY this triggers no
/// automount.
fn look(
    directory: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
) -> rustix::io::Result<Option<Statx>> {
    if matches!(kind, FileType::Directory | FileType::Unknown) {
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        return match open_on_mount(directory, path, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(entry) => stat_open(&entry).map(Some),
            Err(error) if error.errno == Errno::XDEV => Ok(None),
            Err(error) => Err(error.errno),
        };
    }
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(
        directory,
        name,
        flags,
        StatxFlags::BASIC_STATS.union(StatxFlags::BTIME),
    )?;
    // Since 5.8; before that, a file that is a mount point counts as part of the tree.
    let is_mount = stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    Ok((!is_mount).then_some(stat))
}

fn stat_open(file: &OwnedFd) -> rustix::io::Result<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS.union(StatxFlags::BTIME))
}

/// Whether the command could have put something into a directory that we cannot list: it belongs to our user, who can
/// change its mode at will, or others may write there. The command cannot access other users' directories any more than
/// we can.
fn is_ours_to_fill(root: &Root, below: &Path) -> bool {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let Ok(directory) = open_on_mount(&root.directory, below, OFlags::PATH | OFlags::DIRECTORY)
    else {
        return false;
    };
    let Ok(stat) = stat_open(&directory) else { return false };
    stat.stx_uid == rustix::process::geteuid().as_raw() || stat.stx_mode & 0o022 != 0
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
