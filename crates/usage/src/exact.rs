//! Memory with shared pages counted once, from `smaps_rollup` and `smaps` of `/proc/PID`. This walks page tables, so it
//! is used only when the cheap sum exceeds a limit: that sum is many times too high for a program that forked workers.
//! Must never be too low: if we may not inspect a process, its cheap number counts.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};

use palisade_sys::SysError;

use crate::disk_use::{FileId, HeldFiles};
use crate::error::Result;
use crate::procfs::value_of;
use crate::tree::Tree;

/// Memory, counted as exactly as possible from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    /// Anonymous, shared and swapped-out memory, and memory files. Files of a mounted tmpfs are not included: they
    /// count as space ([`crate::DiskWatch`]).
    pub memory_bytes: u64,
    /// The part in memory files that are held by descriptors.
    pub memfd_bytes: u64,
}

impl Tree {
    /// Counts the memory of the last sample's processes again, with shared pages once. `held` contains the memory files
    /// that are already counted.
    pub fn exact(&mut self, held: &HeldFiles) -> Result<Exact> {
        self.with_room_to_open(|tree| tree.exact_once(held))
    }

    fn exact_once(&mut self, held: &HeldFiles) -> Result<Exact> {
        let mut memory_bytes = held.memfd_bytes;
        for (&pid, process) in &self.known {
            if process.has_ended || process.borrows {
                continue;
            }
            let summary = match self.proc.file(pid, &process.file_name("smaps_rollup"))? {
                Some(file) => self.proc.read(file.as_fd())?.and_then(without_shared_memory),
                None => None,
            };
            let counted = match summary {
                Some(bytes) => Some(bytes),
                None => match self.proc.file(pid, &process.file_name("smaps"))? {
                    Some(file) => count(file, held)?,
                    None => None,
                },
            };
            let bytes = counted.unwrap_or_else(|| process.memory.bytes());
            memory_bytes = memory_bytes.saturating_add(bytes);
        }
        Ok(Exact { memory_bytes, memfd_bytes: held.memfd_bytes })
    }
}

/// The kernel's own sum, at a tenth of the cost. `None` if it includes shared memory, which may also be counted
/// elsewhere, or if the kernel does not separate the kinds (before 5.4).
fn without_shared_memory(text: &[u8]) -> Option<u64> {
    if value_of(text, b"Pss_Shmem:")? > 0 {
        return None;
    }
    let kilobytes = value_of(text, b"Pss_Anon:")?.saturating_add(value_of(text, b"SwapPss:")?);
    Some(kilobytes.saturating_mul(1024))
}

/// The kind of the mapping that the lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    Anonymous,
    /// A memory file, or shared memory without a name.
    Memory(FileId),
    File,
}

/// `None` if we may not inspect the process. One that ends meanwhile has released its memory.
fn count(file: OwnedFd, held: &HeldFiles) -> Result<Option<u64>> {
    let mut reader = BufReader::with_capacity(1 << 16, std::fs::File::from(file));
    let mut line = Vec::new();
    let mut sum = Sum::new(held);
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(Some(sum.bytes)),
            Ok(_) => sum.line(&line),
            Err(error) => match rustix::io::Errno::from_io_error(&error) {
                Some(errno) if crate::procfs::is_gone(errno) => return Ok(Some(sum.bytes)),
                Some(errno) if crate::procfs::is_closed(errno) => return Ok(None),
                errno => {
                    let errno = errno.unwrap_or(rustix::io::Errno::IO);
                    return Err(SysError::new("read", "/proc/PID/smaps", errno).into());
                }
            },
        }
    }
}

struct Sum<'a> {
    held: &'a HeldFiles,
    memory_device: Option<u64>,
    backing: Backing,
    bytes: u64,
}

impl<'a> Sum<'a> {
    fn new(held: &'a HeldFiles) -> Self {
        let memory_device = held.memory_device;
        Self { held, memory_device, backing: Backing::File, bytes: 0 }
    }

    fn line(&mut self, line: &[u8]) {
        // Keys begin with a capital letter, addresses with a small hexadecimal digit.
        if !line.first().is_some_and(u8::is_ascii_uppercase) {
            self.backing = parse_mapping(line, self.memory_device).unwrap_or(Backing::Anonymous);
            return;
        }
        let counts: &[&[u8]] = match self.backing {
            Backing::Anonymous => &[b"Pss:", b"SwapPss:"],
            // The file's own pages were counted with its descriptor; private copies were not.
            Backing::Memory(file) if self.held.memfds.contains(&file) => &[b"Anonymous:"],
            Backing::Memory(_) => &[b"Pss:", b"SwapPss:"],
            Backing::File => &[b"Anonymous:", b"SwapPss:"],
        };
        for key in counts {
            let kilobytes = value_of(line, key).unwrap_or(0);
            self.bytes = self.bytes.saturating_add(kilobytes.saturating_mul(1024));
        }
    }
}

/// `start-end rights offset major:minor inode name`. Only the numbers are parsed; the name may be anything.
fn parse_mapping(line: &[u8], memory_device: Option<u64>) -> Option<Backing> {
    let end = line.iter().position(|&byte| byte == b'/' || byte == b'[').unwrap_or(line.len());
    let mut fields = std::str::from_utf8(&line[..end]).ok()?.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = rustix::fs::makedev(
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
    );
    let inode: u64 = fields.next()?.parse().ok()?;
    Some(match inode {
        0 => Backing::Anonymous,
        _ if Some(device) == memory_device => Backing::Memory(FileId { device, inode }),
        _ => Backing::File,
    })
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
