//! What became of one path, by its entries before and after.

use crate::attributes::user_attributes;
use crate::changeset::{Change, ChangeKind};
use crate::contents::{Located, is_same_content};
use crate::entry::{Entry, EntryKind};
use crate::layers::Layers;
use palisade_sys::Result as SysResult;
use std::path::{Path, PathBuf};

/// The change of that kind, with the entries of both sides.
pub(crate) fn change(
    layers: &Layers,
    path: PathBuf,
    kind: ChangeKind,
    (old_at, new_at): (Option<Located>, Option<Located>),
) -> SysResult<Change> {
    let entry = |at: Located| -> SysResult<Entry> {
        let target = match at.found.kind {
            EntryKind::Link => Some(layers.link_target(at.layer, &path)?),
            _ => None,
        };
        Ok(at.found.entry(target))
    };
    let old = old_at.map(entry).transpose()?;
    let new = new_at.map(entry).transpose()?;
    Ok(Change { path, kind, old, new, hard_link_of: None, old_at, new_at })
}

/// Between two entries of the same type.
pub(crate) fn difference(
    layers: &Layers,
    path: &Path,
    old: Located,
    new: Located,
) -> SysResult<Option<ChangeKind>> {
    let kind = new.found.kind;
    let is_same = match kind {
        EntryKind::File => is_same_content(layers, path, old, new)?,
        EntryKind::Link => {
            layers.read_link(old.layer, path)? == layers.read_link(new.layer, path)?
        }
        _ => true,
    };
    if !is_same {
        return Ok(Some(ChangeKind::Modified));
    }
    if kind == EntryKind::File {
        let attributes = |layer| {
            let (file, _) = layers.open_file(layer, path)?;
            user_attributes(file, path)
        };
        if attributes(old.layer)? != attributes(new.layer)? {
            return Ok(Some(ChangeKind::AttributesChanged));
        }
    }
    // A link has no permissions of its own.
    if kind != EntryKind::Link && old.found.mode != new.found.mode {
        return Ok(Some(ChangeKind::ModeChanged));
    }
    if kind == EntryKind::File && old.found.modified != new.found.modified {
        return Ok(Some(ChangeKind::Touched));
    }
    Ok(None)
}
