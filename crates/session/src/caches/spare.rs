//! The directories of a run that wrote nothing, kept for the next run of any project: making and removing them would cost
//! more than mounting what they are for, and where blocks are discarded as they are freed, every removal waits for the disk.
//!
//! Nothing of a command is ever in them: what the kernel made of a run is removed before. Of several runs that could use
//! them one does, by a rename; every failure here means that directories are made, or removed, as if there were no spare.

use super::{RUNS, all_stores};
use std::fs;
use std::path::Path;

/// Beside the stores of projects, whose names begin with `%` or are digests, and among runs, whose names are ids.
pub(super) const SPARE: &str = "spare";

/// Takes the spare store for a project that has none.
pub(super) fn use_store(store: &Path) {
    if fs::symlink_metadata(store).is_err() {
        let _ = fs::rename(all_stores(store).join(SPARE), store);
    }
}

/// Takes a store's spare directories for a run.
pub(super) fn use_run(store: &Path, session: &str) {
    let runs = store.join(RUNS);
    let _ = fs::rename(runs.join(SPARE), runs.join(session));
}

/// Leaves the directories of a run to the next one. Only with the store's lock held alone.
pub(super) fn leave_run(store: &Path, session: &str) -> bool {
    let runs = store.join(RUNS);
    fs::rename(runs.join(session), runs.join(SPARE)).is_ok()
}

/// Leaves a store that keeps nothing to the next project. False if there is a spare one already. Only with its lock held
/// alone.
pub(super) fn leave_store(store: &Path) -> bool {
    fs::rename(store, all_stores(store).join(SPARE)).is_ok()
}
