//! The end of a run's use of its caches: what it wrote is left to later runs, layers become one, and what no longer fits is
//! removed.

use super::inventory::{bytes_below, evict, grow};
use super::removal::{SetAside, open};
use super::{Caches, LAYERS, LOCKED_BYTE, MAX_LAYERS, RUNS, names};
use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
use crate::kept_layer::{UPPER, WORK};
use palisade_changes::{discard, fold};
use palisade_sys::lock::{ByteLock, try_lock_byte};
use rustix::fs::{AtFlags, Mode};
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
        let written = match leave {
            Leave::Everything => tidy(&run),
            Leave::Nothing => Ok(None),
        };
        let is_alone = try_lock_byte(&self.lock, LOCKED_BYTE, ByteLock::Exclusive)
            .map_err(|errno| SessionError::io("lock", &self.store, errno.into()))?;
        let mut aside = Vec::new();
        let layers = self.store.join(LAYERS);
        let has_room = is_alone || names(&layers)?.len() < MAX_LAYERS;
        match &written {
            Ok(Some(_)) if has_room => {
                make_private_dir(&layers)?;
                rename(&run, &layers.join(&self.session))?;
            }
            _ => aside.push(SetAside::take_part(&self.store, &run)?),
        }
        let mut folded = Ok(());
        if is_alone {
            for left in names(&self.store.join(RUNS))? {
                let left = self.store.join(RUNS).join(left);
                aside.push(SetAside::take_part(&self.store, &left)?);
            }
            folded = self.fold_layers(&mut aside);
            match (names(&layers)?.is_empty(), &written) {
                (true, _) => aside.push(SetAside::take(&self.store)?),
                (false, Ok(Some(bytes))) => grow(&self.store, *bytes)?,
                (false, _) => {}
            }
        }
        let store = self.store;
        drop(self.lock);
        aside.into_iter().try_for_each(SetAside::remove)?;
        if is_alone && matches!(written, Ok(Some(_))) {
            evict(&store, most)?;
        }
        folded.and(written.map(drop))
    }

    /// Makes one layer of all. Only with the lock held alone. A layer that cannot be brought down is given up, so that
    /// later ones can.
    fn fold_layers(&self, aside: &mut Vec<SetAside>) -> Result<()> {
        let layers = self.store.join(LAYERS);
        let mut ids = names(&layers)?;
        ids.sort();
        let Some((oldest, newer)) = ids.split_first() else { return Ok(()) };
        let oldest = layers.join(oldest);
        let mut outcome = Ok(());
        for layer in newer.iter().map(|id| layers.join(id)) {
            let mut stacks = names(&layer)?.into_iter();
            let folded = stacks.try_for_each(|stack| fold_stack(&layer, &oldest, &stack));
            outcome = outcome.and(folded);
            aside.push(SetAside::take_part(&self.store, &layer)?);
        }
        outcome
    }
}

fn fold_stack(newer: &Path, older: &Path, stack: &OsStr) -> Result<()> {
    let (newer, older) = (newer.join(stack), older.join(stack));
    if fs::symlink_metadata(&older).is_err() {
        return rename(&newer, &older);
    }
    let below = palisade_plan::path_of_layer(stack).and_then(|lower| open(&lower).ok());
    let (from, into) = (open(&newer.join(UPPER))?, open(&older.join(UPPER))?);
    Ok(fold(from.as_fd(), into.as_fd(), below.as_ref().map(OwnedFd::as_fd))?)
}

/// Removes what the kernel needed, and says how much was written, in bytes. None if nothing was.
///
/// Where a stack is a cache itself, the command may have closed `upper` to everybody. What else it closed cannot be
/// counted, and is no tool's work: that is an error.
fn tidy(run: &Path) -> Result<Option<u64>> {
    let mut written = None;
    for stack in names(run)? {
        let stack = run.join(stack);
        let directory = open(&stack)?;
        discard(directory.as_fd(), OsStr::new(WORK))?;
        let upper = OsStr::new(UPPER);
        rustix::fs::chmodat(&directory, upper, Mode::RWXU, AtFlags::empty())
            .map_err(|errno| SessionError::io("chmod", &stack, errno.into()))?;
        match names(&stack.join(UPPER))?.is_empty() {
            true => discard(open(run)?.as_fd(), stack.file_name().unwrap_or_default()).map(drop)?,
            false => *written.get_or_insert(0) += bytes_below(&stack)?,
        }
    }
    Ok(written)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| SessionError::io("rename", from, source))
}
