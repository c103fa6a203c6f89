//! Space of files without a name, which processes hold by descriptors only. Memory files (memfd_create(2)) that are not
//! mapped show up in no process's memory, and a deleted file keeps its blocks until it is closed. Expensive, one call
//! per descriptor, so it is measured only on request. Must never open what it finds.

use std::collections::{HashMap, HashSet};

use palisade_sys::SysError;
use rustix::fs::{AtFlags, FileType, MemfdFlags, Statx, StatxFlags};

use crate::error::Result;
use crate::procfs::{is_closed, is_gone, numbers_in};
use crate::tree::Tree;

/// Space that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes, in whole blocks.
    pub bytes: u64,
    /// Files, directories and the like.
    pub inodes: u64,
}

impl DiskUse {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            inodes: self.inodes.saturating_sub(other.inodes),
        }
    }
}

/// The maximum number of descriptors per look.
const MAX_DESCRIPTORS: usize = 1 << 16;

/// The unit of blocks in fstat(2).
pub(crate) const BLOCK: u64 = 512;

/// Identifies a file independently of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Its device, as in stat(2).
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

/// Files without a name that the tree's processes hold open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldFiles {
    /// Memory in files that are in no directory.
    pub memfd_bytes: u64,
    /// Bytes on disk, or in a tmpfs, of deleted files.
    pub deleted: HashMap<FileId, u64>,
    /// Processes that we may not inspect, except the tree's first.
    pub unread_processes: u64,
    /// Deleted files that are only mapped, whose size we may not query.
    pub files_without_size: u64,
    /// There were more than one look covers: all numbers are too low.
    pub was_cut: bool,
    pub(crate) memfds: HashSet<FileId>,
    pub(crate) memory_device: Option<u64>,
}

impl Tree {
    /// Examines the descriptors of every process of the last sample.
    pub fn held_files(&mut self) -> Result<HeldFiles> {
        self.with_room_to_open(|tree| tree.held_files_once())
    }

    pub(crate) fn held_files_once(&self) -> Result<HeldFiles> {
        let memory_device = memory_device()?;
        let mut held = HeldFiles { memory_device: Some(memory_device), ..HeldFiles::default() };
        let mut left = MAX_DESCRIPTORS;
        for (&pid, process) in &self.known {
            if process.has_ended {
                continue;
            }
            let Some(directory) = self.proc.directory(pid, &process.file_name("fd"))? else {
                let is_there = self.proc.file(pid, "stat")?.is_some();
                held.unread_processes += u64::from(is_there && pid != self.root());
                continue;
            };
            for number in numbers_in(&directory)? {
                if left == 0 {
                    held.was_cut = true;
                    return Ok(held);
                }
                left -= 1;
                held.look(&directory, number)?;
            }
        }
        Ok(held)
    }
}

impl HeldFiles {
    fn look(&mut self, directory: &rustix::fd::OwnedFd, number: i32) -> Result<()> {
        // The link leads to the open file itself, not to a name. DONT_SYNC: no file server is asked.
        let found = rustix::fs::statx(
            directory,
            number.to_string(),
            AtFlags::STATX_DONT_SYNC,
            StatxFlags::BASIC_STATS,
        );
        match found {
            Ok(stat) => self.note(&stat),
            Err(errno) if is_gone(errno) || is_closed(errno) => {}
            Err(errno) => return Err(SysError::new("statx", "/proc/PID/fd", errno).into()),
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, stat: &Statx) {
        if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::RegularFile {
            return;
        }
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        let file = FileId { device, inode: stat.stx_ino };
        let bytes = stat.stx_blocks.saturating_mul(BLOCK);
        if Some(device) == self.memory_device {
            if self.memfds.insert(file) {
                self.memfd_bytes = self.memfd_bytes.saturating_add(bytes);
            }
        } else if stat.stx_nlink == 0 {
            self.deleted.insert(file, bytes);
        }
    }
}

/// The device of the kernel's internal tmpfs, which contains memory files.
fn memory_device() -> Result<u64> {
    let failed = |errno| SysError::new("memfd_create", "", errno);
    let file = rustix::fs::memfd_create("palisade-usage", MemfdFlags::CLOEXEC).map_err(failed)?;
    Ok(rustix::fs::fstat(&file).map_err(failed)?.st_dev)
}

#[cfg(test)]
#[path = "disk_use_tests.rs"]
mod tests;
