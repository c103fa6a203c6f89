//! How directories of caches are removed: without following a link, so that nobody meets half of one, and so that nobody
//! waits for the lock while a large tree is deleted.

use super::all_stores;
use crate::error::{Result, SessionError};
use palisade_changes::discard;
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// What the name of something begins with that is being removed. No project's does.
const REMOVED: &str = "removed-";

pub(super) fn open(directory: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty())
        .map_err(|errno| SessionError::io("open", directory, errno.into()))
}

/// Removes one of our directories with everything in it.
fn remove(directory: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Ok(());
    };
    discard(open(parent)?.as_fd(), name)?;
    Ok(())
}

/// Something that is out of everybody's way, and still has to be deleted.
#[must_use]
#[derive(Debug)]
pub(super) struct SetAside(PathBuf);

impl SetAside {
    /// A store. Only with its lock held alone: whoever waits for the lock notices that it is no longer in its place.
    pub(super) fn take(store: &Path) -> Result<Self> {
        Self::take_to(store, all_stores(store))
    }

    /// A directory of a store.
    pub(super) fn take_part(store: &Path, part: &Path) -> Result<Self> {
        Self::take_to(part, all_stores(store))
    }

    fn take_to(from: &Path, all: &Path) -> Result<Self> {
        let aside = all.join(format!("{REMOVED}{}", Uuid::now_v7().simple()));
        fs::rename(from, &aside).map_err(|source| SessionError::io("rename", from, source))?;
        Ok(Self(aside))
    }

    /// What somebody set aside and did not delete, if this is it.
    pub(super) fn found(path: &Path) -> Option<Self> {
        let name = path.file_name()?.as_encoded_bytes();
        name.starts_with(REMOVED.as_bytes()).then(|| Self(path.to_owned()))
    }

    pub(super) fn remove(self) -> Result<()> {
        remove(&self.0)
    }
}
