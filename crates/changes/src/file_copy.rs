//! Copies files of a layer: content with its holes, attributes, owner, permissions and time. A session may be writing them
//! meanwhile.

use crate::attributes::{set_attributes, user_attributes};
use crate::entry::Found;
use crate::error::Result;
use crate::layers::is_absence;
use crate::readable::{FILE, Readable, open_readable};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult};
use rustix::fs::{
    SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT, copy_file_range, fchmod, fchown, fstat,
    ftruncate, futimens, ioctl_ficlone, openat, seek,
};
use rustix::process::{Gid, Uid};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Up to here, reading and writing is faster than asking the file system to copy.
const SMALL_BYTES: u64 = 128 * 1024;
/// The unit of `st_blocks`, whatever the file system (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// How often a file is copied that somebody writes meanwhile.
const MAX_TRIES: u32 = 3;
/// So many files of a directory are worth a second thread, which costs about as much as two of them.
const WORTH_A_THREAD: usize = 32;
/// How many files a thread takes at a time.
const TAKEN: usize = 8;
const NEW_FILE: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What files hold, and what that takes on disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopiedBytes {
    pub(crate) bytes: u64,
    pub(crate) disk_bytes: u64,
}

impl CopiedBytes {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.disk_bytes = self.disk_bytes.saturating_add(other.disk_bytes);
    }
}

/// A file of the directory that is being copied.
#[derive(Debug)]
pub(crate) struct FileToCopy {
    pub(crate) name: OsString,
    pub(crate) path: PathBuf,
    pub(crate) found: Found,
}

/// Copies files from one directory to another by two threads, where they are many. Most of the time of a small file goes by in
/// the file system, which makes one name in a directory after another, but does everything else about two files at once.
pub(crate) fn copy_side_by_side(
    dirs: (BorrowedFd<'_>, BorrowedFd<'_>),
    files: &[FileToCopy],
) -> Result<CopiedBytes> {
    let next = AtomicUsize::new(0);
    let work = || copy_some(dirs, files, &next);
    if files.len() < WORTH_A_THREAD {
        return work();
    }
    thread::scope(|scope| {
        // Where there can be no thread, this one does everything.
        let helper = thread::Builder::new().spawn_scoped(scope, work);
        let mut copied = work()?;
        if let Ok(helper) = helper {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            copied.add(theirs?);
        }
        Ok(copied)
    })
}

fn copy_some(
    (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
    files: &[FileToCopy],
    next: &AtomicUsize,
) -> Result<CopiedBytes> {
    let mut copied = CopiedBytes::default();
    let mut blocks = BlockSharing::Untried;
    loop {
        let start = next.fetch_add(TAKEN, Ordering::Relaxed).min(files.len());
        let taken = &files[start..(start + TAKEN).min(files.len())];
        if taken.is_empty() {
            return Ok(copied);
        }
        for FileToCopy { name, path, found } in taken {
            let done = open_readable(from, name, FILE, path)
                .and_then(|source| copy_file(&source, (to, name), path, found, &mut blocks));
            match done {
                Ok(bytes) => copied.add(bytes),
                // It was removed or replaced meanwhile.
                Err(error) if is_absence(error.errno) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Copies a file to a new name.
pub(crate) fn copy_file(
    readable: &Readable,
    (to, name): (BorrowedFd<'_>, &OsStr),
    path: &Path,
    found: &Found,
    blocks: &mut BlockSharing,
) -> SysResult<CopiedBytes> {
    let source = &readable.file;
    // Nobody else reaches it, and what it has already need not be set.
    let mode = Mode::from_raw_mode(found.kept_mode()) | Mode::RUSR | Mode::WUSR;
    let made = openat(to, name, NEW_FILE, mode).at("openat", path)?;
    let mut now = Found::of(&fstat(source).at("fstat", path)?);
    for tries in 1.. {
        copy_content(source, &made, now.size, blocks, path)?;
        let after = Found::of(&fstat(source).at("fstat", path)?);
        let is_whole = after.changed == now.changed;
        now = after;
        if is_whole || tries == MAX_TRIES {
            break;
        }
        ftruncate(&made, 0).at("ftruncate", path)?;
    }
    let as_made = fstat(&made).at("fstat", path)?;
    set_attributes(&made, &user_attributes(source, path)?, path)?;
    finish_from(&as_made, made.as_fd(), &Found { mode: found.mode, ..now }, path)?;
    let used = u64::try_from(as_made.st_blocks).unwrap_or(0);
    Ok(CopiedBytes { bytes: now.size, disk_bytes: used.saturating_mul(BLOCK_BYTES) })
}

/// Whether the file system lets two files share blocks (`FICLONE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockSharing {
    Untried,
    Impossible,
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

/// Owner, permissions and time, given what it has. Without the right to change it, the owner stays as it is.
pub(crate) fn finish_from(
    now: &Stat,
    made: BorrowedFd<'_>,
    found: &Found,
    path: &Path,
) -> SysResult<()> {
    if (now.st_uid, now.st_gid) != (found.uid, found.gid) {
        let _ = fchown(made, Some(Uid::from_raw(found.uid)), Some(Gid::from_raw(found.gid)));
    }
    if now.st_mode & 0o7777 != found.kept_mode() {
        fchmod(made, Mode::from_raw_mode(found.kept_mode())).at("fchmod", path)?;
    }
    futimens(made, &modified(found)).at("futimens", path)
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
