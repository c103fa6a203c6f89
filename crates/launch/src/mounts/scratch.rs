//! One file system behind everything a run has to itself, where the sum is limited (FS-6).
//!
//! Its parts are mounted where they belong; the whole is never visible inside. It disappears with the mount
//! namespace.

use super::stage::shelve;
use crate::error::{During, Result};
use palisade_plan::model::Scratch;
use palisade_sys::Mode;
use palisade_sys::beneath::mkdir_p_beneath;
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const STEP: &str = "sharing out the run's own files";

#[derive(Debug)]
pub(crate) struct Shared {
    root: OwnedFd,
    parts: Cell<u32>,
}

impl Shared {
    pub(crate) fn new(scratch: &Scratch) -> Result<Self> {
        let size = scratch.bytes.map(|bytes| bytes.to_string());
        let inodes = scratch.inodes.map(|inodes| inodes.saturating_add(scratch.own_inodes));
        let inodes = inodes.map(|inodes| inodes.to_string());
        let mut options = vec![FsOption::Text("mode", "0755")];
        options.extend(size.as_deref().map(|size| FsOption::Text("size", size)));
        options.extend(inodes.as_deref().map(|inodes| FsOption::Text("nr_inodes", inodes)));
        let attrs = MountAttrs::NOSUID | MountAttrs::NODEV;
        let root = mounts::new_fs("tmpfs", &options, attrs).during(STEP)?;
        shelve(&root)?;
        Ok(Self { root, parts: Cell::new(0) })
    }

    /// A directory of it as a separate mount, not attached yet.
    pub(crate) fn part(&self, mode: u32, exec: bool) -> Result<OwnedFd> {
        let number = self.parts.replace(self.parts.get() + 1);
        let name = PathBuf::from(number.to_string());
        let directory =
            mkdir_p_beneath(&self.root, &name, Mode::from_raw_mode(mode)).during(STEP)?;
        let part = mounts::open_tree(&directory, Path::new(""), Recursion::Single).during(STEP)?;
        if !exec {
            let attr = MountAttr { set: MountAttrs::NOEXEC, ..MountAttr::default() };
            mounts::mount_setattr(&part, Recursion::Single, &attr).during(STEP)?;
        }
        Ok(part)
    }
}
