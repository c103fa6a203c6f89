//! Where mounts are attached while the view is built: layers of overlays, and file systems of which only parts are shown.
//! The kernel takes such layers and parts only from attached mounts, before 6.15 always, and later those that root's parent
//! took.
//!
//! Detaching a mount, or closing one that was never attached, waits until no CPU uses it. So all of them are below one, and
//! are let go of together. Nothing of it is left when the root is made read-only.

use super::{Builder, NO_DEVICES, STEP};
use crate::error::{During, Result};
use palisade_plan::model::NodeKind;
use palisade_sys::mounts::{self, FsOption};
use palisade_sys::{At as _, Mode};
use rustix::fs::AtFlags;
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// On the new root.
const PLACE: &str = "/.palisade-stage";

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) root: OwnedFd,
    mounts: Cell<u32>,
}

impl Builder {
    pub(crate) fn stage(&self) -> Result<&Stage> {
        if let Some(stage) = self.stage.get() {
            return Ok(stage);
        }
        let options = [FsOption::Text("mode", "0755"), FsOption::Text("size", "16m")];
        let root = mounts::new_fs("tmpfs", &options, NO_DEVICES).during(STEP)?;
        self.attach(&root, Path::new(PLACE), NodeKind::Dir)?;
        Ok(self.stage.get_or_init(|| Stage { root, mounts: Cell::new(0) }))
    }

    /// What was taken from these mounts keeps them alive from now on. Only once the root has changed: before, the stage has
    /// no name.
    pub(crate) fn close_stage(&self) -> Result<()> {
        if self.stage.get().is_none() {
            return Ok(());
        }
        mounts::detach(Path::new(PLACE)).during(STEP)?;
        self.unlink(Path::new(PLACE), AtFlags::REMOVEDIR)
    }
}

impl Stage {
    /// The descriptor stands for the attached mount afterwards.
    pub(crate) fn attach(&self, mount: &OwnedFd) -> Result<()> {
        let number = self.mounts.replace(self.mounts.get() + 1);
        let name = PathBuf::from(number.to_string());
        rustix::fs::mkdirat(&self.root, &name, Mode::from_raw_mode(0o755))
            .call("mkdir")
            .during(STEP)?;
        mounts::move_mount(mount, &self.root, &name).during(STEP)
    }
}
