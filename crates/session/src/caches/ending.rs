//! The end of a run's use of its caches: what it wrote is left to later runs, layers become one, and what no longer fits is
//! removed.

use super::inventory::{bytes_below, evict, fits, grow, recount};
use super::merging::{self, rename};
use super::removal::{SetAside, open};
use super::spare::{self, SPARE};
use super::{Caches, LAYERS, LOCKED_BYTE, MAX_LAYERS, RUNS, names};
use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
use crate::kept_layer::{UPPER, WORK};
use palisade_changes::discard;
use palisade_plan::layer_name;
use palisade_plan::model::CacheStack;
use palisade_sys::beneath::open_beneath;
use palisade_sys::lock::{ByteLock, try_lock_byte};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::AsFd as _;
use std::path::Path;

/// Whether later runs get what a run wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Everything,
    Nothing,
}

/// What a run wrote and nobody keeps, because others run all the time and the backlog would take too much room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostWrites {
    pub(crate) bytes: u64,
}

impl fmt::Display for LostWrites {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} bytes do not fit into filesystem.cacheSize while other runs of the project keep what was written before \
             from being merged; end them, or raise the limit",
            self.bytes
        )
    }
}

impl Caches {
    /// After the last process of the run. `most` is what all projects together may keep, in bytes. Says what later runs do not
    /// get though they should.
    pub(crate) fn end(self, leave: Leave, most: Option<u64>) -> Result<Option<LostWrites>> {
        let run = self.store.join(RUNS).join(&self.session);
        let written = match leave {
            Leave::Everything => self.tidy(&run),
            Leave::Nothing => Ok(None),
        };
        let is_alone = try_lock_byte(&self.lock, LOCKED_BYTE, ByteLock::Exclusive)
            .map_err(|errno| SessionError::io("lock", &self.store, errno.into()))?;
        let mut aside = Vec::new();
        let mut lost = None;
        let had_unseen = is_alone && merging::has_unseen(&self.store);
        let layers = self.store.join(LAYERS);
        let has_room = is_alone || names(&layers)?.len() < MAX_LAYERS;
        let is_spare = is_alone && leave == Leave::Everything && matches!(written, Ok(None));
        match &written {
            Ok(Some(_)) if has_room => {
                make_private_dir(&layers)?;
                sync(&run)?;
                rename(&run, &layers.join(&self.session))?;
            }
            Ok(Some(bytes)) if fits(&self.store, *bytes, most) => {
                sync(&run)?;
                aside = merging::add_to_backlog(&self.store, &run, &self.session)?;
            }
            Ok(Some(bytes)) => {
                lost = Some(LostWrites { bytes: *bytes });
                aside.push(SetAside::take_part(&self.store, &run)?);
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
            folded = merging::merge(&self.store).map(|merged| aside.extend(merged));
            match (names(&layers)?.is_empty(), &written) {
                (true, _) if is_spare && spare::leave_store(&self.store) => {}
                (true, _) => aside.push(SetAside::take(&self.store)?),
                (false, _) if had_unseen => recount(&self.store)?,
                (false, Ok(Some(bytes))) => grow(&self.store, *bytes)?,
                (false, _) => {}
            }
        }
        let store = self.store;
        drop(self.lock);
        aside.into_iter().try_for_each(SetAside::remove)?;
        if had_unseen || is_alone && matches!(written, Ok(Some(_))) {
            evict(&store, most)?;
        }
        self.merged.and(folded).and(written.map(|_| lost))
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
}

/// Nothing that a run wrote was synced: after a loss of power, an empty file would lie above the host's.
fn sync(run: &Path) -> Result<()> {
    rustix::fs::syncfs(open(run)?).map_err(|errno| SessionError::io("sync", run, errno.into()))
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
