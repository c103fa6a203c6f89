//! Copies an upper layer as it is: with whiteouts, opaque directories, hard links, holes, permissions and times. A session
//! may be writing in it, so a copy is bounded by what was there when it began, and must never follow a link.

use crate::attributes::{copy_opaque, set_attributes, user_attributes};
use crate::entry::{EntryKind, Found, KEPT_BITS};
use crate::error::{ChangesError, Result};
use crate::layers::{is_absence, names_in, set_mode};
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult, SysError};
use rustix::fs::{
    AtFlags, FileType, SeekFrom, Timespec, Timestamps, UTIME_OMIT, chownat, copy_file_range,
    fchmod, fchown, fstat, ftruncate, futimens, ioctl_ficlone, linkat, mkdirat, mknodat, openat,
    readlinkat, seek, statat, symlinkat, utimensat,
};
use rustix::process::{Gid, Uid};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Every level holds two descriptors.
const MAX_DEPTH: usize = 256;
/// A session can make files faster than anybody copies them.
const MAX_ENTRIES: u64 = 1_000_000;
/// Up to here, reading and writing is faster than asking the file system to copy.
const SMALL_BYTES: u64 = 128 * 1024;
/// How often a file is copied that somebody writes meanwhile.
const MAX_TRIES: u32 = 3;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// Opening a FIFO or a device neither waits nor takes a terminal.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
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
    let mut copier = Copier {
        top: top.as_fd(),
        first_names: HashMap::new(),
        blocks: BlockSharing::Untried,
        copied: CopiedLayer::default(),
    };
    copier.fill(from, top.as_fd(), Path::new(""), 0)?;
    let copied = copier.copied;
    finish_directory(from, top.as_fd(), &found, path)?;
    Ok(copied)
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
}

impl Copier<'_> {
    fn fill(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        path: &Path,
        depth: usize,
    ) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(ChangesError::TooDeep { path: path.to_owned(), limit: MAX_DEPTH });
        }
        for name in names_in(from, path)? {
            match self.entry((from, to), &name, &path.join(&name), depth) {
                // It was removed or replaced meanwhile.
                Err(ChangesError::System(error)) if is_absence(error.errno) => {}
                copied => copied?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<()> {
        let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).at("statat", path)?;
        let found = Found::of(&stat);
        self.copied.entries += 1;
        if self.copied.entries > MAX_ENTRIES {
            return Err(ChangesError::TooMany {
                limit: usize::try_from(MAX_ENTRIES).unwrap_or(usize::MAX),
            });
        }
        match found.kind {
            EntryKind::Directory => {
                let source = open_readable(from, name, DIRECTORY, path)?;
                mkdirat(to, name, Mode::RWXU).at("mkdir", path)?;
                let made = open_on_mount(to, Path::new(name), DIRECTORY)?;
                self.fill(source.file.as_fd(), made.as_fd(), path, depth + 1)?;
                finish_directory(source.file.as_fd(), made.as_fd(), &found, path)?;
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
        Ok(())
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
        let readable = open_readable(from, name, FILE, path)?;
        let source = &readable.file;
        let made = openat(to, name, NEW_FILE, Mode::RUSR | Mode::WUSR).at("openat", path)?;
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
        set_attributes(&made, &user_attributes(source, path)?, path)?;
        finish(made.as_fd(), &Found { mode: found.mode, ..now }, path)?;
        if found.links > 1 {
            self.first_names.insert(inode, path.to_owned());
        }
        Ok(())
    }
}

/// An entry that its owner may have made unreadable, which it is again afterwards.
struct Readable {
    file: OwnedFd,
    closed: Option<(OwnedFd, u32)>,
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
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        opened => return opened.at("openat", path).map(|file| Readable { file, closed: None }),
    }
    let entry = open_entry(dir, name)?;
    let found = Found::of(&fstat(&entry).at("fstat", path)?);
    if !matches!(found.kind, EntryKind::Directory | EntryKind::File) {
        return Err(SysError::new("openat", path.display().to_string(), Errno::NOENT));
    }
    set_mode(entry.as_fd(), (found.mode & KEPT_BITS) | 0o500, path)?;
    let link = format!("/proc/self/fd/{}", entry.as_raw_fd());
    let opened = rustix::fs::open(link, flags.difference(OFlags::NOFOLLOW), Mode::empty());
    let mode = found.mode & KEPT_BITS;
    match opened {
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
    let now = fstat(made).at("fstat", path)?;
    if (now.st_uid, now.st_gid) != (found.uid, found.gid) {
        let _ = fchown(made, Some(Uid::from_raw(found.uid)), Some(Gid::from_raw(found.gid)));
    }
    fchmod(made, Mode::from_raw_mode(found.kept_mode())).at("fchmod", path)?;
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
