//! Worktrees and submodules, where `.git` is a file that points to a directory elsewhere.
//!
//! The file is part of the project, so its content is untrusted. Its target is granted only if it points back,
//! and only as far as a commit needs. It must not be possible to plant a hook or configuration there.

use crate::facts::EntryKind;
use crate::grant::{Grant, GrantKind, Granter, Origin};
use crate::host::{Host, Resolved};
use crate::model::PartlyWritable;
use std::path::{Path, PathBuf};

/// Parts of a common directory that git writes to from a worktree. The guard judges the settings.
const WRITTEN: [&str; 18] = [
    "objects",
    "refs",
    "logs",
    "reftable",
    // Git locks HEAD only to read it; HEAD itself stays read-only.
    "HEAD.lock",
    "packed-refs",
    "packed-refs.lock",
    "packed-refs.new",
    "config",
    "config.lock",
    "shallow",
    "shallow.lock",
    "rr-cache",
    "lfs",
    "gc.pid",
    "gc.pid.lock",
    "gc.log",
    "gc.log.lock",
];
/// Parts of a worktree's own directory that determine what git runs or where it looks.
const WORKTREE_SEALED: [&str; 3] = ["commondir", "config.worktree", "gitdir"];
/// The same for a submodule's directory.
const SUBMODULE_SEALED: [&str; 3] = ["commondir", "config.worktree", "hooks"];

#[derive(Debug, Default)]
pub(crate) struct GitDir {
    pub(crate) grants: Vec<Grant>,
    pub(crate) seals: Vec<PathBuf>,
    /// Its configuration file, which must be sealed if names are not guarded.
    pub(crate) config: Option<PathBuf>,
    pub(crate) note: Option<String>,
}

/// What a project needs from a git directory outside it.
pub(crate) fn outside_of(root: &Path, access: GrantKind, granter: &Granter<'_>) -> GitDir {
    let host = granter.host;
    let pointer = root.join(".git");
    if host.kind(&pointer) != Some(EntryKind::File) {
        return GitDir::default();
    }
    let dir = host
        .read_small(&pointer)
        .and_then(|text| text.trim_end().strip_prefix("gitdir:").map(|path| path.trim().to_owned()))
        .and_then(|path| host.resolve(&root.join(path)).ok());
    let Some(dir) = dir.filter(|dir| dir.kind == EntryKind::Dir) else {
        return refused(&pointer, "points at no directory");
    };
    if dir.path.starts_with(root) {
        return GitDir::default();
    }
    if let Some(common) = worktree_of(&dir.path, &pointer, host) {
        worktree(dir, &common, access, granter)
    } else if is_submodule(&dir.path, root, host) {
        submodule(dir, access, granter)
    } else {
        refused(&pointer, "points at a directory that does not point back")
    }
}

/// The configuration file of the repository whose top is this directory.
pub(crate) fn config_of(root: &Path, host: &Host<'_>) -> Option<PathBuf> {
    let git = root.join(".git");
    let dir = match host.kind(&git)? {
        EntryKind::File => {
            let text = host.read_small(&git)?;
            let dir = follow(root, text.trim_end().strip_prefix("gitdir:")?.trim(), host)?;
            let common = host.read_small(&dir.join("commondir"));
            common.and_then(|common| follow(&dir, common.trim_end(), host)).unwrap_or(dir)
        }
        _ => git,
    };
    Some(dir.join("config"))
}

fn refused(pointer: &Path, why: &str) -> GitDir {
    let note = format!("{} {why}: its git directory is not granted", pointer.display());
    GitDir { note: Some(note), ..GitDir::default() }
}

/// The common directory, if `dir` belongs to exactly the worktree whose `.git` is `pointer`.
fn worktree_of(dir: &Path, pointer: &Path, host: &Host<'_>) -> Option<PathBuf> {
    let back = follow(dir, host.read_small(&dir.join("gitdir"))?.trim_end(), host)?;
    let common = follow(dir, host.read_small(&dir.join("commondir"))?.trim_end(), host)?;
    let genuine =
        back == host.resolve(pointer).ok()?.path && dir.parent()? == common.join("worktrees");
    genuine.then_some(common)
}

fn is_submodule(dir: &Path, root: &Path, host: &Host<'_>) -> bool {
    let Some(config) = host.read_small(&dir.join("config")) else { return false };
    config.lines().any(|line| {
        line.split_once('=').is_some_and(|(key, value)| {
            key.trim() == "worktree" && follow(dir, value.trim(), host).as_deref() == Some(root)
        })
    })
}

fn follow(base: &Path, path: &str, host: &Host<'_>) -> Option<PathBuf> {
    host.resolve(&base.join(path)).ok().map(|found| found.path)
}

/// The parts that are written in the repository of a worktree, if the directory's `.git` leads to one.
pub(crate) fn limited(root: &Path, host: &Host<'_>) -> Option<PartlyWritable> {
    let pointer = root.join(".git");
    let text = (host.kind(&pointer)? == EntryKind::File).then(|| host.read_small(&pointer))??;
    let own = follow(root, text.trim_end().strip_prefix("gitdir:")?.trim(), host)?;
    let directory = worktree_of(&own, &pointer, host)?;
    let mut parts: Vec<PathBuf> = WRITTEN.map(PathBuf::from).to_vec();
    parts.extend(own.strip_prefix(&directory).map(Path::to_owned));
    Some(PartlyWritable { directory, parts })
}

/// Grants the worktree's own directory and the written parts of the common one; everything else there stays
/// read-only. The common directory as a whole is writable ([`limited`] restricts which parts), because git
/// replaces some files by new ones. If the directory were private to the run, `git pack-refs` would remove
/// references and write them to a place that is discarded.
fn worktree(own: Resolved, common: &Path, access: GrantKind, granter: &Granter<'_>) -> GitDir {
    let seals = WORKTREE_SEALED.map(|name| own.path.join(name)).to_vec();
    let of_common = |path: PathBuf, entry: EntryKind, kind: GrantKind| {
        let found = Resolved { path, kind: entry, links: Vec::new() };
        Some(Grant { kind, ..granter.shipped(found, true, Origin::Git)? })
    };
    let mut grants: Vec<Grant> = Vec::new();
    grants.extend(of_common(common.to_owned(), EntryKind::Dir, access));
    for (name, entry) in granter.host.children(common).iter() {
        if !WRITTEN.iter().any(|written| name == written) {
            grants.extend(of_common(common.join(name), *entry, GrantKind::ReadOnly));
        }
    }
    let own = granter.shipped(own, true, Origin::Git);
    grants.extend(own.map(|grant| Grant { kind: access, ..grant }));
    let config = existing(vec![common.join("config")], granter.host).pop();
    GitDir { grants, seals: existing(seals, granter.host), config, note: None }
}

/// The directory as a whole is writable, because git writes its index beside the configuration.
fn submodule(own: Resolved, access: GrantKind, granter: &Granter<'_>) -> GitDir {
    let seals = SUBMODULE_SEALED.map(|name| own.path.join(name)).to_vec();
    let config = existing(vec![own.path.join("config")], granter.host).pop();
    let own = granter.shipped(own, true, Origin::Git);
    let grants = own.map(|grant| Grant { kind: access, ..grant }).into_iter().collect();
    GitDir { grants, seals: existing(seals, granter.host), config, note: None }
}

/// Only files and directories can be sealed.
fn existing(mut paths: Vec<PathBuf>, host: &Host<'_>) -> Vec<PathBuf> {
    paths.retain(|path| host.kind(path).is_some_and(EntryKind::is_node));
    paths
}
