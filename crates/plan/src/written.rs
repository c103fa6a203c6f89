//! Takes the right to execute from what the command can write (`filesystem.executeWritten: false`), except in
//! `filesystem.executableDirs`.
//!
//! The mounts enforce it: on one with `noexec` the kernel refuses to execute a file, and to map it as code. Must come
//! after everything that adds writable mounts, so that none is left out.

use crate::error::{PlanError, Result};
use crate::facts::HostFacts;
use crate::host::Host;
use crate::model::{MountAccess, MountOp, NodeKind};
use crate::paths::Scope;
use crate::planted::PlantedPlaces;
use crate::see::Seen;
use palisade_policy::model::Filesystem;
use std::path::{Path, PathBuf};

/// In errors and notes.
const WHAT: &str = "executableDirs";

/// Changes the view, and adds the directories that must exist for it.
pub(crate) fn forbid_execution(
    filesystem: &Filesystem,
    facts: &HostFacts,
    host: &Host<'_>,
    seen: &mut Seen,
) -> Result<()> {
    if filesystem.execute_written {
        return Ok(());
    }
    let executable = places(&filesystem.executable_dirs, facts, host, &seen.planted)?;
    let is_executable = |place: &Path| executable.iter().any(|dir| place.starts_with(dir));
    let apart: Vec<MountOp> =
        executable.iter().filter_map(|dir| mounted_apart(dir, seen)).collect();
    for op in seen.view.ops.values_mut().filter(|op| op.is_writable()) {
        let (place, exec) = match op {
            MountOp::Bind { source, exec, .. } => (&*source, exec),
            MountOp::Overlay { lower, exec, .. } => (&*lower, exec),
            MountOp::Tmpfs { target, exec, .. } => (&*target, exec),
            _ => continue,
        };
        *exec &= is_executable(place);
    }
    for op in apart {
        if let MountOp::Bind { source, target, .. } = &op {
            if !host.exists(source) && !seen.create_dirs.contains(source) {
                seen.create_dirs.push(source.clone());
            }
            seen.view.ops.insert(target.clone(), op);
        }
    }
    let has_place = |dir: &&PathBuf| {
        let mut mounts = seen.view.ops.values();
        !mounts.any(|op| is_written_and_executed(op) && source_of(op).starts_with(dir))
    };
    let without: Vec<PathBuf> = executable.iter().filter(has_place).cloned().collect();
    for dir in without {
        let why = why_not(&dir, seen);
        let note = format!("nothing in {} can be executed ({WHAT}): {why}", dir.display());
        seen.notes.push(note);
    }
    Ok(())
}

fn why_not(dir: &Path, seen: &Seen) -> &'static str {
    let mut mounts = seen.view.ops.values();
    match mounts.any(|op| op.is_transaction() && dir.starts_with(source_of(op))) {
        // Not by --rw: that would write to the project's own directory.
        true => {
            "it is in a transaction, whose directories cannot be executed from one by one; run without the transaction, \
             or without executeWritten: false"
        }
        false => "it is not a writable directory of the host; name it with --rw as well",
    }
}

/// The directories in which what the command writes may be executed, by their paths in the sandbox.
pub(crate) fn executable_places(filesystem: &Filesystem, mounts: &[MountOp]) -> Vec<PathBuf> {
    if filesystem.execute_written {
        return Vec::new();
    }
    let places = mounts.iter().filter(|op| is_written_and_executed(op));
    places.map(|op| op.target().to_owned()).collect()
}

/// Real paths of the host. A directory may be missing, and is created for the run. None is behind a link that somebody
/// could have made for this run: whoever makes it would choose from where what is written is executed.
fn places(
    dirs: &[String],
    facts: &HostFacts,
    host: &Host<'_>,
    planted: &PlantedPlaces,
) -> Result<Vec<PathBuf>> {
    let scope = Scope::new(facts);
    let place = |text: &String| {
        let (path, links) = host.meant(scope.typed(text)?, WHAT)?;
        match planted.first_of(&links) {
            Some(link) => {
                Err(PlanError::PlantedLink { what: WHAT, link: link.place.clone(), path })
            }
            None => Ok(path),
        }
    };
    dirs.iter().map(place).collect()
}

/// A mount of its own for a directory inside a writable one, from which nothing is executed.
fn mounted_apart(dir: &Path, seen: &Seen) -> Option<MountOp> {
    let holds = |op: &&MountOp| match op {
        MountOp::Bind { source, access: MountAccess::ReadWrite, kind: NodeKind::Dir, .. } => {
            dir != source && dir.starts_with(source)
        }
        _ => false,
    };
    let above = seen.view.ops.values().filter(holds);
    let above = above.max_by_key(|op| source_of(op).components().count())?;
    let place = above.target().join(dir.strip_prefix(source_of(above)).ok()?);
    let stands_there = seen.view.standing_above(&place).map(MountOp::target);
    if stands_there != Some(above.target()) || seen.view.ops.contains_key(&place) {
        return None;
    }
    let mut apart = above.clone();
    if let MountOp::Bind { source, target, exec, .. } = &mut apart {
        dir.clone_into(source);
        *target = place;
        *exec = true;
    }
    Some(apart)
}

fn is_written_and_executed(op: &MountOp) -> bool {
    let exec = match op {
        MountOp::Bind { exec, .. }
        | MountOp::Overlay { exec, .. }
        | MountOp::Tmpfs { exec, .. } => *exec,
        _ => false,
    };
    exec && op.is_writable()
}

/// Where its files are outside the sandbox. A file system of the run's own has only its place.
fn source_of(op: &MountOp) -> &Path {
    match op {
        MountOp::Bind { source, .. } => source,
        MountOp::Overlay { lower, .. } => lower,
        other => other.target(),
    }
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
