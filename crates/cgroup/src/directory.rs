//! A group's directory, open and locked: the lock shows other supervisors that it is in use. Must remove what it
//! created, and never anything else.

use crate::error::{CgroupError, Doing as _, Result};
use palisade_sys::{At as _, Errno, Mode, OFlags, SysError, proc};
use rustix::fs::{AtFlags, CWD, FlockOperation};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum that is read of a group's file; the longest have one line per device.
const MAX_READ: usize = 256 * 1024;

/// A directory of ours below another group.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    fd: OwnedFd,
    /// A forked child has a copy of this, and must not remove what its parent created.
    maker: u32,
    is_removed: bool,
}

impl Directory {
    /// Creates the directory. A sweep could take it for a leftover between its creation and its locking, so the locked
    /// directory must still be the one with the name. A running sweep is allowed to finish: it would remove a directory
    /// that is created again meanwhile.
    pub(crate) fn make(parent: &Path, name: &OsStr) -> Result<Self> {
        const TRIES: u32 = 50;
        const PAUSE: Duration = Duration::from_millis(1);
        const STEP: &str = "making a control group";
        let path = parent.join(name);
        for attempt in 0..TRIES {
            match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
                Err(Errno::EXIST) if attempt > 0 => {}
                made => made.at("mkdir", &path).map_err(not_made)?,
            }
            if let Some(fd) = lock_named(&path) {
                return Ok(Self { path, fd, maker: std::process::id(), is_removed: false });
            }
            proc::poll(&mut [], Some(PAUSE)).doing(STEP, "try again")?;
        }
        let _ = rustix::fs::rmdir(&path);
        Err(SysError::new("flock", path.display().to_string(), Errno::AGAIN))
            .doing(STEP, "another program holds a lock on it; find it with lslocks")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, SysError> {
        rustix::fs::openat(&self.fd, name, flags | OFlags::CLOEXEC, Mode::empty())
            .at("open", &self.path.join(name))
    }

    pub(crate) fn write(&self, name: &str, value: &str) -> Result<(), SysError> {
        write_to(self.open(name, OFlags::WRONLY)?, &self.path.join(name), value)
    }

    pub(crate) fn read(&self, name: &str) -> Result<String, SysError> {
        let file = self.open(name, OFlags::RDONLY)?;
        read_all(&file, &self.path.join(name))
    }

    /// `None` if this kernel has no such file.
    pub(crate) fn read_if_there(&self, name: &str) -> Result<Option<String>, SysError> {
        match self.read(name) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::accessat(&self.fd, name, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
    }

    /// A process that has just ended can keep its group busy for a moment.
    pub(crate) fn remove(mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_micros(100);
        loop {
            match rustix::fs::rmdir(&self.path) {
                Err(Errno::BUSY) if Instant::now() < deadline => {
                    proc::poll(&mut [], Some(pause))
                        .doing("waiting for a control group to empty", "try again")?;
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                // Already removed by another process.
                Ok(()) | Err(Errno::NOENT) => {
                    self.is_removed = true;
                    return Ok(());
                }
                Err(errno) => {
                    return Err(SysError::new("rmdir", self.path.display().to_string(), errno))
                        .doing(
                            "removing a control group",
                            "its cgroup.procs lists who is still in it; the next run removes it \
                             once it is empty",
                        );
                }
            }
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.is_removed && self.maker == std::process::id() {
            // If it is busy, the next run sweeps it.
            let _ = rustix::fs::rmdir(&self.path);
        }
    }
}

/// The directory, open and locked, if no other process has locked it and it still has this name.
pub(crate) fn lock_named(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).ok()?;
    let held = rustix::fs::fstat(&fd).ok()?;
    let named = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    ((held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)).then_some(fd)
}

fn not_made(source: SysError) -> CgroupError {
    let fix = match source.errno {
        Errno::EXIST => "a run of that name has one already; end it first",
        Errno::AGAIN => "cgroup.max.descendants or cgroup.max.depth of a group above is reached",
        _ => "sandbox doctor says which control groups can be used here",
    };
    CgroupError::Refused { doing: "making a control group", source, fix }
}

/// Writes a file of a group that we do not hold.
pub(crate) fn write_at(directory: &Path, name: &str, value: &str) -> Result<(), SysError> {
    let path = directory.join(name);
    write_to(open_in(CWD, &path, OFlags::WRONLY)?, &path, value)
}

/// Reads a file of a group that we do not hold.
pub(crate) fn read_at(directory: &Path, name: &str) -> Result<String, SysError> {
    let path = directory.join(name);
    read_all(open_in(CWD, &path, OFlags::RDONLY)?, &path)
}

fn open_in(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, SysError> {
    rustix::fs::openat(directory, path, flags | OFlags::CLOEXEC, Mode::empty()).at("open", path)
}

/// The kernel takes a value in a single write only.
fn write_to(file: impl AsFd, path: &Path, value: &str) -> Result<(), SysError> {
    match rustix::io::write(&file, value.as_bytes()) {
        Ok(written) if written == value.len() => Ok(()),
        Ok(_) => Err(Errno::IO),
        Err(errno) => Err(errno),
    }
    .map_err(|errno| SysError::new("write", format!("{value:?} to {}", path.display()), errno))
}

/// Reads from the start, independent of the file offset. The kernel returns such a file at once, so a short read is its
/// end. Reading on would mark a change in between as seen, and poll would not report it.
pub(crate) fn read_all(file: impl AsFd, path: &Path) -> Result<String, SysError> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 4096];
    while bytes.len() < MAX_READ {
        let read = rustix::io::pread(&file, &mut chunk, bytes.len() as u64).at("read", path)?;
        bytes.extend_from_slice(&chunk[..read]);
        if read < chunk.len() {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
