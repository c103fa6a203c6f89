//! Makes one layer of several. Layers that a run may have mounted are left alone: that takes the lock held alone. While others
//! run all the time, what does not fit into one mount waits in a backlog that no run ever mounts, and is one layer itself.
//!
//! ```text
//! caches/PROJECT/backlog/ID/STACK/
//! ```

use super::removal::{SetAside, open};
use super::{LAYERS, MAX_LAYERS, names};
use crate::app_dirs::make_private_dir;
use crate::error::{Result, SessionError};
use crate::kept_layer::UPPER;
use palisade_changes::{Below, fold};
use palisade_sys::lock::try_lock_file;
use rustix::fs::FlockOperation;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

pub(super) const BACKLOG: &str = "backlog";

/// Keeps what a run wrote where as many layers as fit into a mount are not merged yet. The store's lock must be held.
pub(super) fn add_to_backlog(store: &Path, run: &Path, session: &str) -> Result<Vec<SetAside>> {
    let backlog = store.join(BACKLOG);
    make_private_dir(&backlog)?;
    rename(run, &backlog.join(session))?;
    let directory = open(&backlog)?;
    // Whoever has it, or comes next, does the same for all that are there.
    let is_ours = try_lock_file(&directory, FlockOperation::NonBlockingLockExclusive)
        .map_err(|errno| SessionError::io("lock", &backlog, errno.into()))?;
    match is_ours {
        true => fold_all(store, &backlog, Beneath::Unknown),
        false => Ok(Vec::new()),
    }
}

/// Makes one layer of all that ended runs left. Only with the store's lock held alone. What is returned is to be removed.
pub(super) fn merge(store: &Path) -> Result<Vec<SetAside>> {
    let (layers, backlog) = (store.join(LAYERS), store.join(BACKLOG));
    for session in names(&backlog)? {
        make_private_dir(&layers)?;
        rename(&backlog.join(&session), &layers.join(&session))?;
    }
    match fs::remove_dir(&backlog) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(SessionError::io("remove", &backlog, error))
        }
        _ => fold_all(store, &layers, Beneath::Host),
    }
}

/// Whether something was kept that no run has seen: in the backlog, or beside as many layers as fit, where several runs ended at
/// the same time.
pub(super) fn has_unseen(store: &Path) -> bool {
    fs::symlink_metadata(store.join(BACKLOG)).is_ok()
        || names(&store.join(LAYERS)).is_ok_and(|layers| layers.len() > MAX_LAYERS)
}

/// What the oldest of some layers lies on.
#[derive(Clone, Copy)]
enum Beneath {
    Host,
    /// Further layers, which runs may be using.
    Unknown,
}

/// A layer that cannot be brought down is given up, so that later ones can; the first error says why.
fn fold_all(store: &Path, layers: &Path, beneath: Beneath) -> Result<Vec<SetAside>> {
    // Ids of runs sort by time.
    let mut ids = names(layers)?;
    ids.sort();
    let mut aside = Vec::new();
    let Some((oldest, newer)) = ids.split_first() else { return Ok(aside) };
    let oldest = layers.join(oldest);
    let mut outcome = Ok(());
    for layer in newer.iter().map(|id| layers.join(id)) {
        let mut stacks = names(&layer)?.into_iter();
        let folded = stacks.try_for_each(|stack| fold_stack((&layer, &oldest), &stack, beneath));
        match (beneath, folded) {
            // It may be brought down when nobody runs.
            (Beneath::Unknown, Err(_)) => return Ok(aside),
            (_, folded) => outcome = outcome.and(folded),
        }
        aside.push(SetAside::take_part(store, &layer)?);
    }
    if let Err(error) = outcome {
        aside.into_iter().try_for_each(SetAside::remove)?;
        return Err(error);
    }
    Ok(aside)
}

fn fold_stack((newer, older): (&Path, &Path), stack: &OsStr, beneath: Beneath) -> Result<()> {
    let (newer, older) = (newer.join(stack), older.join(stack));
    if fs::symlink_metadata(&older).is_err() {
        return rename(&newer, &older);
    }
    let host = palisade_plan::path_of_layer(stack).and_then(|lower| open(&lower).ok());
    let below = match (beneath, host.as_ref().map(OwnedFd::as_fd)) {
        (Beneath::Unknown, _) => Below::Unknown,
        (Beneath::Host, Some(host)) => Below::Directory(host),
        (Beneath::Host, None) => Below::Nothing,
    };
    let (from, into) = (open(&newer.join(UPPER))?, open(&older.join(UPPER))?);
    Ok(fold(from.as_fd(), into.as_fd(), below)?)
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| SessionError::io("rename", from, source))
}
