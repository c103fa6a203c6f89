//! Mounts that nobody is to see by themselves: layers of overlays, and file systems of which only parts are shown. The
//! kernel takes such layers and parts only from attached mounts, before 6.15 always, and later those that root's parent
//! took.
//!
//! Detaching a mount, or closing one that was never attached, waits until no CPU uses it. So all of them are put on the
//! old root, which is detached anyway, and go with it. What was taken from them keeps them alive, but nothing more can be
//! taken: so those behind the gate's file system, of which the keeper takes copies, are not among them.

use super::{Builder, NO_DEVICES, STEP};
use crate::error::{During, Result};
use palisade_plan::model::NodeKind;
use palisade_sys::CWD;
use palisade_sys::mounts::{self, FsOption};
use rustix::fs::AtFlags;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A directory that every host has, and that is not looked at again before the root changes: devices were taken from it
/// already. Each of the mounts covers the one before.
const SHELF: &str = "/dev";
/// On the new root.
const WORKBENCH: &str = "/.palisade-workbench";

/// Attaches it where it goes with the old root; only before the root changes. The descriptor stands for the attached
/// mount afterwards.
pub(super) fn shelve(mount: &OwnedFd) -> Result<()> {
    mounts::move_mount(mount, CWD, Path::new(SHELF)).during(STEP)
}

impl Builder {
    /// A file system for files that will be mounted elsewhere, once the root has changed.
    pub(super) fn workbench(&self) -> Result<&OwnedFd> {
        if let Some(workbench) = self.workbench.get() {
            return Ok(workbench);
        }
        let options = [FsOption::Text("mode", "0755"), FsOption::Text("size", "16m")];
        let workbench = mounts::new_fs("tmpfs", &options, NO_DEVICES).during(STEP)?;
        self.attach(&workbench, Path::new(WORKBENCH), NodeKind::Dir)?;
        Ok(self.workbench.get_or_init(|| workbench))
    }

    /// Nothing of it is left when the root is made read-only.
    pub(super) fn clear_workbench(&self) -> Result<()> {
        if self.workbench.get().is_none() {
            return Ok(());
        }
        mounts::detach(Path::new(WORKBENCH)).during(STEP)?;
        self.unlink(Path::new(WORKBENCH), AtFlags::REMOVEDIR)
    }
}
