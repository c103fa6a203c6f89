//! The finished mount view: steps in a working order, and what each path will contain.

use crate::facts::EntryKind;
use crate::host::{Host, Link};
use crate::model::{MountOp, NodeKind};
use crate::path_map::PathMap;
use crate::path_text::PathText as _;
use palisade_policy::model::Approval;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Ordered by target, so that a parent always comes before what is mounted on it.
#[derive(Debug, Default)]
pub(crate) struct Composition {
    pub(crate) ops: PathMap<MountOp>,
    pub(crate) notes: Vec<String>,
    pub(crate) approvals: Vec<Approval>,
}

impl Composition {
    /// The step that a path is below, without a step at the path itself.
    pub(crate) fn standing_above(&self, path: &Path) -> Option<&MountOp> {
        path.ancestors().skip(1).find_map(|above| self.ops.get(above))
    }

    /// A link, also where the host's is hidden, unless it is there already.
    pub(crate) fn add_link(&mut self, Link { place, points_to }: Link) {
        if !self.is_bound(&place) && !self.ops.contains_key(&place) {
            self.ops.insert(place.clone(), MountOp::Symlink { target: place, points_to });
        }
    }

    /// An expanded directory represents a read-only directory of the host. On our own root it becomes read-only
    /// with the root. On a writable tmpfs it needs a frame if `is_read_only` holds. Otherwise it is part of
    /// that tmpfs: files created beside the host's are private to the run and discarded.
    pub(crate) fn frame_what_stands_on_tmpfs(
        &mut self,
        own: &HashSet<PathBuf>,
        is_read_only: impl Fn(&Path) -> bool,
    ) {
        // Directories above it that are themselves part of the tmpfs do not count.
        let is_part = |op: &&MountOp| matches!(op, MountOp::Dir { target, .. } if !own.contains(target) && !is_read_only(target));
        let stands_on_tmpfs = |target: &Path| {
            let mut above = target.ancestors().skip(1).filter_map(|above| self.ops.get(above));
            matches!(above.find(|op| !is_part(op)), Some(MountOp::Tmpfs { .. }))
        };
        let is_loose = |(target, op): (&Path, &MountOp)| match op {
            MountOp::Dir { mode, .. }
                if !own.contains(target) && stands_on_tmpfs(target) && is_read_only(target) =>
            {
                Some((target.to_owned(), *mode))
            }
            _ => None,
        };
        let loose: Vec<(PathBuf, u32)> = self.ops.iter().filter_map(is_loose).collect();
        for (target, mode) in loose {
            self.ops.insert(target.clone(), MountOp::Frame { target, mode });
        }
    }

    /// Puts what is shown of these directories on file systems of their own.
    pub(crate) fn frame_areas(&mut self, areas: &[&str]) {
        for area in areas.iter().map(Path::new) {
            let is_shown = self.ops.keys().any(|target| target.is_in(area));
            if is_shown && matches!(self.ops.get(area), None | Some(MountOp::Dir { .. })) {
                let frame = MountOp::Frame { target: area.to_owned(), mode: 0o755 };
                self.ops.insert(area.to_owned(), frame);
            }
        }
    }

    /// Whether the command can create something at this path.
    pub(crate) fn can_make(&self, path: &Path) -> bool {
        let at = self.ops.get(path).or_else(|| self.standing_above(path));
        match at {
            Some(MountOp::Overlay { .. }) => true,
            at => at.is_some_and(MountOp::is_writable),
        }
    }

    /// What the host has at this path but the command will not find. Only checked where nothing of the host is
    /// bound.
    pub(crate) fn hidden(&self, path: &Path, host: &Host<'_>) -> Option<EntryKind> {
        let is_own = self.ops.contains_key(path)
            || matches!(self.standing_above(path), Some(MountOp::Proc { .. }));
        if is_own || self.is_bound(path) {
            return None;
        }
        let found = host.resolve(path).ok()?;
        (!self.is_bound(&found.path)).then_some(found.kind)
    }

    fn is_bound(&self, path: &Path) -> bool {
        let at = self.ops.get(path).or_else(|| self.standing_above(path));
        matches!(at, Some(MountOp::Bind { .. } | MountOp::Overlay { .. } | MountOp::Device { .. }))
    }

    /// Whether a directory will exist there.
    pub(crate) fn has_dir(&self, path: &Path, host: &Host<'_>) -> bool {
        if path == Path::new("/") {
            return true;
        }
        if self.ops.from(path).next().is_some_and(|(next, op)| {
            // Parent directories of a mount point are created with it.
            next.is_in(path) && (!next.is_same(path) || is_dir(op))
        }) {
            return true;
        }
        match self.standing_above(path) {
            Some(MountOp::Bind { source, target, kind: NodeKind::Dir, .. }) => {
                inside(path, target, source, host)
            }
            Some(MountOp::Overlay { lower, target, hidden, .. }) => {
                let rest = path.strip_prefix(target).unwrap_or(path);
                !hidden.iter().any(|hidden| rest.is_in(hidden)) && inside(path, target, lower, host)
            }
            _ => false,
        }
    }
}

fn is_dir(op: &MountOp) -> bool {
    match op {
        MountOp::Bind { kind, .. } => *kind == NodeKind::Dir,
        MountOp::Symlink { .. }
        | MountOp::File { .. }
        | MountOp::Copy { .. }
        | MountOp::Blank { .. }
        | MountOp::Device { .. } => false,
        MountOp::Dir { .. }
        | MountOp::Seal { .. }
        | MountOp::Overlay { .. }
        | MountOp::Frame { .. }
        | MountOp::Tmpfs { .. }
        | MountOp::Proc { .. }
        | MountOp::DevPts { .. }
        | MountOp::Mqueue { .. } => true,
    }
}

fn inside(path: &Path, target: &Path, source: &Path, host: &Host<'_>) -> bool {
    path.strip_prefix(target)
        .is_ok_and(|rest| host.kind(&source.join(rest)) == Some(EntryKind::Dir))
}
