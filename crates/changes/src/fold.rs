//! Makes one layer of two: moves everything of a newer upper layer into the older one below it, so that both together show
//! what they showed before. Neither may be mounted meanwhile. Must never follow a link nor leave the two trees.
//!
//! Each step leaves a state in which the two layers still show the same, so it can be interrupted and repeated.

use crate::attributes::{is_opaque, set_opaque};
use crate::discard::{discard, open_any};
use crate::error::Result;
use crate::layers::set_mode;
use crate::listing::names_in;
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult};
use rustix::fs::{AtFlags, FileType, openat, renameat, statat, unlinkat};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// Every level holds two descriptors. Deeper directories of the newer layer take the place of the older ones, whose other
/// entries are then lost.
const MAX_DEPTH: usize = 100;

/// What the older of two layers lies on.
#[derive(Clone, Copy, Debug)]
pub enum Below<'d> {
    Nothing,
    Directory(BorrowedFd<'d>),
    /// Further layers: whatever was removed may be there.
    Unknown,
}

/// `newer` and `older` are `upper` directories; `below` is what the older one lies on. The newer one is empty afterwards.
pub fn fold(newer: BorrowedFd<'_>, older: BorrowedFd<'_>, below: Below<'_>) -> Result<()> {
    Directories { newer, older, below }.fold(1)
}

/// The same directory in the layers. Below an opaque one there is nothing.
#[derive(Clone, Copy)]
struct Directories<'d> {
    newer: BorrowedFd<'d>,
    older: BorrowedFd<'d>,
    below: Below<'d>,
}

impl Directories<'_> {
    fn fold(self, depth: usize) -> Result<()> {
        for name in names_in(self.newer, Path::new(""))? {
            match kind_of(self.newer, &name)? {
                Some(Kind::Directory) => self.fold_directory(&name, depth)?,
                Some(Kind::Whiteout) => self.fold_whiteout(&name)?,
                Some(Kind::Other) => {
                    // What cannot be replaced in one step. It is not seen: the newer layer has this name.
                    if kind_of(self.older, &name)? == Some(Kind::Directory) {
                        discard(self.older, &name)?;
                    }
                    renameat(self.newer, &name, self.older, &name)
                        .at("rename", Path::new(&name))?;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn fold_directory(self, name: &OsStr, depth: usize) -> Result<()> {
        let path = Path::new(name);
        match kind_of(self.older, name)? {
            Some(Kind::Directory) if depth < MAX_DEPTH => {
                let mode = mode_of(self.newer, name)?;
                let (newer, older) = (open_any(self.newer, name)?, open_any(self.older, name)?);
                if is_opaque(&newer) {
                    set_mode(newer.as_fd(), mode, path)?;
                    discard(self.older, name)?;
                    return Ok(move_directory(self.newer, self.older, name)?);
                }
                let opened = match self.below {
                    Below::Directory(below) => open_directory(below, name),
                    Below::Nothing | Below::Unknown => None,
                };
                let below = match (self.below, &opened) {
                    _ if is_opaque(&older) => Below::Nothing,
                    (_, Some(opened)) => Below::Directory(opened.as_fd()),
                    (Below::Unknown, None) => Below::Unknown,
                    (Below::Nothing | Below::Directory(_), None) => Below::Nothing,
                };
                Directories { newer: newer.as_fd(), older: older.as_fd(), below }
                    .fold(depth + 1)?;
                set_mode(older.as_fd(), mode, path)?;
                Ok(unlinkat(self.newer, name, AtFlags::REMOVEDIR).at("rmdir", path)?)
            }
            None => Ok(move_directory(self.newer, self.older, name)?),
            Some(_) => {
                // A file or a whiteout also hides what lies below the older layer.
                hide_below(self.newer, name)?;
                discard(self.older, name)?;
                Ok(move_directory(self.newer, self.older, name)?)
            }
        }
    }

    /// A whiteout where there is nothing to hide would itself be listed.
    fn fold_whiteout(self, name: &OsStr) -> Result<()> {
        discard(self.older, name)?;
        let hides = match self.below {
            Below::Nothing => false,
            Below::Directory(below) => !matches!(kind_of(below, name), Ok(None)),
            Below::Unknown => true,
        };
        if hides {
            renameat(self.newer, name, self.older, name).at("rename", Path::new(name))?;
        } else {
            unlinkat(self.newer, name, AtFlags::empty()).at("unlink", Path::new(name))?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    Whiteout,
    Other,
}

/// None if there is no such entry.
fn kind_of(dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<Option<Kind>> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::CharacterDevice if found.st_rdev == 0 => Kind::Whiteout,
            _ => Kind::Other,
        })),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno).at("statat", Path::new(name)),
    }
}

fn open_directory(dir: BorrowedFd<'_>, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).ok()
}

/// Makes a directory hide what lies below its layer.
fn hide_below(dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<()> {
    let path = Path::new(name);
    let mode = mode_of(dir, name)?;
    let directory = open_any(dir, name)?;
    set_opaque(&directory, path)?;
    set_mode(directory.as_fd(), mode, path)
}

fn mode_of(dir: BorrowedFd<'_>, name: &OsStr) -> SysResult<u32> {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).at("statat", Path::new(name))?;
    Ok(found.st_mode & 0o7777)
}

fn move_directory(from: BorrowedFd<'_>, into: BorrowedFd<'_>, name: &OsStr) -> SysResult<()> {
    let path = Path::new(name);
    match renameat(from, name, into, name) {
        // A directory that its owner may not write cannot change its parent.
        Err(Errno::ACCESS) => {}
        moved => return moved.at("rename", path),
    }
    let mode = mode_of(from, name)?;
    let directory = open_any(from, name)?;
    let moved = renameat(from, name, into, name).at("rename", path);
    set_mode(directory.as_fd(), mode, path)?;
    moved
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
