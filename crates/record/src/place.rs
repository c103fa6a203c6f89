//! A file that is replaced whole, at a place the user named, though the command may have been able to
//! write there.
//!
//! The directory is opened before the command starts and kept: a directory on the way that is later
//! made a link leads nowhere. Only a regular file is ever replaced (F20).

use crate::error::RecordError;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct Place {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Place {
    /// Fails now if nothing could be written there later.
    pub(crate) fn prepare(path: &Path) -> Result<Place, RecordError> {
        let no_name = || RecordError::NoFileName(path.to_owned());
        let name = path.file_name().ok_or_else(no_name)?.to_owned();
        let parent = match path.parent().ok_or_else(no_name)? {
            empty if empty == Path::new("") => Path::new("."),
            parent => parent,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())
            .map_err(RecordError::io("open the directory", parent))?;
        let place = Place { directory, name, path: path.to_owned() };
        place.refuse_what_is_not_regular()?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails unless this user may make and rename files there.
    pub(crate) fn can_be_replaced(&self) -> Result<(), RecordError> {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&self.directory, ".", wanted, AtFlags::EACCESS)
            .map_err(RecordError::io("create a file beside", &self.path))
    }

    /// What is there now, never through a link and without waiting for it.
    pub(crate) fn open(&self, flags: OFlags, mode: Mode) -> Result<Option<File>, RecordError> {
        self.refuse_what_is_not_regular()?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.directory, &self.name, flags, mode) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(RecordError::io("open", &self.path)(errno)),
        }
    }

    /// Whether this open file is still the one at the place.
    pub(crate) fn holds(&self, file: &File) -> Result<bool, RecordError> {
        let open = rustix::fs::fstat(file).map_err(RecordError::io("examine", &self.path))?;
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (open.st_dev, open.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(RecordError::io("examine", &self.path)(errno)),
        }
    }

    /// Whoever reads it sees the old one or the new one. The mode is set whatever the umask is.
    pub(crate) fn replace(&self, content: &[u8], mode: Mode) -> Result<(), RecordError> {
        self.refuse_what_is_not_regular()?;
        let mut temporary = OsString::from(".");
        temporary.push(&self.name);
        temporary.push(format!(".{}", Uuid::now_v7().simple()));
        let written = self.write_temporary(&temporary, content, mode).and_then(|()| {
            // Replaces a name, never follows one: a link that came meanwhile is merely gone.
            rustix::fs::renameat(&self.directory, &temporary, &self.directory, &self.name)
                .map_err(RecordError::io("write", &self.path))
        });
        if written.is_err() {
            // The first error is the one worth telling.
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        written
    }

    fn write_temporary(&self, name: &OsStr, content: &[u8], mode: Mode) -> Result<(), RecordError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(RecordError::io("create a file beside", &self.path))?;
        rustix::fs::fchmod(&fd, mode).map_err(RecordError::io("set the mode of", &self.path))?;
        File::from(fd).write_all(content).map_err(RecordError::io("write", &self.path))
    }

    /// Also keeps root from replacing a device such as `/dev/null`.
    fn refuse_what_is_not_regular(&self) -> Result<(), RecordError> {
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
