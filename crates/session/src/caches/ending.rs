//! The end of a run's use of its caches: what it wrote is left to later runs, layers become one, and what no longer fits is
//! removed.

use super::inventory::{bytes_below, evict, grow};
use super::removal::{SetAside, open};
use super::spare::{self, SPARE};
use super::{Caches, LAYERS, LOCKED_BYTE, MAX_LAYERS, RUNS, names};
use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
use crate::kept_layer::{UPPER, WORK};
use palisade_changes::{discard, fold};
use palisade_plan::layer_name;
use palisade_plan::model::CacheStack;
use palisade_sys::beneath::open_beneath;
use palisade_sys::lock::{ByteLock, try_lock_byte};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
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
            Leave::Everything => self.tidy(&run),
            Leave::Nothing => Ok(None),
        };
        let is_alone = try_lock_byte(&self.lock, LOCKED_BYTE, ByteLock::Exclusive)
            .map_err(|errno| SessionError::io("lock", &self.store, errno.into()))?;
        let mut aside = Vec::new();
        let layers = self.store.join(LAYERS);
        let has_room = is_alone || names(&layers)?.len() < MAX_LAYERS;
        let is_spare = is_alone && leave == Leave::Everything && matches!(written, Ok(None));
        match &written {
            Ok(Some(_)) if has_room => {
                make_private_dir(&layers)?;
                // Nothing that it wrote was synced: after a loss of power, an empty file would lie above the host's.
                rustix::fs::syncfs(open(&run)?)
                    .map_err(|errno| SessionError::io("sync", &run, errno.into()))?;
                rename(&run, &layers.join(&self.session))?;
            }
            Ok(None) if is_spare && spare::leave_run(&self.store, &self.session) => {}
            _ => aside.push(SetAside::take_part(&self.store, &run)?),
        }
        let mut folded = Ok(());
        if is_alone {
            for left in names(&self.store.join(RUNS))?.into_iter().filter(|name| name != SPARE) {
                let left = self.store.join(RUNS).join(left);
                aside.push(SetAside::take_part(&self.store, &left)?);
            }
            folded = self.fold_layers(&mut aside);
            match (names(&layers)?.is_empty(), &written) {
                (true, _) if is_spare && spare::leave_store(&self.store) => {}
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

    /// Removes what the kernel needed, and says how much was written, in bytes. None if nothing was: then there are only
    /// directories of ours.
    ///
    /// Where a stack is a cache itself, the command may have closed `upper` to everybody. What else it closed cannot be
    /// counted, and is no tool's work: that is an error.
    fn tidy(&self, run: &Path) -> Result<Option<u64>> {
        for stack in &self.stacks {
            separate(stack, run)?;
        }
        let mut written = None;
        let mut unused = Vec::new();
        for name in names(run)? {
            let planned = self.stacks.iter().find(|stack| stack.layer.ends_with(&name));
            let stack = run.join(&name);
            let directory = open(&stack)?;
            let is_written =
                match rustix::fs::chmodat(&directory, UPPER, Mode::RWXU, AtFlags::empty()) {
                    // Of a spare, and not needed by this run.
                    Err(Errno::NOENT) => false,
                    Err(errno) => return Err(SessionError::io("chmod", &stack, errno.into())),
                    Ok(()) => {
                        let is_shared = planned.is_some_and(|stack| !stack.stands_for.is_empty());
                        !is_shared && !names(&stack.join(UPPER))?.is_empty()
                    }
                };
            if is_written {
                discard(directory.as_fd(), OsStr::new(WORK))?;
                *written.get_or_insert(0) += bytes_below(&stack)?;
            } else {
                unused.push((planned, name));
            }
        }
        for (planned, name) in unused {
            match (&written, planned) {
                (None, Some(_)) => clean(&run.join(name))?,
                _ => discard(open(run)?.as_fd(), &name).map(drop)?,
            }
        }
        Ok(written)
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

/// What was written through an overlay that took the place of several stacks becomes a layer of each.
fn separate(shared: &CacheStack, run: &Path) -> Result<()> {
    if shared.stands_for.is_empty() {
        return Ok(());
    }
    let upper = open(&shared.layer.join(UPPER))?;
    for within in &shared.stands_for {
        let (Some(parent), Some(name)) = (within.parent(), within.file_name()) else { continue };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        // The directories above a cache are there only if something was written below them.
        let Ok(parent) = open_beneath(&upper, parent, OFlags::PATH | OFlags::DIRECTORY) else {
            continue;
        };
        let failed = |operation| {
            let path = shared.lower.join(within);
            move |errno: Errno| SessionError::io(operation, &path, errno.into())
        };
        // Moving a directory takes the right to write to it, which the command may have taken away.
        match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_dir() => {}
            _ => continue,
        }
        rustix::fs::chmodat(&parent, name, Mode::RWXU, AtFlags::empty())
            .map_err(failed("chmod"))?;
        let own = run.join(layer_name(&shared.lower.join(within)));
        make_private_dir(&own)?;
        rustix::fs::renameat(&parent, name, CWD, own.join(UPPER)).map_err(failed("rename"))?;
    }
    Ok(())
}

/// Leaves of a stack what the next run needs of it: the kernel's directory, empty.
fn clean(stack: &Path) -> Result<()> {
    discard(open(stack)?.as_fd(), OsStr::new(UPPER))?;
    let work = stack.join(WORK);
    for name in names(&work)? {
        discard(open(&work)?.as_fd(), &name)?;
    }
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| SessionError::io("rename", from, source))
}
