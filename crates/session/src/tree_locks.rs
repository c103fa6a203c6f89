//! Finds the locks under which the broker of a run judges and performs its calls: one for every guarded tree.
//!
//! Two runs that share a tree, or of which one has a tree inside the other's, must not change it between each other's
//! judging and performing. Runs that share nothing must not wait for each other. So each tree has a lock file, named
//! after its device and inode, which lists the paths it stands for. A run uses the file of its own tree, and those of
//! overlapping trees of runs that started earlier: of any two runs, the later one knows both files.
//!
//! Two paths to one directory, by a bind mount on the host, are recognised as the same only for the tree itself, not
//! for the directories around it.

use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
use palisade_broker::{PRESENCE, TreeLock, TreeLocks};
use palisade_plan::model::{Confinement, MountOp, Plan};
use palisade_sys::Errno;
use palisade_sys::lock::{ByteLock, is_byte_locked, lock_within, open_lock_file, try_lock_byte};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Locked while a run finds its files and removes those of ended runs.
const REGISTRY: &str = "registry";
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(2);
/// Files of ended runs are kept up to this number: the next run of that project uses its file again.
const MAX_KEPT_FILES: usize = 32;

/// A lock file, and the trees that it locks.
struct Known {
    file: File,
    paths: Vec<PathBuf>,
}

pub(crate) fn register(state: &Path, plan: &Plan) -> Result<TreeLocks> {
    let Some(guard) = &plan.sandbox.guard else { return Ok(TreeLocks::default()) };
    let trees = guard.trees.iter().map(|tree| (tree.clone(), source_of(plan, tree)));
    register_trees(&state.join("trees"), trees.collect())
}

/// The host path of a tree.
fn source_of(plan: &Plan, tree: &Path) -> PathBuf {
    let mounts = match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => inside.mounts.as_slice(),
        Confinement::NoNamespaces | Confinement::None => &[],
    };
    let bound = mounts.iter().find_map(|op| match op {
        MountOp::Bind { source, target, .. } if target == tree => Some(source.clone()),
        _ => None,
    });
    bound.unwrap_or_else(|| tree.to_owned())
}

/// `trees` are paths in the sandbox, each with its host path.
fn register_trees(dir: &Path, trees: Vec<(PathBuf, PathBuf)>) -> Result<TreeLocks> {
    make_private_dir(dir)?;
    let _registry = locked(&dir.join(REGISTRY))?;
    let mut known: BTreeMap<OsString, Known> = BTreeMap::new();
    let mut own = Vec::new();
    for (tree, source) in trees {
        let found = std::fs::metadata(&source)
            .map_err(|error| SessionError::io("look at", &source, error))?;
        let name = OsString::from(format!("{:x}-{:x}", found.dev(), found.ino()));
        if !known.contains_key(&name) {
            known.insert(name.clone(), known_at(&dir.join(&name), &source)?);
        }
        if let Some(lock) = known.get_mut(&name) {
            lock.stand_for(&source).map_err(|error| SessionError::io("write", dir, error))?;
        }
        own.push((tree, source, name));
    }
    add_overlapping(dir, &own, &mut known)?;
    let number = |name: &OsString| known.keys().position(|other| other == name);
    let trees = own
        .iter()
        .map(|(tree, source, name)| TreeLock {
            tree: tree.clone(),
            files: known
                .iter()
                .filter(|(other, lock)| *other == name || lock.overlaps(source))
                .filter_map(|(other, _)| number(other))
                .collect(),
        })
        .collect();
    Ok(TreeLocks { files: known.into_values().map(|lock| lock.file.into()).collect(), trees })
}

/// Adds the trees of other runs that overlap one of ours. Removes files of ended runs if there are too many.
fn add_overlapping(
    dir: &Path,
    own: &[(PathBuf, PathBuf, OsString)],
    known: &mut BTreeMap<OsString, Known>,
) -> Result<()> {
    let entries = std::fs::read_dir(dir).map_err(|error| SessionError::io("read", dir, error))?;
    let entries: Vec<_> = entries.flatten().collect();
    let is_crowded = entries.len() > MAX_KEPT_FILES;
    for entry in entries {
        let name = entry.file_name();
        if name == REGISTRY || known.contains_key(&name) {
            continue;
        }
        let path = entry.path();
        let fail = |action| {
            let path = path.clone();
            move |error: std::io::Error| SessionError::io(action, &path, error)
        };
        let mut file = open(&path)?;
        if !is_byte_locked(&file, PRESENCE).map_err(|errno| fail("lock")(errno.into()))? {
            // No run can start to use it meanwhile: we hold the registry lock.
            if is_crowded {
                std::fs::remove_file(&path).map_err(fail("remove"))?;
            }
            continue;
        }
        let paths = read_paths(&mut file).map_err(fail("read"))?;
        let lock = Known { file, paths };
        if own.iter().any(|(_, source, _)| lock.overlaps(source)) {
            known.insert(name, lock);
        }
    }
    Ok(())
}

impl Known {
    fn stand_for(&mut self, path: &Path) -> std::io::Result<()> {
        if !self.paths.iter().any(|known| known == path) {
            self.file.write_all(&[path.as_os_str().as_bytes(), b"\0"].concat())?;
            self.paths.push(path.to_owned());
        }
        Ok(())
    }

    fn overlaps(&self, path: &Path) -> bool {
        self.paths.iter().any(|known| known.starts_with(path) || path.starts_with(known))
    }
}

/// The file of one of our own trees, locked while it is open in any process.
fn known_at(path: &Path, source: &Path) -> Result<Known> {
    let fail = |action| move |error: std::io::Error| SessionError::io(action, path, error);
    let mut file = open(path)?;
    let is_in_use = is_byte_locked(&file, PRESENCE).map_err(|errno| fail("lock")(errno.into()))?;
    let mut paths = read_paths(&mut file).map_err(fail("read"))?;
    // The content that an ended run left is obsolete, but usually it is the same and kept: ext4 writes a file that was
    // truncated and refilled to the disk on close, which would be the most expensive part of every start.
    if !is_in_use && paths != [source] {
        file.set_len(0).map_err(fail("write"))?;
        file.rewind().map_err(fail("write"))?;
        paths.clear();
    }
    match try_lock_byte(&file, PRESENCE, ByteLock::Shared) {
        Ok(true) => {}
        Ok(false) => return Err(fail("lock")(Errno::BUSY.into())),
        Err(errno) => return Err(fail("lock")(errno.into())),
    }
    Ok(Known { file, paths })
}

fn read_paths(file: &mut File) -> std::io::Result<Vec<PathBuf>> {
    // Not `read_to_end`, which first queries the file's length and offset: every start does this ten times.
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let length = file.read(&mut part)?;
        text.extend_from_slice(&part[..length]);
        if length < part.len() {
            break;
        }
    }
    let paths = text.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| PathBuf::from(OsString::from_vec(path.to_vec()))).collect())
}

fn open(path: &Path) -> Result<File> {
    let opened = open_lock_file(path).map(File::from);
    opened.map_err(|source| SessionError::io("open", path, source.into()))
}

fn locked(path: &Path) -> Result<File> {
    let file = open(path)?;
    match lock_within(REGISTRY_TIMEOUT, || try_lock_byte(&file, 0, ByteLock::Exclusive)) {
        Ok(true) => Ok(file),
        Ok(false) => Err(SessionError::io("lock", path, Errno::BUSY.into())),
        Err(errno) => Err(SessionError::io("lock", path, errno.into())),
    }
}

#[cfg(test)]
#[path = "tree_locks_tests.rs"]
mod tests;
