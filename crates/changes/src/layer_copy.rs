//! Copies an upper layer as it is: with whiteouts, opaque directories, hard links, holes, permissions and times. A session
//! may be writing in it, so a copy is bounded by what was there when it began, and must never follow a link.

use crate::attributes::{copy_opaque, set_attributes, user_attributes};
use crate::entry::{EntryKind, Found};
use crate::error::{ChangesError, Result};
use crate::file_copy::{
    BlockSharing, CopiedBytes, FileToCopy, copy_file, copy_side_by_side, finish_from, modified,
};
use crate::layers::{is_absence, set_mode};
use crate::listing::names_in;
use crate::paths::MAX_PATH_BYTES;
use crate::readable::{DIRECTORY, FILE, Readable, open_readable, readable};
use palisade_sys::beneath::{open_entry, open_on_mount};
use palisade_sys::{At as _, Mode, OFlags, Result as SysResult};
use rustix::fs::{
    AtFlags, FileType, chownat, fstat, linkat, mkdirat, mknodat, openat, readlinkat, statat,
    symlinkat, utimensat,
};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Gid, Uid};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How many levels of directories are open at once, with two descriptors each: a session decides how deep its tree is.
const MAX_OPEN: usize = 64;
/// A session can make files faster than anybody copies them.
const MAX_ENTRIES: u64 = 1_000_000;
/// What an entry counts on disk beside its content: a directory, a link or an attribute has a block of its own.
const ENTRY_BYTES: u64 = 4096;
/// How many files of a directory are copied side by side at a time.
const MAX_WAITING: usize = 1024;

const ABOVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedLayer {
    pub entries: u64,
    /// The length of its files.
    pub bytes: u64,
    /// What these take on disk: less where they have holes.
    pub disk_bytes: u64,
}

/// Who copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyThreads {
    /// The calling thread alone: for processes that fork later.
    One,
    /// A second one beside it, where there are many files.
    Two,
}

/// Copies the upper layer `from` to the new directory `name` of `parent`. Interrupted, it leaves a part there.
pub fn copy_layer(
    from: BorrowedFd<'_>,
    parent: BorrowedFd<'_>,
    name: &OsStr,
    threads: CopyThreads,
) -> Result<CopiedLayer> {
    let path = Path::new(name);
    mkdirat(parent, name, Mode::RWXU).at("mkdir", path)?;
    let top = open_on_mount(parent, path, DIRECTORY)?;
    let found = Found::of(&fstat(from).at("fstat", path)?);
    copy_tree(from, top.as_fd(), found, &mut OfSession { threads })
}

/// What a copy leaves out, and what it may do to read the rest.
pub(crate) trait CopyRules {
    /// Asked before an entry is copied, with what was copied so far.
    fn takes(&mut self, path: &Path, found: &Found, copied: &CopiedLayer) -> Result<bool>;
    /// None for a directory on another mount, whose content is left out.
    fn open_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<Readable>>;
    fn open_file(&self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Readable>;
    /// A directory that was open before.
    fn open_again(&self, entry: OwnedFd, path: &Path) -> Result<Readable>;
    /// Whether files may be copied side by side, opened as those of a session are.
    fn is_side_by_side(&self) -> bool {
        false
    }
}

/// An upper layer is ours: all of it is copied, and what its owner cannot read is made readable for a moment.
struct OfSession {
    threads: CopyThreads,
}

impl CopyRules for OfSession {
    fn takes(&mut self, _path: &Path, _found: &Found, copied: &CopiedLayer) -> Result<bool> {
        if copied.entries >= MAX_ENTRIES {
            return Err(ChangesError::TooMany {
                limit: usize::try_from(MAX_ENTRIES).unwrap_or(usize::MAX),
            });
        }
        Ok(true)
    }

    fn open_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<Readable>> {
        Ok(Some(open_readable(dir, name, DIRECTORY, path)?))
    }

    fn open_file(&self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Readable> {
        Ok(open_readable(dir, name, FILE, path)?)
    }

    fn open_again(&self, entry: OwnedFd, path: &Path) -> Result<Readable> {
        Ok(readable(entry, DIRECTORY | OFlags::CLOEXEC, path)?)
    }

    fn is_side_by_side(&self) -> bool {
        self.threads == CopyThreads::Two
    }
}

/// Copies everything in `from` that the rules take to the empty directory `top`.
pub(crate) fn copy_tree(
    from: BorrowedFd<'_>,
    top: BorrowedFd<'_>,
    found: Found,
    rules: &mut dyn CopyRules,
) -> Result<CopiedLayer> {
    let mut copier = Copier {
        top,
        first_names: HashMap::new(),
        blocks: BlockSharing::Untried,
        copied: CopiedLayer::default(),
        rules,
    };
    copier.copy(Level::top(from, top, found)?)?;
    Ok(copier.copied)
}

/// Gives a directory the permissions, the owner, the attributes and the time of another one.
pub fn look_like(model: BorrowedFd<'_>, directory: BorrowedFd<'_>) -> Result<()> {
    let path = Path::new("");
    let found = Found::of(&fstat(model).at("fstat", path)?);
    set_attributes(directory, &user_attributes(model, path)?, path)?;
    Ok(finish(directory, &found, path)?)
}

struct Copier<'t> {
    top: BorrowedFd<'t>,
    /// Where a file with several names was copied to, by device and inode.
    first_names: HashMap<(u64, u64), PathBuf>,
    blocks: BlockSharing,
    copied: CopiedLayer,
    rules: &'t mut dyn CopyRules,
}

/// A directory that is being copied.
struct Level {
    found: Found,
    /// Those that are still to be copied.
    names: std::vec::IntoIter<OsString>,
    /// None while it is too far above the one that is being copied.
    open: Option<OpenLevel>,
    /// Files that are copied together: at the latest before another directory comes.
    waiting: Vec<FileToCopy>,
}

struct OpenLevel {
    source: Readable,
    made: OwnedFd,
}

impl Level {
    fn top(from: BorrowedFd<'_>, to: BorrowedFd<'_>, found: Found) -> SysResult<Self> {
        let again = |dir| fcntl_dupfd_cloexec(dir, 0).call("fcntl");
        let source = Readable::from(again(from)?);
        Self::new(OpenLevel { source, made: again(to)? }, found, Path::new(""))
    }

    fn new(open: OpenLevel, found: Found, path: &Path) -> SysResult<Self> {
        let names = names_in(&open.source.file, path)?.into_iter();
        Ok(Self { found, names, open: Some(open), waiting: Vec::new() })
    }

    /// The open one below leads there.
    fn open_again(&mut self, below: &OpenLevel, path: &Path, rules: &dyn CopyRules) -> Result<()> {
        let entry = openat(&below.source.file, "..", ABOVE, Mode::empty()).at("openat", path)?;
        // A command can move what is being copied: the one above is another one then.
        if !Found::of(&fstat(&entry).at("fstat", path)?).is_same_inode(&self.found) {
            return Err(ChangesError::ChangedMeanwhile { path: path.to_owned() });
        }
        let source = rules.open_again(entry, path)?;
        // Nobody moves the copy.
        let flags = DIRECTORY | OFlags::CLOEXEC;
        let made = openat(&below.made, "..", flags, Mode::empty()).at("openat", path)?;
        self.open = Some(OpenLevel { source, made });
        Ok(())
    }
}

impl Copier<'_> {
    fn copy(&mut self, top: Level) -> Result<()> {
        let mut levels = vec![top];
        let mut path = PathBuf::new();
        while let Some(mut level) = levels.pop() {
            let Some(open) = &level.open else { continue };
            if let Some(name) = level.names.next() {
                path.push(&name);
                let below = self.entry(open, &name, &path, &mut level.waiting);
                if !matches!(below, Ok(None)) || level.waiting.len() >= MAX_WAITING {
                    self.copy_waiting(open, &mut level.waiting)?;
                }
                levels.push(level);
                match below {
                    Ok(Some(below)) => {
                        levels.push(below);
                        if let Some(far) = levels.len().checked_sub(MAX_OPEN + 1) {
                            levels[far].open = None;
                        }
                        continue;
                    }
                    Ok(None) => {}
                    // It was removed or replaced meanwhile.
                    Err(ChangesError::System(error)) if is_absence(error.errno) => {}
                    Err(error) => return Err(error),
                }
            } else {
                self.copy_waiting(open, &mut level.waiting)?;
                // Before it is finished, as nothing leads out of a directory that is closed again.
                if let Some(above) = levels.last_mut().filter(|above| above.open.is_none()) {
                    let path = path.parent().unwrap_or(Path::new(""));
                    above.open_again(open, path, self.rules)?;
                }
                let (source, made) = (open.source.file.as_fd(), open.made.as_fd());
                finish_directory(source, made, &level.found, &path)?;
            }
            path.pop();
        }
        Ok(())
    }

    /// Copies it. A directory is only made, and is what comes next.
    fn entry(
        &mut self,
        dirs: &OpenLevel,
        name: &OsStr,
        path: &Path,
        waiting: &mut Vec<FileToCopy>,
    ) -> Result<Option<Level>> {
        let (from, to) = (dirs.source.file.as_fd(), dirs.made.as_fd());
        let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).at("statat", path)?;
        let found = Found::of(&stat);
        if !self.rules.takes(path, &found, &self.copied)? {
            return Ok(None);
        }
        self.copied.entries += 1;
        self.copied.disk_bytes = self.copied.disk_bytes.saturating_add(ENTRY_BYTES);
        match found.kind {
            EntryKind::Directory => {
                let Some(source) = self.rules.open_directory(from, name, path)? else {
                    mkdirat(to, name, Mode::from_raw_mode(found.kept_mode())).at("mkdir", path)?;
                    return Ok(None);
                };
                // It may have been replaced since.
                let opened = Found::of(&fstat(&source.file).at("fstat", path)?);
                let found = Found { device: opened.device, inode: opened.inode, ..found };
                mkdirat(to, name, Mode::RWXU).at("mkdir", path)?;
                let made = open_on_mount(to, Path::new(name), DIRECTORY)?;
                return Ok(Some(Level::new(OpenLevel { source, made }, found, path)?));
            }
            // One with several names has to be there when the next of them comes.
            EntryKind::File if found.links == 1 && self.rules.is_side_by_side() => {
                let (name, path) = (name.to_owned(), path.to_owned());
                waiting.push(FileToCopy { name, path, found });
            }
            EntryKind::File => self.file((from, to), name, path, &found)?,
            EntryKind::Link => {
                let target = readlinkat(from, name, Vec::new()).at("readlink", path)?;
                symlinkat(target.as_c_str(), to, name).at("symlink", path)?;
                finish_by_name(to, name, &found, path)?;
            }
            EntryKind::Device if found.is_whiteout => {
                mknodat(to, name, FileType::CharacterDevice, Mode::empty(), 0).at("mknod", path)?;
            }
            EntryKind::Fifo => special(to, name, FileType::Fifo, &found, path)?,
            EntryKind::Socket => special(to, name, FileType::Socket, &found, path)?,
            // Nobody can make one in a user namespace.
            EntryKind::Device => {}
        }
        Ok(None)
    }

    fn file(
        &mut self,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        name: &OsStr,
        path: &Path,
        found: &Found,
    ) -> Result<()> {
        let inode = (found.device, found.inode);
        let first = self.first_names.get(&inode).filter(|_| found.links > 1);
        if first.is_some_and(|first| linkat(self.top, first, to, name, AtFlags::empty()).is_ok()) {
            return Ok(());
        }
        let readable = self.rules.open_file(from, name, path)?;
        let copied = copy_file(&readable, (to, name), path, found, &mut self.blocks)?;
        self.count(copied);
        // A longer one leads nowhere.
        if found.links > 1 && path.as_os_str().len() < MAX_PATH_BYTES {
            self.first_names.insert(inode, path.to_owned());
        }
        Ok(())
    }

    fn copy_waiting(&mut self, dirs: &OpenLevel, waiting: &mut Vec<FileToCopy>) -> Result<()> {
        let files = std::mem::take(waiting);
        if !files.is_empty() {
            let dirs = (dirs.source.file.as_fd(), dirs.made.as_fd());
            self.count(copy_side_by_side(dirs, &files)?);
        }
        Ok(())
    }

    fn count(&mut self, CopiedBytes { bytes, disk_bytes }: CopiedBytes) {
        self.copied.bytes = self.copied.bytes.saturating_add(bytes);
        self.copied.disk_bytes = self.copied.disk_bytes.saturating_add(disk_bytes);
    }
}

fn finish_directory(
    source: BorrowedFd<'_>,
    made: BorrowedFd<'_>,
    found: &Found,
    path: &Path,
) -> SysResult<()> {
    set_attributes(made, &user_attributes(source, path)?, path)?;
    copy_opaque(source, made, path)?;
    finish(made, found, path)
}

/// Owner, permissions and time. Without the right to change it, the owner stays as it is.
fn finish(made: BorrowedFd<'_>, found: &Found, path: &Path) -> SysResult<()> {
    finish_from(&fstat(made).at("fstat", path)?, made, found, path)
}

fn special(
    to: BorrowedFd<'_>,
    name: &OsStr,
    kind: FileType,
    found: &Found,
    path: &Path,
) -> SysResult<()> {
    mknodat(to, name, kind, Mode::RUSR | Mode::WUSR, 0).at("mknod", path)?;
    let made = open_entry(to, name)?;
    set_mode(made.as_fd(), found.kept_mode(), path)?;
    finish_by_name(to, name, found, path)
}

/// For what cannot be opened.
fn finish_by_name(dir: BorrowedFd<'_>, name: &OsStr, found: &Found, path: &Path) -> SysResult<()> {
    let (uid, gid) = (Uid::from_raw(found.uid), Gid::from_raw(found.gid));
    let _ = chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
    utimensat(dir, name, &modified(found), AtFlags::SYMLINK_NOFOLLOW).at("utimensat", path)
}

#[cfg(test)]
#[path = "layer_copy_tests.rs"]
mod tests;
