//! The files of `/proc/PID` about usage, and their formats (proc(5)). A process may end at any time: that is a result
//! (`None`), not an error. Must never follow what the process chose, such as its names.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use palisade_sys::{Errno, Mode, OFlags, SysError};
use rustix::fs::{AtFlags, CWD, Dir, PROC_SUPER_MAGIC, Statx, StatxFlags};

use crate::error::{Result, UsageError};
use crate::ledger::Io;

/// Longer than any of these files, except the list of a fork bomb's children.
const READ_SIZE: usize = 16 * 1024;

/// The limit of that list: more children than any sample counts.
const READ_LIMIT: usize = 256 * 1024;

/// The host's `/proc`, and a read buffer.
#[derive(Debug)]
pub(crate) struct Proc {
    directory: OwnedFd,
    buffer: Vec<u8>,
}

/// `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) is_zombie: bool,
    pub(crate) parent: i32,
    pub(crate) user: u64,
    pub(crate) system: u64,
    pub(crate) children_user: u64,
    pub(crate) children_system: u64,
    pub(crate) threads: u64,
    pub(crate) start: u64,
}

/// `/proc/PID/statm`, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statm {
    pub(crate) resident: u64,
    /// Pages of files and of shared memory.
    pub(crate) shared: u64,
}

/// Additional values from `/proc/PID/status`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    pub(crate) shmem: u64,
    pub(crate) swap: u64,
}

impl Proc {
    pub(crate) fn open() -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, "/proc", flags, Mode::empty())
            .map_err(|errno| SysError::new("open", "/proc", errno))?;
        let kind = rustix::fs::fstatfs(&directory)
            .map_err(|errno| SysError::new("fstatfs", "/proc", errno))?;
        if kind.f_type != PROC_SUPER_MAGIC {
            return Err(UsageError::NoProc);
        }
        Ok(Self { directory, buffer: vec![0; READ_SIZE] })
    }

    /// Opens a file of a process; `None` if the process has ended or we may not inspect it.
    pub(crate) fn file(&self, pid: i32, name: &str) -> Result<Option<OwnedFd>> {
        self.open_at(pid, name, OFlags::RDONLY)
    }

    /// The same for a directory.
    pub(crate) fn directory(&self, pid: i32, name: &str) -> Result<Option<OwnedFd>> {
        self.open_at(pid, name, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    fn open_at(&self, pid: i32, name: &str, flags: OFlags) -> Result<Option<OwnedFd>> {
        let path = format!("{pid}/{name}");
        match rustix::fs::openat(&self.directory, &path, flags | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(errno) if is_gone(errno) || is_closed(errno) => Ok(None),
            Err(errno) => Err(SysError::new("open", format!("/proc/{path}"), errno).into()),
        }
    }

    /// The target of a link of a process: the file itself, whatever its name is now. No file server is asked.
    pub(crate) fn target(&self, pid: i32, name: &str) -> Result<Statx, Errno> {
        let path = format!("{pid}/{name}");
        let flags = AtFlags::STATX_DONT_SYNC;
        rustix::fs::statx(&self.directory, path, flags, StatxFlags::BASIC_STATS)
    }

    /// The children in one thread's list; none if the thread has ended.
    pub(crate) fn children(&mut self, file: BorrowedFd<'_>, found: &mut Vec<i32>) -> Result<()> {
        let mut length = 0;
        while length < READ_LIMIT {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            match rustix::io::pread(file, &mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(Errno::INTR) => {}
                Err(errno) if is_gone(errno) || is_closed(errno) => break,
                Err(errno) => return Err(SysError::new("read", "/proc", errno).into()),
            }
        }
        // Each number ends with a space, unless it was cut off.
        let whole = self.buffer[..length].iter().rposition(|&byte| byte == b' ').unwrap_or(0);
        let text = std::str::from_utf8(&self.buffer[..whole]).unwrap_or_default();
        found.extend(text.split(' ').filter_map(|number| number.parse::<i32>().ok()));
        Ok(())
    }

    /// Reads a small file in one call; `None` if its process has ended or we may not inspect it.
    pub(crate) fn read(&mut self, file: BorrowedFd<'_>) -> Result<Option<&[u8]>> {
        loop {
            match rustix::io::pread(file, self.buffer.as_mut_slice(), 0) {
                Ok(read) => return Ok(Some(&self.buffer[..read])),
                Err(Errno::INTR) => {}
                Err(errno) if is_gone(errno) || is_closed(errno) => return Ok(None),
                Err(errno) => return Err(SysError::new("read", "/proc", errno).into()),
            }
        }
    }

    /// All processes of the host with their parents.
    pub(crate) fn parents(&mut self) -> Result<Vec<(i32, i32)>> {
        let mut found = Vec::new();
        let directory = rustix::fs::openat(
            &self.directory,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| SysError::new("open", "/proc", errno))?;
        for pid in numbers_in(&directory)? {
            let Some(file) = self.file(pid, "stat")? else { continue };
            let Some(text) = self.read(file.as_fd())? else { continue };
            found.push((pid, stat(pid, text)?.parent));
        }
        Ok(found)
    }
}

/// The entries of a directory of `/proc` that are numbers.
pub(crate) fn numbers_in(directory: &OwnedFd) -> Result<Vec<i32>> {
    let entries =
        Dir::read_from(directory).map_err(|errno| SysError::new("open", "/proc", errno))?;
    let mut numbers = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => {
                let name = entry.file_name().to_bytes();
                numbers.extend(
                    std::str::from_utf8(name).ok().and_then(|name| name.parse::<i32>().ok()),
                );
            }
            Err(errno) if is_gone(errno) => break,
            Err(errno) => return Err(SysError::new("getdents", "/proc", errno).into()),
        }
    }
    Ok(numbers)
}

pub(crate) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH)
}

/// The kernel denies access to most files of an undumpable process, even to its own user (ptrace(2)).
pub(crate) fn is_closed(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM)
}

pub(crate) fn stat(pid: i32, text: &[u8]) -> Result<Stat> {
    parse_stat(text).ok_or_else(|| form(pid, "stat", text))
}

pub(crate) fn form(pid: i32, file: &'static str, text: &[u8]) -> UsageError {
    let start = text.get(..80).unwrap_or(text);
    UsageError::Form { pid, file, text: String::from_utf8_lossy(start).into_owned() }
}

/// The process chooses its own name, which may contain spaces and parentheses: fields are counted from the last
/// parenthesis.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let text = std::str::from_utf8(text.get(after_name..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let mut fields = fields.skip(9);
    let mut number = || fields.next()?.parse::<i64>().ok().map(i64::unsigned_abs);
    let (user, system, children_user, children_system) =
        (number()?, number()?, number()?, number()?);
    let (_priority, _nice) = (number()?, number()?);
    let threads = number()?;
    let _timer = number()?;
    let start = number()?;
    let is_zombie = matches!(state, "Z" | "X" | "x");
    Some(Stat { is_zombie, parent, user, system, children_user, children_system, threads, start })
}

pub(crate) fn parse_statm(text: &[u8]) -> Option<Statm> {
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace().skip(1);
    let resident = fields.next()?.parse().ok()?;
    let shared = fields.next()?.parse().ok()?;
    Some(Statm { resident, shared })
}

/// A process without memory (a zombie) has no such lines.
pub(crate) fn parse_status(text: &[u8]) -> Resident {
    let kilobytes = |key: &[u8]| value_of(text, key).unwrap_or(0).saturating_mul(1024);
    Resident { shmem: kilobytes(b"RssShmem:"), swap: kilobytes(b"VmSwap:") }
}

pub(crate) fn parse_io(text: &[u8]) -> Option<Io> {
    Some(Io {
        read_bytes: value_of(text, b"read_bytes:")?,
        written_bytes: value_of(text, b"write_bytes:")?,
        reads: value_of(text, b"syscr:")?,
        writes: value_of(text, b"syscw:")?,
    })
}

/// The number on the line that begins with `key`.
pub(crate) fn value_of(text: &[u8], key: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(key))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[path = "procfs_tests.rs"]
mod tests;
