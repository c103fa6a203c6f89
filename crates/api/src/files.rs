//! Files of a sandbox, read and written by a process inside, under the very plan that commands obey (TOOL-3). Nothing here opens a
//! path of the host, and nothing that comes back is believed: it is what a command could have said.

use crate::core::Core;
use crate::error::{Error, Result};
use palisade_session::files::{self, Client, ClientError, SessionFiles, WriteOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Of a file that is read as a whole, unless something else is said.
const MAX_READ: u64 = 256 << 20;
/// Entries of a listing.
const MAX_LISTED: usize = 100_000;
/// Of a new file, less the umask.
const USUAL_MODE: u32 = 0o666;

/// The files of a sandbox. A relative path counts from the project.
///
/// Where a command would be asked about, such as a path that is not granted, a question waits for its answer, and so does the call here.
///
/// ```no_run
/// let sandbox = palisade::Sandbox::create().start()?;
/// let files = sandbox.files();
/// files.write("notes/one", "text\n")?;
/// assert_eq!(files.read_text("notes/one")?, "text\n");
/// files.rename("notes/one", "notes/two")?;
/// for entry in files.list("notes")? {
///     println!("{} {}", entry.path.display(), entry.info.size);
/// }
/// files.remove_all("notes")?;
/// # Ok::<(), palisade::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    core: &'a Core,
}

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// What it is.
    pub file_type: FileType,
    /// Permissions, and the bits of chmod(2).
    pub mode: u32,
    /// In bytes.
    pub size: u64,
    /// Its owner, as the sandbox sees it.
    pub uid: u32,
    /// Its group, as the sandbox sees it.
    pub gid: u32,
    /// Of its content.
    pub modified: SystemTime,
    /// Where a link leads.
    pub target: Option<PathBuf>,
    version: files::FileVersion,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a FIFO or a socket.
    Other,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// From the directory that was listed.
    pub path: PathBuf,
    /// What it is.
    pub info: FileInfo,
}

/// What happens if there is something at the path that is written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// It is replaced, as a whole.
    #[default]
    Replace,
    /// It is replaced if it is still the file that [`Files::stat`] gave; an error otherwise.
    ReplaceVersion(FileInfo),
    /// An error.
    Refuse,
    /// The content comes after what is there.
    Append,
}

/// How a file is written.
///
/// ```
/// use palisade::{IfExists, Write};
///
/// let log = Write { if_exists: IfExists::Append, ..Write::default() };
/// assert!(log.make_parents);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What happens if there is something.
    pub if_exists: IfExists,
    /// Whether missing directories are made.
    pub make_parents: bool,
    /// Permissions of a new file, less the umask. An old file keeps its own.
    pub mode: u32,
}

impl Default for Write {
    fn default() -> Self {
        Self { if_exists: IfExists::default(), make_parents: true, mode: USUAL_MODE }
    }
}

impl<'a> Files<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Self { core }
    }

    /// Reads a file of up to 256 MiB.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        self.read_up_to(path, MAX_READ)
    }

    /// The same with another limit; a larger file is an error.
    pub fn read_up_to(&self, path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>> {
        self.with(|client| client.read(path.as_ref(), limit).map(|(content, _)| content))
    }

    /// Reads a file as text; what is not UTF-8 is replaced.
    pub fn read_text(&self, path: impl AsRef<Path>) -> Result<String> {
        self.read(path).map(|content| String::from_utf8_lossy(&content).into_owned())
    }

    /// Writes a file, with the directories above it. Until all of it is there, it stays as it was.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<FileInfo> {
        self.write_as(path, content, &Write::default())
    }

    /// The same, in another way.
    pub fn write_as(
        &self,
        path: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
        how: &Write,
    ) -> Result<FileInfo> {
        let options = how.into();
        self.with(|client| client.write(path.as_ref(), &mut content.as_ref(), options))
            .map(FileInfo::from)
    }

    /// The entries of a directory.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Listed>> {
        self.list_to_depth(path, 1)
    }

    /// The same with those of the directories below, down to this depth. Links are not followed.
    pub fn list_to_depth(&self, path: impl AsRef<Path>, depth: u32) -> Result<Vec<Listed>> {
        let found = self.with(|client| client.list(path.as_ref(), depth, MAX_LISTED))?;
        Ok(found.into_iter().map(|it| Listed { path: it.path, info: it.info.into() }).collect())
    }

    /// What there is at a path. A link is itself.
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<FileInfo> {
        self.with(|client| client.info(path.as_ref(), false)).map(FileInfo::from)
    }

    /// Whether there is something at a path, with links followed.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool> {
        match self.with(|client| client.info(path.as_ref(), true)) {
            Ok(_) => Ok(true),
            Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a directory, with those above it. One that is there is no error.
    pub fn make_dir(&self, path: impl AsRef<Path>) -> Result<FileInfo> {
        self.with(|client| client.make_directory(path.as_ref(), true)).map(FileInfo::from)
    }

    /// Renames a file or a directory. What is at the new path is an error.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<FileInfo> {
        self.with(|client| client.rename(from.as_ref(), to.as_ref(), false)).map(FileInfo::from)
    }

    /// The same; what is at the new path is replaced.
    pub fn replace(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<FileInfo> {
        self.with(|client| client.rename(from.as_ref(), to.as_ref(), true)).map(FileInfo::from)
    }

    /// Removes a file or an empty directory.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<()> {
        self.with(|client| client.remove(path.as_ref(), false))
    }

    /// Removes a file, or a directory with all that is in it.
    pub fn remove_all(&self, path: impl AsRef<Path>) -> Result<()> {
        self.with(|client| client.remove(path.as_ref(), true))
    }

    /// A process of its own for each call: while one runs, the sandbox is not idle, and cannot be rolled back.
    fn with<T>(&self, work: impl FnOnce(&mut Client) -> Result<T, ClientError>) -> Result<T> {
        let mut files = SessionFiles::open(&self.core.directory)?;
        let done = work(&mut files.client);
        files.close();
        Ok(done?)
    }
}

impl From<&Write> for WriteOptions {
    fn from(how: &Write) -> Self {
        let if_exists = match &how.if_exists {
            IfExists::Replace => files::IfExists::Replace,
            IfExists::ReplaceVersion(info) => files::IfExists::ReplaceVersion(info.version),
            IfExists::Refuse => files::IfExists::Refuse,
            IfExists::Append => files::IfExists::Append,
        };
        Self { if_exists, make_parents: how.make_parents, mode: how.mode }
    }
}

impl From<files::FileInfo> for FileInfo {
    fn from(info: files::FileInfo) -> Self {
        Self {
            file_type: match info.file_type {
                files::FileType::File => FileType::File,
                files::FileType::Directory => FileType::Directory,
                files::FileType::Link => FileType::Link,
                files::FileType::Other => FileType::Other,
            },
            mode: info.mode,
            size: info.size,
            uid: info.uid,
            gid: info.gid,
            modified: time(info.version.modified),
            target: info.target,
            version: info.version,
        }
    }
}

/// What comes from the sandbox may be any number.
fn time(nanoseconds: i128) -> SystemTime {
    let distance = u64::try_from(nanoseconds.unsigned_abs()).unwrap_or(u64::MAX);
    let distance = Duration::from_nanos(distance);
    let moved = match nanoseconds >= 0 {
        true => SystemTime::UNIX_EPOCH.checked_add(distance),
        false => SystemTime::UNIX_EPOCH.checked_sub(distance),
    };
    moved.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::{Duration, SystemTime, time};

    #[test]
    fn no_time_from_a_sandbox_is_too_strange() {
        assert_eq!(time(1_500_000_000), SystemTime::UNIX_EPOCH + Duration::from_millis(1500));
        assert!(time(-1) < SystemTime::UNIX_EPOCH);
        let far = [i128::MAX, i128::MIN].map(time);
        assert!(far[1] < SystemTime::UNIX_EPOCH && far[0] > SystemTime::UNIX_EPOCH);
    }
}
