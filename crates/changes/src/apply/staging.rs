//! Makes the copies that are renamed into place. A session that still runs may change its files at any moment: what is
//! copied is what was reviewed, or the apply fails.

use super::operations::set_modified;
use crate::attributes::{set_attributes, user_attributes};
use crate::contents::Located;
use crate::entry::{Entry, Found};
use crate::error::{ChangesError, Result};
use crate::layers::Layers;
use palisade_sys::beneath::open_on_mount;
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult};
use rustix::fs::{
    AtFlags, copy_file_range, fchmod, fchown, fstat, ioctl_ficlone, linkat, mkdirat, openat,
    symlinkat,
};
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Up to here, reading and writing is faster than asking the file system to copy.
const SMALL_BYTES: u64 = 128 * 1024;

/// An entry in the stage that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged<'s> {
    pub(super) dir: BorrowedFd<'s>,
    pub(super) name: &'s OsStr,
}

impl Staged<'_> {
    /// A file with the session's content, or with `contents`. It belongs to the owner of what it replaces.
    pub(super) fn file(
        self,
        layers: &Layers,
        path: &Path,
        from: Located,
        contents: Option<&[u8]>,
        mode: u32,
        replaces: Option<&Found>,
    ) -> Result<()> {
        let (source, found) = layers.open_file(from.layer, path)?;
        if !is_unchanged(&from.found, &found) {
            return Err(ChangesError::ChangedMeanwhile { path: path.to_owned() });
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            openat(self.dir, self.name, flags, Mode::RUSR | Mode::WUSR).at("openat", path)?;
        match contents {
            Some(contents) => write_all(&file, contents, path)?,
            None => {
                copy(&source, &file, found.size, path)?;
                let after = Found::of(&fstat(&source).at("fstat", path)?);
                if !is_unchanged(&found, &after) {
                    return Err(ChangesError::ChangedMeanwhile { path: path.to_owned() });
                }
            }
        }
        set_attributes(&file, &user_attributes(&source, path)?, path)?;
        keep_owner(&file, &found, replaces);
        fchmod(&file, Mode::from_raw_mode(mode)).at("fchmod", path)?;
        drop(file);
        Ok(set_modified(self.dir, self.name, found.modified, path)?)
    }

    pub(super) fn link(self, entry: &Entry, path: &Path) -> Result<()> {
        let target = entry.target.as_deref().unwrap_or(Path::new(""));
        symlinkat(target, self.dir, self.name).at("symlink", path)?;
        Ok(set_modified(self.dir, self.name, entry.modified, path)?)
    }

    /// Its permissions and its time come when it is filled ([`Staged::finish_directory`]).
    pub(super) fn directory(self, layers: &Layers, path: &Path, from: Located) -> Result<()> {
        mkdirat(self.dir, self.name, Mode::RWXU).at("mkdir", path)?;
        let source = layers.open_directory(from.layer, path)?;
        let attributes = user_attributes(&source, path)?;
        if !attributes.is_empty() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let made = open_on_mount(self.dir, Path::new(self.name), flags)?;
            set_attributes(&made, &attributes, path)?;
        }
        Ok(())
    }

    pub(super) fn finish_directory(self, found: &Found, mode: u32, path: &Path) -> SysResult<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let made = open_on_mount(self.dir, Path::new(self.name), flags)?;
        keep_owner(&made, found, None);
        set_modified(self.dir, self.name, found.modified, path)?;
        fchmod(&made, Mode::from_raw_mode(mode)).at("fchmod", path)
    }

    /// A second name for a file; false if the file system refuses.
    pub(super) fn hard_link(self, dir: impl AsFd, name: &OsStr) -> bool {
        linkat(dir, name, self.dir, self.name, AtFlags::empty()).is_ok()
    }
}

/// The group of a new file is the one that the session's file has: a directory may pass on its group. Without the right to
/// change them, owner and group stay as they are.
fn keep_owner(file: &OwnedFd, found: &Found, replaces: Option<&Found>) {
    let wanted = match replaces {
        Some(old) => (Some(old.uid), old.gid),
        // Only root can give files away; nobody else has files of others in a layer.
        None => (Some(found.uid), found.gid),
    };
    let Ok(made) = fstat(file) else { return };
    let (uid, gid) = (wanted.0.filter(|uid| *uid != made.st_uid), wanted.1);
    if uid.is_some() || gid != made.st_gid {
        let _ = fchown(file, uid.map(Uid::from_raw), Some(Gid::from_raw(gid)));
    }
}

fn is_unchanged(before: &Found, now: &Found) -> bool {
    before.is_same_inode(now) && (before.size, before.modified) == (now.size, now.modified)
}

fn copy(from: &OwnedFd, to: &OwnedFd, size: u64, path: &Path) -> SysResult<()> {
    if size > SMALL_BYTES {
        // Shares the blocks, on file systems that can.
        if ioctl_ficlone(to, from).is_ok() {
            return Ok(());
        }
        match copy_by_kernel(from, to, path) {
            Err(error)
                if matches!(
                    error.errno,
                    Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS
                ) => {}
            copied => return copied,
        }
    }
    let mut block = vec![0; usize::try_from(size.min(SMALL_BYTES) + 1).unwrap_or(1)];
    let mut at = 0;
    loop {
        match rustix::io::pread(from, block.as_mut_slice(), at).at("pread", path)? {
            0 => return Ok(()),
            length => {
                write_all(to, &block[..length], path)?;
                at += length as u64;
            }
        }
    }
}

fn copy_by_kernel(from: &OwnedFd, to: &OwnedFd, path: &Path) -> SysResult<()> {
    const PART: usize = 64 << 20;
    let mut at = 0;
    loop {
        let copied = copy_file_range(from, Some(&mut at), to, None, PART);
        if copied.at("copy_file_range", path)? == 0 {
            return Ok(());
        }
    }
}

fn write_all(file: &OwnedFd, mut content: &[u8], path: &Path) -> SysResult<()> {
    while !content.is_empty() {
        let written = rustix::io::write(file, content).at("write", path)?;
        content = &content[written..];
    }
    Ok(())
}
