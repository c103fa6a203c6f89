//! Caches of the sandboxes' own: what a run writes to the caches of build tools is kept for later sandboxes of the same
//! project, and never read by the host.
//!
//! Two overlays must not have one upper layer: they diverge silently. So each run has a layer of its own, above those that
//! earlier runs left, and leaves it to later ones when it ends:
//!
//! ```text
//! caches/PROJECT/lock            shared by every run, alone by whoever changes layers
//! caches/PROJECT/runs/ID/STACK/  what a run writes
//! caches/PROJECT/layers/ID/STACK/  what ended runs wrote
//! caches/PROJECT/backlog/ID/STACK/ the same, where more of them are not merged than can be mounted
//! caches/spare/                  directories of a run that wrote nothing, for the next one
//! ```
//!
//! Whoever holds the lock alone knows that nothing is mounted, makes one layer of several, and removes what runs left that
//! did not end by themselves. Commands wrote everything in there: must never follow a link, nor take a word of it for ours.

mod ending;
mod inventory;
mod merging;
mod removal;
mod spare;

pub(crate) use ending::Leave;
pub use inventory::{CacheEntry, ClearedCaches, clear, list, project_of};

use crate::app_dirs::{AppDirs, make_private_dir};
use crate::error::{Result, SessionError};
use crate::kept_layer::make_layer;
use palisade_plan::model::{CacheStack, Confinement, Plan};
use palisade_plan::{CacheStore, FinishedLayer, layer_name};
use palisade_record::Digest;
use palisade_sys::lock::{ByteLock, lock_within, open_lock_file, try_lock_byte};
use removal::SetAside;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK: &str = "lock";
const RUNS: &str = "runs";
const LAYERS: &str = "layers";
/// Of the lock file. A lock on a byte stays when it cannot be made exclusive; one on the file (flock(2)) would be lost.
const LOCKED_BYTE: i64 = 0;
/// Whoever holds the lock alone moves directories, and deletes none meanwhile.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The kernel takes the names of all layers in 256 bytes.
const MAX_LAYERS: usize = 8;
/// A name has at most 255 bytes.
const MAX_NAME: usize = 200;

/// The directory of all projects' caches.
fn all_caches(places: &AppDirs) -> PathBuf {
    places.state.join("caches")
}

/// The directory for a project's caches.
fn store_of(places: &AppDirs, project: &Path) -> PathBuf {
    let name = layer_name(project);
    let name = if name.len() <= MAX_NAME {
        name
    } else {
        OsString::from(Digest::of(name.as_encoded_bytes()).to_string())
    };
    all_caches(places).join(name)
}

/// The directory that a store is in.
fn all_stores(store: &Path) -> &Path {
    store.parent().unwrap_or(store)
}

/// What a plan would use. Nothing is made or locked.
pub(crate) fn look(places: &AppDirs, project: &Path, session: &str) -> CacheStore {
    let store = store_of(places, project);
    let finished = finished(&store).unwrap_or_default();
    CacheStore { top: store.join(RUNS).join(session), finished }
}

/// Layers of ended runs that are mounted, the newest first.
fn finished(store: &Path) -> Result<Vec<FinishedLayer>> {
    let mut layers = layers_in(&store.join(LAYERS))?;
    // The others lie on the oldest ones, and can wait.
    layers.truncate(MAX_LAYERS);
    layers.reverse();
    Ok(layers)
}

/// The oldest first.
fn layers_in(all: &Path) -> Result<Vec<FinishedLayer>> {
    let mut layers = Vec::new();
    for name in names(all)? {
        let directory = all.join(name);
        let stacks = names(&directory)?;
        layers.push(FinishedLayer { directory, stacks });
    }
    // Ids of runs sort by time.
    layers.sort_by(|one, other| one.directory.cmp(&other.directory));
    Ok(layers)
}

/// The names in a directory of ours, if it exists.
fn names(directory: &Path) -> Result<Vec<OsString>> {
    let failed = |source| SessionError::io("read", directory, source);
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(failed)).collect()
}

/// What is used of a project's caches from the moment a plan is made.
#[derive(Debug, Default)]
pub(crate) struct CacheUse(RefCell<Option<Result<InUse>>>);

#[derive(Debug)]
struct InUse {
    store: PathBuf,
    /// Shared with other runs of the project.
    lock: OwnedFd,
    /// What waited in the backlog.
    merged: Result<()>,
}

impl CacheUse {
    /// For the plan of a run: from here on nobody changes the layers.
    pub(crate) fn take(&self, places: &AppDirs, project: &Path, session: &str) -> CacheStore {
        let taken = InUse::take(store_of(places, project));
        let is_taken = taken.is_ok();
        *self.0.borrow_mut() = Some(taken);
        if is_taken { look(places, project, session) } else { CacheStore::default() }
    }

    /// Makes the directories that the plan mounts. None if it has no caches.
    pub(crate) fn begin(&self, plan: &Plan, session: &str) -> Result<Option<Caches>> {
        let stacks = stacks(plan);
        let Some(taken) = self.0.take().filter(|_| !stacks.is_empty()) else {
            return Ok(None);
        };
        let InUse { store, lock, merged } = taken?;
        spare::use_run(&store, session);
        for stack in stacks {
            make_layer(&stack.layer, stack.idmap)?;
        }
        let (session, stacks) = (session.to_owned(), stacks.to_vec());
        Ok(Some(Caches { store, lock, session, stacks, merged }))
    }
}

/// A plan that was not carried out leaves nothing.
impl Drop for CacheUse {
    fn drop(&mut self) {
        if let Some(Ok(InUse { store, lock, .. })) = self.0.take() {
            let is_alone = try_lock_byte(&lock, LOCKED_BYTE, ByteLock::Exclusive) == Ok(true);
            if is_alone && !store.join(LAYERS).exists() {
                // Whoever uses the project next tries again.
                let _ = SetAside::take(&store).and_then(SetAside::remove);
            }
        }
    }
}

fn stacks(plan: &Plan) -> &[CacheStack] {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => &inside.caches,
        Confinement::NoNamespaces | Confinement::None => &[],
    }
}

impl InUse {
    fn take(store: PathBuf) -> Result<Self> {
        let path = store.join(LOCK);
        let failed = |errno: Errno| SessionError::io("lock", &path, errno.into());
        let lock = loop {
            spare::use_store(&store);
            make_private_dir(&store)?;
            let lock = open_lock_file(&path).map_err(failed)?;
            let try_lock = || try_lock_byte(&lock, LOCKED_BYTE, ByteLock::Shared);
            if !lock_within(LOCK_TIMEOUT, try_lock).map_err(failed)? {
                return Err(failed(Errno::AGAIN));
            }
            if is_in_place(&lock, &path) {
                break lock;
            }
        };
        let merged = match merging::has_unseen(&store) {
            true => merge_if_alone(&store, &lock),
            false => Ok(()),
        };
        // For who removes what was not used for long.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        rustix::fs::futimens(&lock, &times).map_err(failed)?;
        Ok(Self { store, lock, merged })
    }
}

/// What did not fit while others ran is for this run, if it is the first.
fn merge_if_alone(store: &Path, lock: &OwnedFd) -> Result<()> {
    let failed = |errno: Errno| SessionError::io("lock", store, errno.into());
    if !try_lock_byte(lock, LOCKED_BYTE, ByteLock::Exclusive).map_err(failed)? {
        return Ok(());
    }
    let merged = merging::merge(store);
    try_lock_byte(lock, LOCKED_BYTE, ByteLock::Shared).map_err(failed)?;
    merged?.into_iter().try_for_each(SetAside::remove)
}

/// A store that holds nothing is removed, with its lock.
fn is_in_place(lock: &OwnedFd, path: &Path) -> bool {
    let (Ok(held), Ok(found)) = (rustix::fs::fstat(lock), rustix::fs::lstat(path)) else {
        return false;
    };
    (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)
}

/// The lock, if nobody else has it. None also if the store is gone.
fn alone(store: &Path) -> Result<Option<OwnedFd>> {
    let path = store.join(LOCK);
    let failed = |errno: Errno| SessionError::io("lock", &path, errno.into());
    let lock = match open_lock_file(&path) {
        Err(Errno::NOENT) => return Ok(None),
        lock => lock.map_err(failed)?,
    };
    let is_alone = try_lock_byte(&lock, LOCKED_BYTE, ByteLock::Exclusive).map_err(failed)?;
    Ok((is_alone && is_in_place(&lock, &path)).then_some(lock))
}

/// The caches of a run.
#[derive(Debug)]
pub(crate) struct Caches {
    store: PathBuf,
    lock: OwnedFd,
    session: String,
    stacks: Vec<CacheStack>,
    /// Before it began.
    merged: Result<()>,
}
