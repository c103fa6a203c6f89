//! Where calls are performed by the broker, and where they are also judged. Decided by the longest mount that
//! contains a path, as the sandbox sees it.

use crate::{DIRECTORY, NO_MODE};
use palisade_plan::model::{Gate, Guard};
use palisade_sys::mounts;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[derive(Debug)]
pub(crate) struct BrokeredTrees {
    pieces: Vec<Piece>,
    /// Directories of build output in the trees.
    build_dirs: Vec<PathBuf>,
    /// Overlays in which directories are renamed.
    transactions: Vec<PathBuf>,
    /// Where none of those is mounted: every mount of the view, and whether it is our scaffolding. Paths of the
    /// host that it hides may be asked about, so calls are performed there too.
    scaffolding: Vec<(PathBuf, bool)>,
    /// The mounts of that scaffolding, as the asking process sees them.
    own_mounts: OnceLock<Vec<u64>>,
}

#[derive(Debug)]
struct Piece {
    top: PathBuf,
    kind: TreeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeKind {
    /// A tree of the host: every name is judged.
    Tree,
    /// The run's own, around a tree: Landlock has to withhold the same rights there, so calls are performed but
    /// not judged.
    Surrounding,
    /// Mounted in a tree but not part of it: the kernel answers.
    Island,
}

/// What a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement<'g> {
    In(&'g Path),
    Unjudged,
    Elsewhere,
}

impl BrokeredTrees {
    pub(crate) fn of(
        guard: Option<&Guard>,
        gate: Option<&Gate>,
        transactions: Vec<PathBuf>,
    ) -> Self {
        let piece = |kind| move |top: &PathBuf| Piece { top: top.clone(), kind };
        let mut pieces: Vec<Piece> = Vec::new();
        if let Some(guard) = guard {
            pieces.extend(guard.trees.iter().map(piece(TreeKind::Tree)));
            pieces.extend(guard.surroundings.iter().map(piece(TreeKind::Surrounding)));
            pieces.extend(guard.islands.iter().map(piece(TreeKind::Island)));
        }
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.top.as_os_str().len()));
        let scaffolding = gate.map(scaffolding).unwrap_or_default();
        let build_dirs = guard.map(|guard| guard.build_dirs.clone()).unwrap_or_default();
        Self { pieces, build_dirs, transactions, scaffolding, own_mounts: OnceLock::new() }
    }

    pub(crate) fn has_transaction(&self) -> bool {
        !self.transactions.is_empty()
    }

    /// The overlay whose changes are kept that this name is in by its path.
    pub(crate) fn transaction_of(&self, path: &Path) -> Option<&Path> {
        let is_in = |top: &&PathBuf| path.starts_with(top) && path != top.as_path();
        self.transactions.iter().find(is_in).map(PathBuf::as_path)
    }

    pub(crate) fn standing(&self, path: &Path) -> Placement<'_> {
        let Some(piece) = self.pieces.iter().find(|piece| path.starts_with(&piece.top)) else {
            let above = self.scaffolding.iter().find(|(top, _)| path.starts_with(top));
            let is_ours = above.is_some_and(|(_, is_ours)| *is_ours);
            return if is_ours { Placement::Unjudged } else { Placement::Elsewhere };
        };
        match piece.kind {
            TreeKind::Tree => Placement::In(&piece.top),
            TreeKind::Surrounding => Placement::Unjudged,
            TreeKind::Island => Placement::Elsewhere,
        }
    }
}

impl BrokeredTrees {
    /// Whether moving a directory would take names out of a build directory, where none is judged: it is moved from
    /// inside to outside, or is or contains the build directory itself, whose rights would go with it.
    pub(crate) fn leaves_build_dir(&self, from: &Path, to: &Path) -> bool {
        let is_inside = |path: &Path| {
            self.build_dirs.iter().any(|build| path.starts_with(build) && path != build)
        };
        self.build_dirs.iter().any(|build| build.starts_with(from))
            || (is_inside(from) && !is_inside(to))
    }

    /// Whether a directory where the plan mounts nothing belongs to a later grant: another mount is on top of
    /// our scaffolding there.
    pub(crate) fn is_grant(&self, path: &Path, directory: BorrowedFd<'_>) -> bool {
        let above = self.scaffolding.iter().find(|(top, _)| path.starts_with(top));
        if !above.is_some_and(|(_, is_ours)| *is_ours) {
            return false;
        }
        let own = self.own_mounts.get_or_init(|| {
            let tops = self.scaffolding.iter().filter(|(_, is_ours)| *is_ours);
            let opened = tops.filter_map(|(top, _)| {
                rustix::fs::openat(rustix::fs::CWD, top, DIRECTORY, NO_MODE).ok()
            });
            opened.filter_map(|top| mounts::mount_id(top).ok()).collect()
        });
        mounts::mount_id(directory).is_ok_and(|mount| !own.contains(&mount))
    }
}

fn scaffolding(gate: &Gate) -> Vec<(PathBuf, bool)> {
    let ours = gate.grounds.iter().map(|top| (top.clone(), true));
    let others = gate.mounted.iter().filter(|top| !gate.grounds.contains(top));
    let never = gate.never.iter();
    let mut tops: Vec<(PathBuf, bool)> =
        ours.chain(others.chain(never).map(|top| (top.clone(), false))).collect();
    tops.sort_by_key(|(top, _)| std::cmp::Reverse(top.as_os_str().len()));
    tops
}
