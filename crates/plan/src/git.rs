//! Worktrees and submodules: `.git` is a file that points to a directory elsewhere.
//!
//! That file is in the project, so the project's author wrote it. Its target is granted only if it points back,
//! and only so far that a commit works and no hook or configuration can be planted.

use crate::facts::EntryKind;
use crate::grant::{Grant, GrantKind, Granter, Origin};
use crate::host::{Host, Resolved};
use crate::model::PartlyWritable;
use std::path::{Path, PathBuf};

/// Parts of a common directory that git writes to from a worktree; its settings are judged.
const WRITTEN: [&str; 18] = [
    "objects",
    "refs",
    "logs",
    "reftable",
    // Only to look at it: HEAD itself stays.
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
/// Parts of a worktree's own directory that decide what git runs or where it looks.
const WORKTREE_SEALED: [&str; 3] = ["commondir", "config.worktree", "gitdir"];
/// The same for a submodule's directory.
const SUBMODULE_SEALED: [&str; 3] = ["commondir", "config.worktree", "hooks"];

#[derive(Debug, Default)]
pub(crate) struct GitDir {
    pub(crate) grants: Vec<Grant>,
    pub(crate) seals: Vec<PathBuf>,
    /// Its configuration, which is to be sealed where names are not judged.
    pub(crate) config: Option<PathBuf>,
    pub(crate) note: Option<String>,
}

/// What a project needs of a git directory outside of it.
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

/// The file with the settings of the repository that a directory is the top of.
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

/// The common directory, if `dir` is the directory of the very worktree whose `.git` is `pointer`.
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

/// What is written of the repository that a worktree belongs to, if the directory's `.git` leads to one.
pub(crate) fn limited(root: &Path, host: &Host<'_>) -> Option<PartlyWritable> {
    let pointer = root.join(".git");
    let text = (host.kind(&pointer)? == EntryKind::File).then(|| host.read_small(&pointer))??;
    let own = follow(root, text.trim_end().strip_prefix("gitdir:")?.trim(), host)?;
    let directory = worktree_of(&own, &pointer, host)?;
    let mut parts: Vec<PathBuf> = WRITTEN.map(PathBuf::from).to_vec();
    parts.extend(own.strip_prefix(&directory).map(Path::to_owned));
    Some(PartlyWritable { directory, parts })
}

/// Its own directory and the written parts of the common one; what else is there stays read-only. The common directory as a
/// whole is writable (`limited` says how little of it), for git writes some files anew beside the old ones: were it the
/// run's own, `git pack-refs` would remove references and write them to where nobody finds them.
fn worktree(own: Resolved, common: &Path, access: GrantKind, granter: &Granter<'_>) -> GitDir {
    let seals = WORKTREE_SEALED.map(|name| own.path.join(name)).to_vec();
    let of_common = |path: PathBuf, entry: EntryKind, kind: GrantKind| {
        let found = Resolved { path, kind: entry, links: Vec::new() };
        Some(Grant { kind, ..granter.shipped(found, true, Origin::Git)? })
    };
    let mut grants: Vec<Grant> = Vec::new();
    grants.extend(of_common(common.to_owned(), EntryKind::Dir, access));
    for (name, entry) in granter.host.children(common) {
        if !WRITTEN.iter().any(|written| name == *written) {
            grants.extend(of_common(common.join(name), entry, GrantKind::ReadOnly));
        }
    }
    let own = granter.shipped(own, true, Origin::Git);
    grants.extend(own.map(|grant| Grant { kind: access, ..grant }));
    let config = existing(vec![common.join("config")], granter.host).pop();
    GitDir { grants, seals: existing(seals, granter.host), config, note: None }
}

/// Git writes its index beside the configuration, so the directory as a whole is writable.
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
