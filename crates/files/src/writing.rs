//! Writes a file so that readers see the old content or the new one, never a part: the new content is collected beside the
//! file and takes its name at the end. Where that would change more than the content (a second name, another owner, a file that
//! is mounted by itself), or where nothing can be made beside it, it is collected elsewhere and copied into the file.

use crate::names::{At as _, make_parents_of};
use crate::protocol::{FileError, FileInfo, FileVersion, IfExists};
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{CWD, FileType as KernelType, RenameFlags, Stat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Where content is collected that cannot be collected beside its file. Every sandbox has it, and nobody else sees it.
const ELSEWHERE: &str = "/tmp";
/// Permissions that a new file is not given: somebody else's rights are not for a client to hand out.
const PERMISSIONS: u32 = 0o777;
/// Names that are tried. Each writer of a sandbox has its own.
const TRIES: u32 = 32;

#[derive(Debug)]
pub(crate) struct Writing {
    target: PathBuf,
    if_exists: IfExists,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    /// Takes the name of the file at the end.
    Beside { file: File, path: PathBuf },
    /// Copied into the file at the end.
    Elsewhere { collected: File, file: File },
    /// Each write counts at once.
    Appending(File),
}

impl Writing {
    pub(crate) fn open(
        path: &Path,
        if_exists: IfExists,
        make_parents: bool,
        mode: u32,
    ) -> Result<(Self, FileInfo), FileError> {
        if make_parents {
            make_parents_of(path)?;
        }
        let target = behind_links(path)?;
        let there = match rustix::fs::lstat(&target) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno).at("stat", path),
        };
        check(there.as_ref(), if_exists).at("open", path)?;
        let mode = Mode::from_raw_mode(mode & PERMISSIONS);
        let to = match (if_exists, &there) {
            (IfExists::Append, _) => {
                let flags = OFlags::CREATE | OFlags::APPEND;
                Destination::Appending(open(&target, flags, mode)?)
            }
            (_, None) => Destination::beside(&target, mode)?,
            (_, Some(stat)) if is_replaceable(stat) => {
                let kept = Mode::from_raw_mode(stat.st_mode & PERMISSIONS);
                match Destination::beside(&target, kept) {
                    Ok(Destination::Beside { file, path }) => {
                        // The umask counts for new files, and this is an old one.
                        rustix::fs::fchmod(&file, kept).at("chmod", &path)?;
                        Destination::Beside { file, path }
                    }
                    Ok(other) => other,
                    Err(_) => Destination::elsewhere(&target)?,
                }
            }
            (_, Some(_)) => Destination::elsewhere(&target)?,
        };
        let stat = rustix::fs::fstat(to.file()).at("stat", path)?;
        Ok((Self { target, if_exists, to }, FileInfo::new(&stat, None)))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let file = match &mut self.to {
            Destination::Beside { file, .. } | Destination::Appending(file) => file,
            Destination::Elsewhere { collected, .. } => collected,
        };
        file.write_all(bytes).at("write", &self.target)
    }

    /// Consumes the handle whether it works or not: what could not be committed is forgotten.
    pub(crate) fn commit(mut self) -> Result<FileInfo, FileError> {
        let target = self.target.clone();
        if let IfExists::ReplaceVersion(version) = self.if_exists {
            let stat = rustix::fs::lstat(&target).at("stat", &target)?;
            if FileVersion::of(&stat) != version {
                return Err(Errno::AGAIN).at("replace", &target);
            }
        }
        let flags = match self.if_exists {
            IfExists::Refuse => RenameFlags::NOREPLACE,
            IfExists::Replace | IfExists::ReplaceVersion(_) | IfExists::Append => {
                RenameFlags::empty()
            }
        };
        match &mut self.to {
            Destination::Beside { file, path } => {
                match rustix::fs::renameat_with(CWD, &*path, CWD, &target, flags) {
                    // A file that is mounted by itself cannot be replaced, and may be written.
                    Err(Errno::BUSY | Errno::XDEV) => {
                        let mut into = open(&target, OFlags::empty(), Mode::empty())?;
                        copy(file, &mut into).at("write", &target)?;
                    }
                    renamed => {
                        renamed.at("rename", &target)?;
                        // Nothing to remove any more.
                        *path = PathBuf::new();
                    }
                }
            }
            Destination::Elsewhere { collected, file } => {
                copy(collected, file).at("write", &target)?;
            }
            Destination::Appending(_) => {}
        }
        crate::names::info(&target, false)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Destination::Beside { path, .. } = &self.to
            && !path.as_os_str().is_empty()
        {
            // Whatever is left of it is one hidden file.
            let _ = rustix::fs::unlink(path);
        }
    }
}

impl Destination {
    fn beside(target: &Path, mode: Mode) -> Result<Self, FileError> {
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let process = rustix::process::getpid();
        for number in 0..TRIES {
            let path = directory.join(format!(".palisade-write-{process}-{number}"));
            match open(&path, OFlags::CREATE | OFlags::EXCL, mode) {
                Err(error) if error.errno == Errno::EXIST => {}
                Err(error) => return Err(FileError { path: target.to_owned(), ..error }),
                Ok(file) => return Ok(Self::Beside { file, path }),
            }
        }
        Err(Errno::EXIST).at("open", target)
    }

    /// Opened now, so that a file that may not be written fails before anything is collected.
    fn elsewhere(target: &Path) -> Result<Self, FileError> {
        let file = open(target, OFlags::empty(), Mode::empty())?;
        let owner = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let collected =
            rustix::fs::open(ELSEWHERE, flags, owner).at("open", Path::new(ELSEWHERE))?;
        Ok(Self::Elsewhere { collected: collected.into(), file })
    }

    fn file(&self) -> &File {
        match self {
            Self::Beside { file, .. } | Self::Elsewhere { file, .. } | Self::Appending(file) => {
                file
            }
        }
    }
}

fn open(path: &Path, flags: OFlags, mode: Mode) -> Result<File, FileError> {
    // Without NONBLOCK a FIFO that took the file's place would keep everybody waiting.
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    match rustix::fs::open(path, flags, mode) {
        // A file that may be written and not read.
        Err(Errno::ACCESS) => {
            rustix::fs::open(path, flags.difference(OFlags::RDWR) | OFlags::WRONLY, mode)
        }
        opened => opened,
    }
    .at("open", path)
    .map(File::from)
}

/// What a write goes to: not a link, but what it leads to, as for any program.
fn behind_links(path: &Path) -> Result<PathBuf, FileError> {
    match rustix::fs::lstat(path) {
        Ok(stat) if KernelType::from_raw_mode(stat.st_mode) == KernelType::Symlink => {
            std::fs::canonicalize(path).at("open", path)
        }
        _ if path.file_name().is_none_or(|name| name == OsStr::new("..")) => {
            Err(Errno::ISDIR).at("open", path)
        }
        _ => Ok(path.to_owned()),
    }
}

fn check(there: Option<&Stat>, if_exists: IfExists) -> Result<(), Errno> {
    let Some(stat) = there else {
        return match if_exists {
            IfExists::ReplaceVersion(_) => Err(Errno::AGAIN),
            IfExists::Replace | IfExists::Refuse | IfExists::Append => Ok(()),
        };
    };
    match (KernelType::from_raw_mode(stat.st_mode), if_exists) {
        (_, IfExists::Refuse) => Err(Errno::EXIST),
        (KernelType::RegularFile, _) => Ok(()),
        (KernelType::Directory, _) => Err(Errno::ISDIR),
        _ => Err(Errno::OPNOTSUPP),
    }
}

fn is_replaceable(stat: &Stat) -> bool {
    stat.st_nlink == 1 && stat.st_uid == rustix::process::geteuid().as_raw()
}

fn copy(from: &mut File, to: &mut File) -> io::Result<()> {
    from.seek(SeekFrom::Start(0))?;
    to.seek(SeekFrom::Start(0))?;
    to.set_len(0)?;
    io::copy(from, to).map(drop)
}
