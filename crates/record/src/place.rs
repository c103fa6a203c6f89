//! A file at a user-chosen path that is replaced atomically, even if the command can write to that directory.
//!
//! The directory is opened before the command starts and kept open: replacing a directory on the path by a link later
//! has no effect. Must never replace anything but a regular file (F20).

use crate::error::{RecordError, Result};
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// Bounds the cleanup of a very large directory.
const MAX_SWEPT_THROUGH: usize = 10_000;

#[derive(Debug)]
pub(crate) struct OutputFile {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl OutputFile {
    /// Fails now if nothing could be written later.
    pub(crate) fn prepare(path: &Path) -> Result<OutputFile> {
        let no_name = || RecordError::NoFileName(path.to_owned());
        let name = path.file_name().ok_or_else(no_name)?.to_owned();
        let parent = match path.parent().ok_or_else(no_name)? {
            empty if empty == Path::new("") => Path::new("."),
            parent => parent,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())
            .map_err(RecordError::io("open the directory", parent))?;
        let place = OutputFile { directory, name, path: path.to_owned() };
        place.refuse_what_is_not_regular()?;
        Ok(place)
    }

    /// An auxiliary file: hidden, in the same directory, and named after this one.
    pub(crate) fn beside(&self, suffix: &str) -> Result<OutputFile> {
        let directory = rustix::io::fcntl_dupfd_cloexec(&self.directory, 3)
            .map_err(RecordError::io("open the directory of", &self.path))?;
        let name = self.hidden_name(suffix);
        let place = OutputFile { directory, path: self.path.with_file_name(&name), name };
        place.refuse_what_is_not_regular()?;
        Ok(place)
    }

    fn hidden_name(&self, suffix: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".");
        name.push(suffix);
        name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails unless this user may create and rename files there.
    pub(crate) fn can_be_replaced(&self) -> Result<()> {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&self.directory, ".", wanted, AtFlags::EACCESS)
            .map_err(RecordError::io("create a file beside", &self.path))
    }

    /// Fails unless this much can be written there. Uses an unnamed file, which disappears even if we are killed.
    pub(crate) fn try_to_write(&self, content: &[u8]) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.directory, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => {
                return File::from(fd)
                    .write_all(content)
                    .map_err(RecordError::io("write", &self.path));
            }
            // Not every file system supports unnamed files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(errno) => return Err(RecordError::io("create a file beside", &self.path)(errno)),
        }
        let temporary = self.hidden_name(&Uuid::now_v7().simple().to_string());
        let written = self.write_temporary(&temporary, content, Mode::RUSR | Mode::WUSR);
        let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        written
    }

    /// Opens the present file, never through a link and without blocking.
    pub(crate) fn open(&self, flags: OFlags, mode: Mode) -> Result<Option<File>> {
        self.refuse_what_is_not_regular()?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.directory, &self.name, flags, mode) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(RecordError::io("open", &self.path)(errno)),
        }
    }

    /// Whether this open file is still the one with the name.
    pub(crate) fn holds(&self, file: &File) -> Result<bool> {
        let open = rustix::fs::fstat(file).map_err(RecordError::io("examine", &self.path))?;
        let there = self.stat()?;
        Ok(there.is_some_and(|it| (it.st_dev, it.st_ino) == (open.st_dev, open.st_ino)))
    }

    /// Metadata of the present file.
    pub(crate) fn stat(&self) -> Result<Option<Stat>> {
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok(Some(there)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(RecordError::io("examine", &self.path)(errno)),
        }
    }

    /// A reader sees the old content or the new one. The mode is set regardless of the umask.
    pub(crate) fn replace(&self, content: &[u8], mode: Mode) -> Result<()> {
        self.refuse_what_is_not_regular()?;
        let temporary = self.hidden_name(&Uuid::now_v7().simple().to_string());
        let written = self.write_temporary(&temporary, content, mode).and_then(|()| {
            // rename(2) replaces the name and never follows it: a link created meanwhile is just removed.
            rustix::fs::renameat(&self.directory, &temporary, &self.directory, &self.name)
                .map_err(RecordError::io("write", &self.path))
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes temporary files older than `age` of writers that were killed before the rename. Best effort: what cannot
    /// be read or removed stays.
    pub(crate) fn sweep_temporaries(&self, age: Duration) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.directory, ".", flags, Mode::empty());
        let Ok(entries) = opened.and_then(|directory| Dir::read_from(&directory)) else { return };
        for entry in entries.take(MAX_SWEPT_THROUGH).map_while(Result::ok) {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if self.is_temporary(name) && self.is_older(name, age) {
                let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
    }

    fn is_temporary(&self, name: &OsStr) -> bool {
        let prefix = self.hidden_name("");
        name.as_bytes().strip_prefix(prefix.as_bytes()).is_some_and(|id| {
            std::str::from_utf8(id).is_ok_and(|id| id.len() == 32 && Uuid::try_parse(id).is_ok())
        })
    }

    fn is_older(&self, name: &OsStr, age: Duration) -> bool {
        let Ok(stat) = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        let written = u64::try_from(stat.st_mtime).map(Duration::from_secs);
        let written = written.ok().and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && written.is_some_and(|then| then.elapsed().is_ok_and(|passed| passed > age))
    }

    fn write_temporary(&self, name: &OsStr, content: &[u8], mode: Mode) -> Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(RecordError::io("create a file beside", &self.path))?;
        rustix::fs::fchmod(&fd, mode).map_err(RecordError::io("set the mode of", &self.path))?;
        File::from(fd).write_all(content).map_err(RecordError::io("write", &self.path))
    }

    /// Also prevents root from replacing a device such as `/dev/null`.
    fn refuse_what_is_not_regular(&self) -> Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        match rustix::fs::statat(&self.directory, &self.name, flags) {
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(RecordError::io("examine", &self.path)(errno)),
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Ok(()),
                FileType::Symlink => Err(RecordError::SymbolicLink(self.path.clone())),
                _ => Err(RecordError::NotRegular(self.path.clone())),
            },
        }
    }
}
