//! How directories of caches are removed: without following a link, and so that nobody meets half of one.

use crate::error::{Result, SessionError};
use palisade_changes::discard;
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use uuid::Uuid;

/// What the name of a store that is being removed begins with. No project's does.
const REMOVED: &str = "removed-";

pub(super) fn open(directory: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty())
        .map_err(|errno| SessionError::io("open", directory, errno.into()))
}

/// Removes one of our directories with everything in it.
pub(super) fn remove(directory: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Ok(());
    };
    discard(open(parent)?.as_fd(), name)?;
    Ok(())
}

/// Only with the lock held alone. Whoever waits for the lock notices that it is no longer in its place.
pub(super) fn remove_store(store: &Path) -> Result<()> {
    let name = format!("{REMOVED}{}", Uuid::now_v7().simple());
    let removed = store.with_file_name(name);
    fs::rename(store, &removed).map_err(|source| SessionError::io("rename", store, source))?;
    remove(&removed)
}

/// Whether a removal was interrupted there.
pub(super) fn is_removed(store: &Path) -> bool {
    store.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(REMOVED.as_bytes()))
}
