//! Names on the sandbox's own file systems that the gate's shows. They are made there directly: made through the
//! gate's file system, each would take several requests to its server. What is mounted on them is looked up once.

use super::{Builder, COPY_MODE, STEP, new_file};
use crate::error::{During, Result};
use crate::fuse_root::GroundStore;
use palisade_plan::model::{MountOp, NodeKind};
use palisade_sys::beneath::{create_file_beneath, mkdir_p_beneath, symlink_beneath};
use palisade_sys::{Errno, Mode};
use std::os::fd::OwnedFd;
use std::path::Path;

const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
const MOUNT_POINT_MODE: Mode = Mode::from_raw_mode(0o444);

impl Builder {
    /// Makes all names that will not be covered by a mount. Says of each step whether it is complete with that.
    pub(super) fn make_own_names(&self, ops: &[MountOp]) -> Result<Vec<bool>> {
        if self.stores.is_empty() {
            return Ok(vec![false; ops.len()]);
        }
        let mut covered: Vec<&Path> = Vec::new();
        let mut make = |op| {
            let target = MountOp::target(op);
            let is_covered = covered.iter().any(|mount| target.starts_with(mount));
            if covers(op) && !self.is_ground(target) {
                covered.push(target);
            }
            if is_covered { Ok(false) } else { self.make_own_name(op) }
        };
        ops.iter().map(&mut make).collect()
    }

    fn is_ground(&self, path: &Path) -> bool {
        self.stores.iter().any(|store| store.path == path)
    }

    fn make_own_name(&self, op: &MountOp) -> Result<bool> {
        let Some((store, path)) = self.store_of(op.target()) else { return Ok(false) };
        let make_parent = || match path.parent() {
            Some(parent) => mkdir_p_beneath(store, parent, DIRECTORY_MODE).during(STEP).map(drop),
            None => Ok(()),
        };
        match op {
            MountOp::Dir { mode, .. } => {
                mkdir_p_beneath(store, path, Mode::from_raw_mode(*mode)).during(STEP)?;
            }
            MountOp::Symlink { points_to, .. } => {
                make_parent()?;
                symlink_beneath(store, points_to, path).during(STEP)?;
            }
            MountOp::File { content, mode, .. } => {
                make_parent()?;
                match new_file(store, path, (content, *mode)) {
                    // It is mounted over what is there.
                    Err(error) if error.errno == Errno::EXIST => return Ok(false),
                    made => made.during(STEP)?,
                }
            }
            MountOp::Copy { content, .. } => {
                make_parent()?;
                new_file(store, path, (content, COPY_MODE)).during(STEP)?;
            }
            MountOp::Device { .. } | MountOp::Bind { kind: NodeKind::File, .. } => {
                make_parent()?;
                match create_file_beneath(store, path, MOUNT_POINT_MODE) {
                    // Two are mounted there, one over the other.
                    Err(error) if error.errno == Errno::EXIST => {}
                    made => drop(made.during(STEP)?),
                }
                return Ok(false);
            }
            MountOp::Bind { kind: NodeKind::Dir, .. }
            | MountOp::Overlay { .. }
            | MountOp::Frame { .. }
            | MountOp::Tmpfs { .. }
            | MountOp::Proc { .. }
            | MountOp::DevPts { .. }
            | MountOp::Mqueue { .. } => {
                mkdir_p_beneath(store, path, DIRECTORY_MODE).during(STEP)?;
                return Ok(false);
            }
            // Of what is there already.
            MountOp::Seal { .. } | MountOp::Blank { .. } => return Ok(false),
        }
        Ok(true)
    }

    /// The file system of the sandbox's own that has this path, and the path there.
    pub(super) fn store_of<'p>(&self, path: &'p Path) -> Option<(&OwnedFd, &'p Path)> {
        let stores = self.stores.iter().filter(|store| path != store.path);
        let stores = stores.filter_map(|GroundStore { path: at, root }| {
            Some((at.as_os_str().len(), root, path.strip_prefix(at).ok()?))
        });
        let (_, root, path) = stores.max_by_key(|(length, ..)| *length)?;
        Some((root, path))
    }
}

/// Whether names below its target belong to what is mounted.
fn covers(op: &MountOp) -> bool {
    match op {
        MountOp::Bind { .. }
        | MountOp::Device { .. }
        | MountOp::Overlay { .. }
        | MountOp::Frame { .. }
        | MountOp::Tmpfs { .. }
        | MountOp::Proc { .. }
        | MountOp::DevPts { .. }
        | MountOp::Mqueue { .. } => true,
        MountOp::Dir { .. }
        | MountOp::Symlink { .. }
        | MountOp::File { .. }
        | MountOp::Copy { .. }
        | MountOp::Seal { .. }
        | MountOp::Blank { .. } => false,
    }
}
