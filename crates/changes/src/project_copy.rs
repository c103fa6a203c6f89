//! A copy of the project in place of an overlay, where the kernel mounts none. The host's files are only read: nothing of
//! them is made readable, no mount is crossed, and what the session must not see is never copied.

use crate::copy_record::CopyRecord;
use crate::entry::{EntryKind, Found};
use crate::error::{ChangesError, Result};
use crate::layer_copy::{CopiedLayer, CopyRules, copy_tree};
use crate::readable::{DIRECTORY, FILE, Readable};
use palisade_sys::beneath::open_on_mount;
use palisade_sys::{At as _, Errno, Mode};
use rustix::fs::{fstat, mkdirat};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How much is copied at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// Files, directories and links.
    pub files: u64,
    /// The length of all files.
    pub bytes: u64,
}

/// What is copied, and how much.
pub struct ProjectCopy<'a> {
    /// Paths in the project that the session cannot see.
    pub hidden: &'a [PathBuf],
    pub limits: CopyLimits,
    /// Told before each entry what was copied so far.
    pub progress: &'a mut dyn FnMut(CopiedLayer),
}

impl std::fmt::Debug for ProjectCopy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProjectCopy").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Copies the project to the new directory `name` of `parent`. Sockets and FIFOs are made anew, devices are left out.
/// Interrupted, it leaves a part there.
pub fn copy_project(
    project: BorrowedFd<'_>,
    (parent, name): (BorrowedFd<'_>, &OsStr),
    ProjectCopy { hidden, limits, progress }: ProjectCopy<'_>,
) -> Result<(CopiedLayer, CopyRecord)> {
    let path = Path::new(name);
    mkdirat(parent, name, Mode::RWXU).at("mkdir", path)?;
    let top = open_on_mount(parent, path, DIRECTORY)?;
    let found = Found::of(&fstat(project).at("fstat", path)?);
    let hidden = hidden.iter().map(PathBuf::as_path).collect();
    let mut rules = OfHost { hidden, limits, progress };
    let copied = copy_tree(project, top.as_fd(), found, &mut rules)?;
    Ok((copied, CopyRecord::of(top.as_fd())?))
}

struct OfHost<'a> {
    hidden: HashSet<&'a Path>,
    limits: CopyLimits,
    progress: &'a mut dyn FnMut(CopiedLayer),
}

impl CopyRules for OfHost<'_> {
    fn takes(&mut self, path: &Path, found: &Found, copied: &CopiedLayer) -> Result<bool> {
        if self.hidden.contains(path) || found.kind == EntryKind::Device {
            return Ok(false);
        }
        let CopyLimits { files, bytes } = self.limits;
        let size = if found.kind == EntryKind::File { found.size } else { 0 };
        if copied.entries >= files || copied.bytes.saturating_add(size) > bytes {
            return Err(ChangesError::TooLargeToCopy { files, bytes });
        }
        (self.progress)(*copied);
        Ok(true)
    }

    fn open_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<Readable>> {
        match open_on_mount(dir, Path::new(name), DIRECTORY) {
            // As in an overlay, where what is mounted in the project does not show.
            Err(error) if error.errno == Errno::XDEV => Ok(None),
            Err(error) if error.errno == Errno::ACCESS => {
                Err(ChangesError::UnreadableOnHost { path: path.to_owned() })
            }
            opened => Ok(Some(opened?.into())),
        }
    }

    fn open_file(&self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<Readable> {
        match open_on_mount(dir, Path::new(name), FILE) {
            // Or another file is mounted over it.
            Err(error) if matches!(error.errno, Errno::ACCESS | Errno::XDEV) => {
                Err(ChangesError::UnreadableOnHost { path: path.to_owned() })
            }
            opened => Ok(opened?.into()),
        }
    }

    fn open_again(&self, entry: OwnedFd, path: &Path) -> Result<Readable> {
        Ok(open_on_mount(&entry, Path::new("."), DIRECTORY).map(Readable::from).map_err(
            |error| palisade_sys::SysError { subject: path.display().to_string(), ..error },
        )?)
    }
}

#[cfg(test)]
#[path = "project_copy_tests.rs"]
mod tests;
