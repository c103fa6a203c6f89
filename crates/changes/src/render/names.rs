//! Lists of changed names, one a line.

use crate::changeset::{Change, ChangeKind, ChangeSet, Rename};
use crate::error::Result;
use crate::paths::quoted;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// One thing to show: a change, or a rename with its two changes.
pub(super) struct Shown<'s> {
    pub(super) change: &'s Change,
    pub(super) from: Option<(&'s Change, &'s Rename)>,
}

/// What a person wants to see: no times, and directories only if they say something that their files do not.
pub(super) fn shown(set: &ChangeSet) -> Vec<Shown<'_>> {
    let sources: BTreeSet<&Path> = set.renames.iter().map(|rename| rename.from.as_path()).collect();
    let targets: BTreeMap<&Path, &Rename> =
        set.renames.iter().map(|rename| (rename.to.as_path(), rename)).collect();
    let says_something = |change: &&Change| {
        let is_told_by_files = change.is_directory()
            && matches!(change.kind, ChangeKind::Added | ChangeKind::Deleted)
            && !set.below(&change.path).is_empty();
        change.kind != ChangeKind::Touched
            && !is_told_by_files
            && !sources.contains(change.path.as_path())
    };
    let mut shown = Vec::new();
    for change in set.changes.iter().filter(says_something) {
        let rename = targets.get(change.path.as_path()).copied();
        let from = rename.and_then(|rename| Some((set.get(&rename.from)?, rename)));
        shown.push(Shown { change, from });
    }
    shown
}

/// Like `git diff --name-only`.
pub fn write_names(set: &ChangeSet, out: &mut dyn Write) -> Result<()> {
    for Shown { change, .. } in shown(set) {
        writeln!(out, "{}", name(change))?;
    }
    Ok(())
}

/// Like `git diff --name-status`.
pub fn write_name_status(set: &ChangeSet, out: &mut dyn Write) -> Result<()> {
    for Shown { change, from } in shown(set) {
        match from {
            Some((from, rename)) => {
                writeln!(out, "R{:03}\t{}\t{}", rename.similarity, name(from), name(change))?;
            }
            None => writeln!(out, "{}\t{}", letter(change.kind), name(change))?,
        }
    }
    Ok(())
}

fn letter(kind: ChangeKind) -> char {
    match kind {
        ChangeKind::Added => 'A',
        ChangeKind::Deleted => 'D',
        ChangeKind::TypeChanged => 'T',
        ChangeKind::Modified
        | ChangeKind::ModeChanged
        | ChangeKind::AttributesChanged
        | ChangeKind::Touched
        | ChangeKind::Linked => 'M',
    }
}

/// A directory ends with a slash.
pub(super) fn name(change: &Change) -> String {
    let name = quoted(&change.path);
    match name.strip_suffix('"').filter(|_| name.starts_with('"')) {
        _ if !change.is_directory() => name,
        Some(open) => format!("{open}/\""),
        None => format!("{name}/"),
    }
}
