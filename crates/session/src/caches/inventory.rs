//! What the caches of all projects hold, and their removal: on request, or because together they are too large.

use super::merging::BACKLOG;
use super::removal::SetAside;
use super::spare::SPARE;
use super::{LOCK, all_caches, alone, finished, layers_in, names};
use crate::app_dirs::{AppDirs, replace_file};
use crate::caller::Caller;
use crate::config::project_root;
use crate::error::{Result, SessionError};
use jiff::Timestamp;
use palisade_plan::path_of_layer;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const SIZE: &str = "size";
/// `st_blocks` counts these, whatever the file system uses.
const BLOCK: u64 = 512;

/// The caches of one project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheEntry {
    /// None if its path is too long to be a name.
    pub project: Option<PathBuf>,
    pub bytes: u64,
    pub last_used: Timestamp,
    /// Whether a run uses them now.
    pub is_in_use: bool,
    /// What each directory of the host has above it, in bytes.
    pub parts: BTreeMap<PathBuf, u64>,
    #[serde(skip)]
    store: PathBuf,
}

/// What a removal did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearedCaches {
    pub cleared: Vec<CacheEntry>,
    /// Those that a run uses.
    pub kept: Vec<CacheEntry>,
}

/// All projects' caches, the least recently used first.
pub fn list(places: &AppDirs) -> Result<Vec<CacheEntry>> {
    let mut entries = Vec::new();
    for name in names(&all_caches(places))? {
        let store = all_caches(places).join(&name);
        let is_store = SetAside::found(&store).is_none() && name != SPARE;
        let Some(last_used) = last_used(&store).filter(|_| is_store) else { continue };
        // A command may have left what cannot be measured, which must not hide the rest.
        let measured = measure(&store).ok();
        let bytes = measured.as_ref().map(|parts| parts.values().sum());
        let parts = measured.unwrap_or_default();
        entries.push(CacheEntry {
            project: path_of_layer(&name).filter(|path| path.is_absolute()),
            bytes: bytes.unwrap_or_else(|| known_size(&store)),
            last_used,
            is_in_use: alone(&store)?.is_none(),
            parts,
            store,
        });
    }
    entries.sort_by_key(|entry| entry.last_used);
    Ok(entries)
}

/// The project that a directory is in, or the working directory, as a plan finds it.
pub fn project_of(caller: &Caller, start: Option<&Path>) -> Result<PathBuf> {
    project_root(caller, start)
}

/// Removes the caches of one project, or of all.
pub fn clear(places: &AppDirs, project: Option<&Path>) -> Result<ClearedCaches> {
    let wanted = project.map(|project| super::store_of(places, project));
    let mut done = ClearedCaches::default();
    for entry in list(places)? {
        if wanted.as_ref().is_some_and(|wanted| *wanted != entry.store) {
            continue;
        }
        match empty(&entry.store)? {
            true => done.cleared.push(entry),
            false => done.kept.push(entry),
        }
    }
    Ok(done)
}

/// Removes a store, unless a run uses it.
fn empty(store: &Path) -> Result<bool> {
    let Some(lock) = alone(store)? else { return Ok(false) };
    let aside = SetAside::take(store)?;
    drop(lock);
    aside.remove()?;
    Ok(true)
}

fn last_used(store: &Path) -> Option<Timestamp> {
    let found = fs::symlink_metadata(store.join(LOCK)).ok()?;
    Timestamp::new(found.mtime(), i32::try_from(found.mtime_nsec()).unwrap_or(0)).ok()
}

/// What the layers of a store occupy, by the directory of the host.
fn measure(store: &Path) -> Result<BTreeMap<PathBuf, u64>> {
    let mut parts = BTreeMap::new();
    for layer in finished(store)?.into_iter().chain(layers_in(&store.join(BACKLOG))?) {
        for stack in &layer.stacks {
            let Some(path) = path_of_layer(stack) else { continue };
            *parts.entry(path).or_insert(0) += bytes_below(&layer.directory.join(stack))?;
        }
    }
    Ok(parts)
}

/// Counts anew what a store holds.
pub(super) fn recount(store: &Path) -> Result<()> {
    write_down(store, measure(store)?.values().sum())
}

/// Whether so much more fits into a store. Where nobody can tell what it holds, more of it is kept.
pub(super) fn fits(store: &Path, bytes: u64, most: Option<u64>) -> bool {
    let held = || measure(store).map_or(0, |parts| parts.values().sum::<u64>());
    most.is_none_or(|most| held().saturating_add(bytes) <= most)
}

/// What is written down about the size of a store: counting takes long.
fn known_size(store: &Path) -> u64 {
    let written = fs::read_to_string(store.join(SIZE)).ok();
    written.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn write_down(store: &Path, bytes: u64) -> Result<()> {
    replace_file(&store.join(SIZE), bytes.to_string().as_bytes())
}

/// Adds what a run wrote. What it replaced is counted as well, until somebody measures.
pub(super) fn grow(store: &Path, bytes: u64) -> Result<()> {
    write_down(store, known_size(store).saturating_add(bytes))
}

/// What files and directories occupy. A file with several names counts once.
pub(super) fn bytes_below(top: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut seen = HashSet::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        let failed = |source| SessionError::io("measure", &directory, source);
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let found = entry.metadata().map_err(failed)?;
            if found.nlink() == 1 || found.is_dir() || seen.insert(found.ino()) {
                bytes += found.blocks() * BLOCK;
            }
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

/// Removes the least recently used caches until the rest fits into `most` bytes; those of `own` last.
pub(super) fn evict(own: &Path, most: Option<u64>) -> Result<()> {
    let (Some(most), Some(all)) = (most, own.parent()) else { return Ok(()) };
    let mut stores = Vec::new();
    for name in names(all)?.into_iter().filter(|name| *name != SPARE) {
        let store = all.join(name);
        if let Some(aside) = SetAside::found(&store) {
            aside.remove()?;
            continue;
        }
        stores.push((store == own, last_used(&store), store));
    }
    stores.sort();
    let mut total: u64 = stores.iter().map(|(_, _, store)| known_size(store)).sum();
    for (_, _, store) in stores {
        if total <= most {
            break;
        }
        let known = known_size(&store);
        // What cannot be measured is more than fits.
        let real = measure(&store).map_or(most.saturating_add(1), |parts| parts.values().sum());
        total = total.saturating_sub(known).saturating_add(real);
        if total > most && real > 0 && empty(&store)? {
            total = total.saturating_sub(real);
        } else if let Some(_lock) = alone(&store)? {
            write_down(&store, real)?;
        }
    }
    Ok(())
}
