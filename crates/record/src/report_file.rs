//! Writes a report where the user asked for it, though the command may have been able to write there.
//!
//! The directory is opened before the command starts and kept: a directory on the way that is later
//! made a link leads nowhere. The file is replaced whole, and only if it is a regular one (F20).

use crate::error::RecordError;
use crate::report::RunReport;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// A place for a report, fixed before the command starts.
#[derive(Debug)]
pub struct ReportFile {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl ReportFile {
    /// Fails now if the report could not be written there later.
    pub fn prepare(path: &Path) -> Result<ReportFile, RecordError> {
        let no_name = || RecordError::NoFileName(path.to_owned());
        let name = path.file_name().ok_or_else(no_name)?.to_owned();
        let parent = match path.parent().ok_or_else(no_name)? {
            empty if empty == Path::new("") => Path::new("."),
            parent => parent,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())
            .map_err(RecordError::io("open the directory", parent))?;
        let file = ReportFile { directory, name, path: path.to_owned() };
        file.refuse_what_is_not_regular()?;
        Ok(file)
    }

    /// Replaces the file by the report, mode 0600. Whoever reads it sees the old one or the new one.
    pub fn write(&self, report: &RunReport) -> Result<(), RecordError> {
        let json = report.to_json()?;
        self.refuse_what_is_not_regular()?;
        let mut temporary = OsString::from(".");
        temporary.push(&self.name);
        temporary.push(format!(".{}", Uuid::now_v7().simple()));
        let written = self.write_temporary(&temporary, json.as_bytes()).and_then(|()| {
            // Replaces a name, never follows one: a link that came meanwhile is merely gone.
            rustix::fs::renameat(&self.directory, &temporary, &self.directory, &self.name)
                .map_err(RecordError::io("write the report", &self.path))
        });
        if written.is_err() {
            // The first error is the one worth telling.
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        written
    }

    fn write_temporary(&self, name: &OsStr, content: &[u8]) -> Result<(), RecordError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(RecordError::io("create the report beside", &self.path))?;
        File::from(fd).write_all(content).map_err(RecordError::io("write the report", &self.path))
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

#[cfg(test)]
#[path = "report_file_tests.rs"]
mod tests;
