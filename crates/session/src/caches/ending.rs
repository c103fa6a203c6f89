//! The end of a run's use of its caches: what it wrote is left to later runs, layers become one, and what no longer fits is
//! removed.

use super::inventory::{bytes_below, evict, grow};
use super::removal::{open, remove, remove_store};
use super::{Caches, LAYERS, MAX_LAYERS, RUNS, names};
use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
use crate::kept_layer::{UPPER, WORK};
use palisade_changes::{discard, fold};
use palisade_sys::lock::try_lock_file;
use rustix::fs::FlockOperation;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// Whether later runs get what a run wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Everything,
    Nothing,
}

impl Caches {
    /// After the last process of the run. `most` is what all projects together may keep, in bytes.
    pub(crate) fn end(self, leave: Leave, most: Option<u64>) -> Result<()> {
        let run = self.store.join(RUNS).join(&self.session);
        let has_written = leave == Leave::Everything && tidy(&run)?;
        let written = if has_written { bytes_below(&run) } else { 0 };
        let alone = try_lock_file(&self.lock, FlockOperation::NonBlockingLockExclusive);
        let is_alone =
            alone.map_err(|errno| SessionError::io("lock", &self.store, errno.into()))?;
        let layers = self.store.join(LAYERS);
        if !has_written || (!is_alone && names(&layers)?.len() >= MAX_LAYERS) {
            remove(&run)?;
        } else {
            make_private_dir(&layers)?;
            rename(&run, &layers.join(&self.session))?;
        }
        if !is_alone {
            return Ok(());
        }
        for left in names(&self.store.join(RUNS))? {
            remove(&self.store.join(RUNS).join(left))?;
        }
        self.fold_layers()?;
        if names(&layers)?.is_empty() {
            return remove_store(&self.store);
        }
        if has_written {
            grow(&self.store, written)?;
            drop(self.lock);
            evict(&self.store, most)?;
        }
        Ok(())
    }

    /// Makes one layer of all. Only with the lock held alone.
    fn fold_layers(&self) -> Result<()> {
        let layers = self.store.join(LAYERS);
        let mut ids = names(&layers)?;
        ids.sort();
        let Some((oldest, newer)) = ids.split_first() else { return Ok(()) };
        let oldest = layers.join(oldest);
        for layer in newer.iter().map(|id| layers.join(id)) {
            for stack in names(&layer)? {
                self.fold_stack(&layer, &oldest, &stack)?;
            }
            remove(&layer)?;
        }
        Ok(())
    }

    fn fold_stack(&self, newer: &Path, older: &Path, stack: &OsStr) -> Result<()> {
        let (newer, older) = (newer.join(stack), older.join(stack));
        if fs::symlink_metadata(&older).is_err() {
            return rename(&newer, &older);
        }
        let known = self.lower.iter().find(|(name, _)| name == stack);
        let below = known.map(|(_, lower)| lower.clone());
        let below = below.or_else(|| palisade_plan::path_of_layer(stack));
        let below = below.and_then(|lower| open(&lower).ok());
        let (from, into) = (open(&newer.join(UPPER))?, open(&older.join(UPPER))?);
        Ok(fold(from.as_fd(), into.as_fd(), below.as_ref().map(OwnedFd::as_fd))?)
    }
}

/// Removes what the kernel needed, and says whether anything was written.
fn tidy(run: &Path) -> Result<bool> {
    let mut has_written = false;
    for stack in names(run)? {
        let stack = run.join(stack);
        discard(open(&stack)?.as_fd(), OsStr::new(WORK))?;
        match names(&stack.join(UPPER))?.is_empty() {
            true => remove(&stack)?,
            false => has_written = true,
        }
    }
    Ok(has_written)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| SessionError::io("rename", from, source))
}
