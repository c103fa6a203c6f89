//! Writes a file so that readers see the old content or the new one, never a part: the new content is collected in a file without a
//! name, on the same file system, which takes the name at the end.
//!
//! That is not possible everywhere: not where the kernel cannot make such a file; where the directory is not writable by itself, but
//! the file is, or somebody would be asked about the directory; and where a new file would not be the same as the old one with other
//! content, because that has a second name or another owner. There it is collected in the sandbox's own `/tmp` and copied into
//! the file at the end, and a copy that fails may leave a part.

use crate::names::{At as _, make_parents_of};
use crate::protocol::{FileError, FileInfo, FileVersion, IfExists, WriteOptions};
use palisade_sys::mounts::mount_id;
use palisade_sys::{Errno, Mode, OFlags};
use rustix::fs::{AtFlags, CWD, FileType as KernelType, Stat, StatVfsMountFlags};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Where content is collected that cannot be collected beside its file. Every sandbox has it, and nobody else sees it.
const OWN_TEMPORARY: &str = "/tmp";
/// What a client can give of permissions.
const PERMISSIONS: u32 = 0o777;
/// Links that are followed, as many as the kernel follows.
const MAX_LINKS: usize = 40;
/// Names that are tried.
const TRIES: u32 = 32;
/// `FUSE_SUPER_MAGIC`: the gate's file system, where a new name is asked about.
const FUSE: i64 = 0x6573_5546;

#[derive(Debug)]
pub(crate) struct Writing {
    /// Where links lead.
    target: PathBuf,
    if_exists: IfExists,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    /// A file without a name that takes the name of the target.
    Unnamed { file: File, directory: PathBuf },
    /// Copied into the target, which is open if it was there.
    Collected { content: File, into: Option<File>, mode: Mode },
    /// Each write counts at once.
    Appending(File),
}

impl Writing {
    pub(crate) fn open(path: &Path, options: &WriteOptions) -> Result<(Self, FileInfo), FileError> {
        let WriteOptions { if_exists, make_parents, mode } = *options;
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
            (_, None) => Destination::for_new(&target, mode)?,
            (_, Some(stat)) => Destination::for_old(&target, stat)?,
        };
        let stat = rustix::fs::fstat(to.file()).at("stat", path)?;
        Ok((Self { target, if_exists, to }, FileInfo::new(&stat, None)))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.to.file_mut().write_all(bytes).at("write", &self.target)
    }

    /// Consumes it whether it works or not: what could not be committed is forgotten.
    pub(crate) fn commit(self) -> Result<FileInfo, FileError> {
        let Self { target, if_exists, to } = self;
        if let IfExists::ReplaceVersion(version) = if_exists {
            // Who changes it between this look and the end is not noticed: the kernel has no such call.
            let stat = rustix::fs::lstat(&target).at("stat", &target)?;
            if FileVersion::of(&stat) != version {
                return Err(Errno::AGAIN).at("replace", &target);
            }
        }
        match to {
            Destination::Unnamed { mut file, directory } => {
                match give_name(&file, &directory, &target, if_exists) {
                    // Mounted there meanwhile, or a kernel that gives such a file no name.
                    Err(Errno::BUSY | Errno::XDEV | Errno::NOENT) => {
                        let flags = new_or_old(if_exists);
                        let mut into = open(&target, flags, Mode::from_raw_mode(0o666))?;
                        copy(&mut file, &mut into).at("write", &target)?;
                    }
                    named => named.at("rename", &target)?,
                }
            }
            Destination::Collected { mut content, into, mode } => {
                let mut into = match into {
                    Some(into) => into,
                    None => open(&target, new_or_old(if_exists), mode)?,
                };
                copy(&mut content, &mut into).at("write", &target)?;
            }
            Destination::Appending(_) => {}
        }
        crate::names::info(&target, false)
    }
}

fn new_or_old(if_exists: IfExists) -> OFlags {
    match if_exists {
        IfExists::Refuse => OFlags::CREATE | OFlags::EXCL,
        IfExists::Replace | IfExists::ReplaceVersion(_) | IfExists::Append => OFlags::CREATE,
    }
}

/// By a name beside the target where there is something to replace: a file without a name can only be given one that is free.
fn give_name(
    file: &File,
    directory: &Path,
    target: &Path,
    if_exists: IfExists,
) -> Result<(), Errno> {
    let link = |to: &Path| {
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, from, CWD, to, AtFlags::SYMLINK_FOLLOW)
    };
    match link(target) {
        Err(Errno::EXIST) if if_exists != IfExists::Refuse => {}
        linked => return linked,
    }
    let process = rustix::process::getpid();
    for number in 0..TRIES {
        let beside = directory.join(format!(".palisade-write-{process}-{number}"));
        match link(&beside) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(()) => {
                return rustix::fs::rename(&beside, target).inspect_err(|_| {
                    // The error says more than that the name stays.
                    let _ = rustix::fs::unlink(&beside);
                });
            }
        }
    }
    Err(Errno::EXIST)
}

impl Destination {
    fn for_new(target: &Path, mode: Mode) -> Result<Self, FileError> {
        let directory = directory_of(target);
        match unnamed(&directory, None, mode) {
            Some(file) => Ok(Self::Unnamed { file, directory }),
            None => Ok(Self::Collected { content: temporary()?, into: None, mode }),
        }
    }

    /// Opened first: who may not write it is refused, and who is asked, is asked about the file.
    fn for_old(target: &Path, stat: &Stat) -> Result<Self, FileError> {
        let into = open(target, OFlags::empty(), Mode::empty())?;
        let directory = directory_of(target);
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
        let mode = Mode::from_raw_mode(stat.st_mode & PERMISSIONS);
        let beside = (stat.st_nlink == 1 && is_own)
            .then(|| unnamed(&directory, Some(&into), mode))
            .flatten()
            // The umask counts for new files, and this stands for an old one.
            .filter(|file| rustix::fs::fchmod(file, mode).is_ok());
        Ok(match beside {
            Some(file) => Self::Unnamed { file, directory },
            None => Self::Collected { content: temporary()?, into: Some(into), mode },
        })
    }

    fn file(&self) -> &File {
        match self {
            Self::Unnamed { file, .. } | Self::Appending(file) => file,
            Self::Collected { content, .. } => content,
        }
    }

    fn file_mut(&mut self) -> &mut File {
        match self {
            Self::Unnamed { file, .. } | Self::Appending(file) => file,
            Self::Collected { content, .. } => content,
        }
    }
}

fn directory_of(target: &Path) -> PathBuf {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// A file without a name in this directory, if that can be had without asking anybody, and if `beside` is on the same mount.
fn unnamed(directory: &Path, beside: Option<&File>, mode: Mode) -> Option<File> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(directory, flags, Mode::empty()).ok()?;
    let is_gate = rustix::fs::fstatfs(&opened).ok()?.f_type == FUSE;
    let flags = rustix::fs::fstatvfs(&opened).ok()?.f_flag;
    if is_gate || flags.contains(StatVfsMountFlags::RDONLY) {
        return None;
    }
    if let Some(beside) = beside
        && mount_id(beside).ok()? != mount_id(&opened).ok()?
    {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, mode).ok().map(File::from)
}

fn temporary() -> Result<File, FileError> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let opened = rustix::fs::open(OWN_TEMPORARY, flags, Mode::RUSR | Mode::WUSR);
    opened.at("open", Path::new(OWN_TEMPORARY)).map(File::from)
}

fn open(path: &Path, flags: OFlags, mode: Mode) -> Result<File, FileError> {
    // Without NONBLOCK a FIFO that took the file's place would keep everybody waiting.
    let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(path, flags, mode).at("open", path).map(File::from)
}

/// What a write goes to: not a link, but what it leads to, as for any program, also where there is nothing yet.
fn behind_links(path: &Path) -> Result<PathBuf, FileError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&target) {
            Ok(link) => target = directory_of(&target).join(link),
            Err(_) if target.file_name().is_none() => return Err(Errno::ISDIR).at("open", path),
            Err(_) => return Ok(target),
        }
    }
    Err(Errno::LOOP).at("open", path)
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

fn copy(from: &mut File, to: &mut File) -> io::Result<()> {
    from.seek(SeekFrom::Start(0))?;
    to.seek(SeekFrom::Start(0))?;
    to.set_len(0)?;
    io::copy(from, to).map(drop)
}
