//! Opens this crate's files, never through a link.
//!
//! A process that can write to the directory may have replaced the last component of a path (attack F20): a symbolic
//! link, a second hard link, a device or a pipe is refused.

use crate::error::{RecordError, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Without O_NONBLOCK, a pipe in place of the file would block the caller. It has no effect on a regular file.
const GUARDED: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// `None` if there is no such file.
pub(crate) fn open_existing(path: &Path, flags: OFlags) -> Result<Option<File>> {
    match rustix::fs::open(path, flags | GUARDED, Mode::empty()) {
        Ok(fd) => regular(File::from(fd), path).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(RecordError::SymbolicLink(path.to_owned())),
        Err(errno) => Err(RecordError::io("open", path)(errno)),
    }
}

/// Creates the file, 0600, and the directories above it, 0700, if they are missing.
pub(crate) fn open_or_create(path: &Path, flags: OFlags) -> Result<File> {
    let create = || rustix::fs::open(path, flags | GUARDED | OFlags::CREATE, PRIVATE);
    let opened = match create() {
        Err(Errno::NOENT) => {
            let directory = path.parent().unwrap_or(Path::new("/"));
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(RecordError::io("create the directory", directory))?;
            create()
        }
        other => other,
    };
    match opened {
        Ok(fd) => regular(File::from(fd), path),
        Err(Errno::LOOP) => Err(RecordError::SymbolicLink(path.to_owned())),
        Err(errno) => Err(RecordError::io("create", path)(errno)),
    }
}

fn regular(file: File, path: &Path) -> Result<File> {
    length_of_only_link(&file, path).map(|_| file)
}

/// The file's length, if it is a regular file with exactly one name. A file that was removed or replaced while open has
/// none, and what is written to it would be lost.
pub(crate) fn length_of_only_link(file: &File, path: &Path) -> Result<u64> {
    let metadata = file.metadata().map_err(RecordError::io("examine", path))?;
    if !metadata.is_file() {
        return Err(RecordError::NotRegular(path.to_owned()));
    }
    match metadata.nlink() {
        1 => Ok(metadata.len()),
        links => Err(RecordError::HardLinks { path: path.to_owned(), links }),
    }
}
