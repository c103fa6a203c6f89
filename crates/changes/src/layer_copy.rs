//! Copies an upper layer as it is: with whiteouts, opaque directories, hard links, holes, permissions and times. A session
//! may be writing in it, so a copy is bounded by what was there when it began, and must never follow a link.

use crate::attributes::{copy_opaque, set_attributes, user_attributes};
use crate::entry::{EntryKind, Found, KEPT_BITS};
use crate::error::{ChangesError, Result};
use crate::layers::{is_absence, set_mode};
use crate::listing::names_in;
use crate::paths::MAX_PATH_BYTES;
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult, SysError};
use rustix::fs::{
    AtFlags, FileType, SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT, chownat, copy_file_range,
    fchmod, fchown, fstat, ftruncate, futimens, ioctl_ficlone, linkat, mkdirat, mknodat, openat,
    readlinkat, seek, statat, symlinkat, utimensat,
};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Gid, Uid};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How many levels of directories are open at once, with two descriptors each: a session decides how deep its tree is.
const MAX_OPEN: usize = 64;
/// A session can make files faster than anybody copies them.
const MAX_ENTRIES: u64 = 1_000_000;
/// Up to here, reading and writing is faster than asking the file system to copy.
const SMALL_BYTES: u64 = 128 * 1024;
/// The unit of `st_blocks`, whatever the file system (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// What an entry counts on disk beside its content: a directory, a link or an attribute has a block of its own.
const ENTRY_BYTES: u64 = 4096;
/// How often a file is copied that somebody writes meanwhile.
const MAX_TRIES: u32 = 3;

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
const ABOVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening a FIFO or a device neither waits nor takes a terminal.
pub(crate) const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const NEW_FILE: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedLayer {
    pub entries: u64,
    /// The length of its files.
    pub bytes: u64,
    /// What these take on disk: less where they have holes.
    pub disk_bytes: u64,
}

/// Copies the upper layer `from` to the new directory `name` of `parent`. Interrupted, it leaves a part there.
pub fn copy_layer(
    from: BorrowedFd<'_>,
    parent: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<CopiedLayer> {
    let path = Path::new(name);
    mkdirat(parent, name, Mode::RWXU).at("mkdir", path)?;
    let top = open_on_mount(parent, path, DIRECTORY)?;
    let found = Found::of(&fstat(from).at("fstat", path)?);
    copy_tree(from, top.as_fd(), found, &mut OfSession)
}

/// What a copy leaves out, and what it may do to read the rest.
pub(crate) trait CopyRules {
    /// Asked before an entry is copied, with what was copied so far.
    fn takes(&mut self, path: &Path, found: &Found, copied: &CopiedLayer) -> Result<bool>;
    /// None for a directory on another mount, whose content is left out.
    fn open_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<Readable>>;
    fn open_file(&self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Readable>;
    /// A directory that was open before.
    fn open_again(&self, entry: OwnedFd, path: &Path) -> Result<Readable>;
}

/// An upper layer is ours: all of it is copied, and what its owner cannot read is made readable for a moment.
struct OfSession;

impl CopyRules for OfSession {
    fn takes(&mut self, _path: &Path, _found: &Found, copied: &CopiedLayer) -> Result<bool> {
        if copied.entries >= MAX_ENTRIES {
            return Err(ChangesError::TooMany {
                limit: usize::try_from(MAX_ENTRIES).unwrap_or(usize::MAX),
            });
        }
        Ok(true)
    }

    fn open_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<Readable>> {
        Ok(Some(open_readable(dir, name, DIRECTORY, path)?))
    }

    fn open_file(&self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Readable> {
        Ok(open_readable(dir, name, FILE, path)?)
    }

    fn open_again(&self, entry: OwnedFd, path: &Path) -> Result<Readable> {
        Ok(readable(entry, DIRECTORY | OFlags::CLOEXEC, path)?)
    }
}

/// Copies everything in `from` that the rules take to the empty directory `top`.
pub(crate) fn copy_tree(
    from: BorrowedFd<'_>,
    top: BorrowedFd<'_>,
    found: Found,
    rules: &mut dyn CopyRules,
) -> Result<CopiedLayer> {
    let mut copier = Copier {
        top,
        first_names: HashMap::new(),
        blocks: BlockSharing::Untried,
        copied: CopiedLayer::default(),
        rules,
    };
    copier.copy(Level::top(from, top, found)?)?;
    Ok(copier.copied)
}

/// Gives a directory the permissions, the owner, the attributes and the time of another one.
pub fn look_like(model: BorrowedFd<'_>, directory: BorrowedFd<'_>) -> Result<()> {
    let path = Path::new("");
    let found = Found::of(&fstat(model).at("fstat", path)?);
    set_attributes(directory, &user_attributes(model, path)?, path)?;
    Ok(finish(directory, &found, path)?)
}

/// Whether the file system lets two files share blocks (`FICLONE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockSharing {
    Untried,
    Impossible,
}

struct Copier<'t> {
    top: BorrowedFd<'t>,
    /// Where a file with several names was copied to, by device and inode.
    first_names: HashMap<(u64, u64), PathBuf>,
    blocks: BlockSharing,
    copied: CopiedLayer,
    rules: &'t mut dyn CopyRules,
}

/// A directory that is being copied.
struct Level {
    found: Found,
    /// Those that are still to be copied.
    names: std::vec::IntoIter<OsString>,
    /// None while it is too far above the one that is being copied.
    open: Option<OpenLevel>,
}

struct OpenLevel {
    source: Readable,
    made: OwnedFd,
}

impl Level {
    fn top(from: BorrowedFd<'_>, to: BorrowedFd<'_>, found: Found) -> SysResult<Self> {
        let again = |dir| fcntl_dupfd_cloexec(dir, 0).call("fcntl");
        let source = Readable { file: again(from)?, closed: None };
        Self::new(OpenLevel { source, made: again(to)? }, found, Path::new(""))
    }

    fn new(open: OpenLevel, found: Found, path: &Path) -> SysResult<Self> {
        let names = names_in(&open.source.file, path)?.into_iter();
        Ok(Self { found, names, open: Some(open) })
    }

    /// The open one below leads there.
    fn open_again(&mut self, below: &OpenLevel, path: &Path, rules: &dyn CopyRules) -> Result<()> {
        let entry = openat(&below.source.file, "..", ABOVE, Mode::empty()).at("openat", path)?;
        // A command can move what is being copied: the one above is another one then.
        if !Found::of(&fstat(&entry).at("fstat", path)?).is_same_inode(&self.found) {
            return Err(ChangesError::ChangedMeanwhile { path: path.to_owned() });
        }
        let source = rules.open_again(entry, path)?;
        // Nobody moves the copy.
        let flags = DIRECTORY | OFlags::CLOEXEC;
        let made = openat(&below.made, "..", flags, Mode::empty()).at("openat", path)?;
        self.open = Some(OpenLevel { source, made });
        Ok(())
    }
}

impl Copier<'_> {
    fn copy(&mut self, top: Level) -> Result<()> {
        let mut levels = vec![top];
        let mut path = PathBuf::new();
        while let Some(mut level) = levels.pop() {
            let Some(open) = &level.open else { continue };
            if let Some(name) = level.names.next() {
                path.push(&name);
                let below = self.entry(open, &name, &path);
                levels.push(level);
                match below {
                    Ok(Some(below)) => {
                        levels.push(below);
                        if let Some(far) = levels.len().checked_sub(MAX_OPEN + 1) {
                            levels[far].open = None;
                        }
                        continue;
                    }
                    Ok(None) => {}
                    // It was removed or replaced meanwhile.
                    Err(ChangesError::System(error)) if is_absence(error.errno) => {}
                    Err(error) => return Err(error),
                }
            } else {
                // First of all, as nothing leads out of a directory that is closed again.
                if let Some(above) = levels.last_mut().filter(|above| above.open.is_none()) {
                    let path = path.parent().unwrap_or(Path::new(""));
                    above.open_again(open, path, self.rules)?;
                }
                let (source, made) = (open.source.file.as_fd(), open.made.as_fd());
                finish_directory(source, made, &level.found, &path)?;
            }
            path.pop();
        }
        Ok(())
    }

    /// Copies it. A directory is only made, and is what comes next.
    fn entry(&mut self, dirs: &OpenLevel, name: &OsStr, path: &Path) -> Result<Option<Level>> {
        let (from, to) = (dirs.source.file.as_fd(), dirs.made.as_fd());
        let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).at("statat", path)?;
        let found = Found::of(&stat);
        if !self.rules.takes(path, &found, &self.copied)? {
            return Ok(None);
        }
        self.copied.entries += 1;
        self.copied.disk_bytes = self.copied.disk_bytes.saturating_add(ENTRY_BYTES);
        match found.kind {
            EntryKind::Directory => {
                let Some(source) = self.rules.open_directory(from, name, path)? else {
                    mkdirat(to, name, Mode::from_raw_mode(found.kept_mode())).at("mkdir", path)?;
                    return Ok(None);
                };
                // It may have been replaced since.
                let opened = Found::of(&fstat(&source.file).at("fstat", path)?);
                let found = Found { device: opened.device, inode: opened.inode, ..found };
                mkdirat(to, name, Mode::RWXU).at("mkdir", path)?;
                let made = open_on_mount(to, Path::new(name), DIRECTORY)?;
                return Ok(Some(Level::new(OpenLevel { source, made }, found, path)?));
            }
            EntryKind::File => self.file((from, to), name, path, &found)?,
            EntryKind::Link => {
                let target = readlinkat(from, name, Vec::new()).at("readlink", path)?;
                symlinkat(target.as_c_str(), to, name).at("symlink", path)?;
                finish_by_name(to, name, &found, path)?;
            }
            EntryKind::Device if found.is_whiteout => {
                mknodat(to, name, FileType::CharacterDevice, Mode::empty(), 0).at("mknod", path)?;
            }
            EntryKind::Fifo => special(to, name, FileType::Fifo, &found, path)?,
            EntryKind::Socket => special(to, name, FileType::Socket, &found, path)?,
            // Nobody can make one in a user namespace.
            EntryKind::Device => {}
        }
        Ok(None)
    }

    fn file(
        &mut self,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        name: &OsStr,
        path: &Path,
        found: &Found,
    ) -> Result<()> {
        let inode = (found.device, found.inode);
        let first = self.first_names.get(&inode).filter(|_| found.links > 1);
        if first.is_some_and(|first| linkat(self.top, first, to, name, AtFlags::empty()).is_ok()) {
            return Ok(());
        }
        let readable = self.rules.open_file(from, name, path)?;
        let source = &readable.file;
        // Nobody else reaches it, and what it has already need not be set.
        let mode = Mode::from_raw_mode(found.kept_mode()) | Mode::RUSR | Mode::WUSR;
        let made = openat(to, name, NEW_FILE, mode).at("openat", path)?;
        let mut now = Found::of(&fstat(source).at("fstat", path)?);
        for tries in 1.. {
            copy_content(source, &made, now.size, &mut self.blocks, path)?;
            let after = Found::of(&fstat(source).at("fstat", path)?);
            let is_whole = after.changed == now.changed;
            now = after;
            if is_whole || tries == MAX_TRIES {
                break;
            }
            ftruncate(&made, 0).at("ftruncate", path)?;
        }
        self.copied.bytes = self.copied.bytes.saturating_add(now.size);
        let as_made = fstat(&made).at("fstat", path)?;
        let blocks = u64::try_from(as_made.st_blocks).unwrap_or(0);
        self.copied.disk_bytes =
            self.copied.disk_bytes.saturating_add(blocks.saturating_mul(BLOCK_BYTES));
        set_attributes(&made, &user_attributes(source, path)?, path)?;
        finish_from(&as_made, made.as_fd(), &Found { mode: found.mode, ..now }, path)?;
        // A longer one leads nowhere.
        if found.links > 1 && path.as_os_str().len() < MAX_PATH_BYTES {
            self.first_names.insert(inode, path.to_owned());
        }
        Ok(())
    }
}

/// An entry that its owner may have made unreadable, which it is again afterwards.
pub(crate) struct Readable {
    file: OwnedFd,
    closed: Option<(OwnedFd, u32)>,
}

impl From<OwnedFd> for Readable {
    fn from(file: OwnedFd) -> Self {
        Self { file, closed: None }
    }
}

impl Drop for Readable {
    fn drop(&mut self) {
        if let Some((entry, mode)) = &self.closed {
            // If it fails, the entry is gone.
            let _ = set_mode(entry.as_fd(), *mode, Path::new(""));
        }
    }
}

fn open_readable(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    path: &Path,
) -> SysResult<Readable> {
    let flags = flags | OFlags::CLOEXEC;
    match openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        // What can be listed but not entered is of no use.
        Ok(file) if flags.contains(OFlags::DIRECTORY) && is_closed_directory(&file, path)? => {}
        opened => return opened.at("openat", path).map(|file| Readable { file, closed: None }),
    }
    readable(open_entry(dir, name)?, flags, path)
}

fn is_closed_directory(entry: &OwnedFd, path: &Path) -> SysResult<bool> {
    let found = Found::of(&fstat(entry).at("fstat", path)?);
    Ok(found.is_directory() && found.mode & 0o500 != 0o500)
}

/// Opens what a descriptor without rights to the content (`O_PATH`) stands for.
fn readable(entry: OwnedFd, flags: OFlags, path: &Path) -> SysResult<Readable> {
    let found = Found::of(&fstat(&entry).at("fstat", path)?);
    if !matches!(found.kind, EntryKind::Directory | EntryKind::File) {
        return Err(SysError::new("openat", path.display().to_string(), Errno::NOENT));
    }
    let link = format!("/proc/self/fd/{}", entry.as_raw_fd());
    let needed = if found.is_directory() { 0o500 } else { 0o400 };
    if found.mode & needed == needed {
        let file = rustix::fs::open(link, flags, Mode::empty()).at("open", path)?;
        return Ok(Readable { file, closed: None });
    }
    let mode = found.mode & KEPT_BITS;
    set_mode(entry.as_fd(), mode | needed, path)?;
    match rustix::fs::open(link, flags, Mode::empty()) {
        Ok(file) => Ok(Readable { file, closed: Some((entry, mode)) }),
        Err(errno) => {
            set_mode(entry.as_fd(), mode, path)?;
            Err(errno).at("open", path)
        }
    }
}

/// Copies at most `size` bytes, with the holes that are there.
pub(crate) fn copy_content(
    from: &OwnedFd,
    to: &OwnedFd,
    size: u64,
    blocks: &mut BlockSharing,
    path: &Path,
) -> SysResult<()> {
    if size <= SMALL_BYTES {
        return copy_bytes(from, to, (0, size), path);
    }
    if *blocks == BlockSharing::Untried {
        match ioctl_ficlone(to, from) {
            Ok(()) => return Ok(()),
            Err(_) => *blocks = BlockSharing::Impossible,
        }
    }
    let mut at = 0;
    while at < size {
        let start = match seek(from, SeekFrom::Data(at)) {
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // A file system that knows no holes.
            Err(_) => at,
            Ok(start) => start,
        };
        if start >= size {
            break;
        }
        let end = seek(from, SeekFrom::Hole(start)).unwrap_or(size).clamp(start + 1, size);
        copy_range(from, to, (start, end), path)?;
        at = end;
    }
    ftruncate(to, size).at("ftruncate", path)
}

fn copy_range(
    from: &OwnedFd,
    to: &OwnedFd,
    (start, end): (u64, u64),
    path: &Path,
) -> SysResult<()> {
    let (mut read, mut written) = (start, start);
    while read < end {
        let length = usize::try_from((end - read).min(64 << 20)).unwrap_or(1);
        match copy_file_range(from, Some(&mut read), to, Some(&mut written), length) {
            // It has become shorter.
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                return copy_bytes(from, to, (read, end), path);
            }
            Err(errno) => return Err(errno).at("copy_file_range", path),
        }
    }
    Ok(())
}

fn copy_bytes(
    from: &OwnedFd,
    to: &OwnedFd,
    (start, end): (u64, u64),
    path: &Path,
) -> SysResult<()> {
    let mut block = vec![0; usize::try_from((end - start).min(SMALL_BYTES)).unwrap_or(0)];
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(block.len());
        let length = rustix::io::pread(from, &mut block[..wanted], at).at("pread", path)?;
        if length == 0 {
            return Ok(());
        }
        let mut rest = &block[..length];
        while !rest.is_empty() {
            let written = rustix::io::pwrite(to, rest, at).at("pwrite", path)?;
            rest = &rest[written..];
            at += written as u64;
        }
    }
    Ok(())
}

fn finish_directory(
    source: BorrowedFd<'_>,
    made: BorrowedFd<'_>,
    found: &Found,
    path: &Path,
) -> SysResult<()> {
    set_attributes(made, &user_attributes(source, path)?, path)?;
    copy_opaque(source, made, path)?;
    finish(made, found, path)
}

/// Owner, permissions and time. Without the right to change it, the owner stays as it is.
fn finish(made: BorrowedFd<'_>, found: &Found, path: &Path) -> SysResult<()> {
    finish_from(&fstat(made).at("fstat", path)?, made, found, path)
}

/// The same, given what it has.
fn finish_from(now: &Stat, made: BorrowedFd<'_>, found: &Found, path: &Path) -> SysResult<()> {
    if (now.st_uid, now.st_gid) != (found.uid, found.gid) {
        let _ = fchown(made, Some(Uid::from_raw(found.uid)), Some(Gid::from_raw(found.gid)));
    }
    if now.st_mode & 0o7777 != found.kept_mode() {
        fchmod(made, Mode::from_raw_mode(found.kept_mode())).at("fchmod", path)?;
    }
    futimens(made, &modified(found)).at("futimens", path)
}

fn special(
    to: BorrowedFd<'_>,
    name: &OsStr,
    kind: FileType,
    found: &Found,
    path: &Path,
) -> SysResult<()> {
    mknodat(to, name, kind, Mode::RUSR | Mode::WUSR, 0).at("mknod", path)?;
    let made = open_entry(to, name)?;
    set_mode(made.as_fd(), found.kept_mode(), path)?;
    finish_by_name(to, name, found, path)
}

/// For what cannot be opened.
fn finish_by_name(dir: BorrowedFd<'_>, name: &OsStr, found: &Found, path: &Path) -> SysResult<()> {
    let (uid, gid) = (Uid::from_raw(found.uid), Gid::from_raw(found.gid));
    let _ = chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
    utimensat(dir, name, &modified(found), AtFlags::SYMLINK_NOFOLLOW).at("utimensat", path)
}

pub(crate) fn modified(found: &Found) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: found.modified.seconds,
            tv_nsec: found.modified.nanoseconds.into(),
        },
    }
}

#[cfg(test)]
#[path = "layer_copy_tests.rs"]
mod tests;
