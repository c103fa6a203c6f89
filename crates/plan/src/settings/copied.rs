//! Copies the caller's settings into the private home, so that a program that changes or replaces them finds
//! ordinary files. Changes are discarded with the run.
//!
//! Large files, executables and directories with many files are not copied. The caller's own are visible,
//! read-only.

use super::carried::content;
use crate::facts::EntryKind;
use crate::grant::TOOLCHAIN;
use crate::host::Host;
use crate::model::{MountAccess, MountOp, NodeKind};
use crate::path_text::PathText as _;
use crate::view::Composition;
use std::path::Path;

/// A directory with more files is shown, not copied.
const MAX_FILES: usize = 16;
const DIRECTORY_MODE: u32 = 0o755;

pub(crate) fn copy_settings(home: &Path, view: &mut Composition, host: &Host<'_>) {
    let behind_home = view.ops.after(home);
    let copies: Vec<MountOp> = behind_home
        .take_while(|(target, _)| target.is_in(home))
        .filter(|(target, _)| is_part_of(home, target, view) && !has_mounts_below(target, view))
        .filter_map(|(_, op)| copies_of(op, host))
        .flatten()
        .collect();
    view.ops.extend(copies.into_iter().map(|op| (op.target().to_owned(), op)));
}

/// Whether nothing is mounted between the private home and a path.
fn is_part_of(home: &Path, path: &Path, view: &Composition) -> bool {
    let between = path.ancestors().skip(1).take_while(|above| !above.is_same(home));
    between.filter_map(|above| view.ops.get(above)).all(|op| matches!(op, MountOp::Dir { .. }))
}

fn has_mounts_below(path: &Path, view: &Composition) -> bool {
    let behind = view.ops.after(path);
    behind.map(|(target, _)| target).next().is_some_and(|next| next.is_in(path))
}

fn copies_of(op: &MountOp, host: &Host<'_>) -> Option<Vec<MountOp>> {
    let MountOp::Bind {
        source, target, access: MountAccess::ReadOnly, exec: false, kind, why, ..
    } = op
    else {
        return None;
    };
    if *why != TOOLCHAIN {
        return None;
    }
    match kind {
        NodeKind::File => Some(vec![copy(source, target, host)?]),
        NodeKind::Dir => {
            let children = host.first_children(source, MAX_FILES + 1);
            let is_small = children.len() <= MAX_FILES
                && children.iter().all(|(_, kind)| *kind == EntryKind::File);
            is_small.then_some(())?;
            let directory = MountOp::Dir { target: target.clone(), mode: DIRECTORY_MODE };
            let files =
                children.iter().map(|(name, _)| copy(&source.join(name), &target.join(name), host));
            std::iter::once(Some(directory)).chain(files).collect()
        }
    }
}

fn copy(source: &Path, target: &Path, host: &Host<'_>) -> Option<MountOp> {
    let content = content(source, host)?;
    let (source, target) = (source.to_owned(), target.to_owned());
    Some(MountOp::Copy { source, target, content, is_filtered: false, why: TOOLCHAIN })
}
