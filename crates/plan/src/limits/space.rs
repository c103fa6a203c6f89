//! Where a run can write, and how its space is divided (FS-6).
//!
//! The kernel enforces the sizes of the run's own file systems. If their total is limited, they are parts of
//! one file system, so that one may grow while another stays small.

use crate::error::{PlanError, Result};
use crate::kept_layer::UPPER;
use crate::limit::LimitKind;
use crate::model::{Confinement, MountAccess, MountOp, Scratch};
use palisade_policy::model::Policy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the command can write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// The run's own file systems, and what is kept on the host.
    Own {
        trees: Vec<PathBuf>,
        /// Directories of ours that keep what is written in a transaction or to caches.
        layers: Vec<PathBuf>,
    },
    Everywhere,
}

impl Room {
    /// Whether it contains nothing of the host.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Own { trees, layers } if trees.is_empty() && layers.is_empty())
    }

    pub(super) fn trees(&self) -> Vec<PathBuf> {
        match self {
            Self::Own { trees, layers } => trees.iter().chain(layers).cloned().collect(),
            Self::Everywhere => Vec::new(),
        }
    }

    pub(super) fn told(&self) -> String {
        let Self::Own { trees, .. } = self else { return String::new() };
        match trees.as_slice() {
            [] => "what is kept of its changes".to_owned(),
            [tree] => tree.display().to_string(),
            [first, more @ ..] => format!("{} and {} more", first.display(), more.len()),
        }
    }
}

pub(crate) fn room(confinement: &Confinement, writable: &[PathBuf]) -> Room {
    match confinement {
        Confinement::None => Room::Everywhere,
        Confinement::NoNamespaces => Room::Own { trees: writable.to_vec(), layers: Vec::new() },
        Confinement::Namespaces(inside) => {
            let trees = inside.mounts.iter().filter_map(|op| match op {
                MountOp::Bind { source, access: MountAccess::ReadWrite, .. } => {
                    Some(source.clone())
                }
                _ => None,
            });
            let transactions = inside.mounts.iter().filter_map(|op| match op {
                MountOp::Overlay { layer, .. } => layer.as_ref(),
                _ => None,
            });
            let caches = inside.caches.iter().map(|stack| &stack.layer);
            // Beside it is the kernel's own directory, which nobody may read.
            let upper = |layer: &PathBuf| layer.join(UPPER);
            Room::Own {
                trees: outermost(trees.collect()),
                layers: transactions.chain(caches).map(upper).collect(),
            }
        }
    }
}

/// A tree inside another one is counted with it.
fn outermost(mut trees: Vec<PathBuf>) -> Vec<PathBuf> {
    trees.sort();
    trees.dedup_by(|later, earlier| later.starts_with(&*earlier));
    trees
}

/// The file system behind all that have no size of their own. Fixed sizes are subtracted from the total.
pub(crate) fn scratch(policy: &Policy, mounts: &[MountOp]) -> Result<Option<Scratch>> {
    let filesystem = &policy.filesystem;
    if filesystem.max_total_size.is_none() && filesystem.max_inodes.is_none() {
        return Ok(None);
    }
    let sizes = mounts.iter().filter_map(|op| match op {
        MountOp::Tmpfs { size: Some(size), .. } if op.is_writable_tmpfs() => Some(*size),
        _ => None,
    });
    let (apart, sized) =
        sizes.fold((0_u64, 0_u64), |(count, sum), size| (count + 1, sum.saturating_add(size)));
    let bytes = match filesystem.max_total_size {
        Some(most) if most <= sized => {
            return Err(PlanError::NoRoomLeft { what: LimitKind::Disk, most, sized });
        }
        most => most.map(|most| most - sized),
    };
    // Separate file systems cannot share inodes, so each gets an equal part.
    let inodes_apart = filesystem.max_inodes.map(|most| most / (apart + 1));
    let inodes = inodes_apart.and_then(|share| Some(filesystem.max_inodes? - share * apart));
    Ok(Some(Scratch { bytes, inodes, inodes_apart, own_inodes: own_inodes(mounts) }))
}

/// The root, a directory for each part, an overlay's upper and work directory (and the one that the kernel
/// creates in it), and the mount points in each part.
fn own_inodes(mounts: &[MountOp]) -> u64 {
    let parts = || mounts.iter().filter(|op| op.is_part_of_scratch());
    let heads = parts().map(|op| if matches!(op, MountOp::Overlay { .. }) { 4 } else { 1 });
    let mut places: BTreeSet<&Path> = BTreeSet::new();
    for op in mounts {
        let part = parts().filter(|part| op.target() != part.target());
        let within = part.filter(|part| op.target().starts_with(part.target()));
        if let Some(part) = within.max_by_key(|part| part.target().as_os_str().len()) {
            let above = op.target().ancestors();
            places.extend(above.take_while(|path| *path != part.target()));
        }
    }
    1 + heads.sum::<u64>() + places.len() as u64
}
