//! Makes the directory of a new session.

use super::directory::{LOCK, SessionDirectory, SupervisorLock, all_sessions, open_own, take_lock};
use super::find;
use super::record::SessionRecord;
use crate::app_dirs::{self, AppDirs};
use crate::error::{Result, SessionError};
use palisade_sys::fault;
use rustix::fs::Mode;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// Held while a name is checked and taken, and a session has no record yet.
pub(super) const NAMES_LOCK: &str = "names.lock";

/// While it is held, no session gets a name.
pub(super) fn lock_names(places: &AppDirs) -> Result<OwnedFd> {
    let all = all_sessions(places);
    take_lock(&open_own(rustix::fs::CWD, &all, &all)?, &all, NAMES_LOCK)
}

/// Makes the directory of a new session, locked by this process. The name must be free.
pub(crate) fn create(
    places: &AppDirs,
    record: &SessionRecord,
) -> Result<(SessionDirectory, SupervisorLock)> {
    let all = all_sessions(places);
    app_dirs::make_private_dir(&all)?;
    let all_directory = open_own(rustix::fs::CWD, &all, &all)?;
    // Until it has a record: whoever else has this lock knows that one without any was left by somebody who was killed.
    let _names = take_lock(&all_directory, &all, NAMES_LOCK)?;
    if let Some(name) = &record.name {
        find::check_new_name(places, name)?;
    }
    let path = all.join(&record.id);
    rustix::fs::mkdirat(&all_directory, &record.id, Mode::RWXU)
        .map_err(|errno| SessionError::io("create", &path, errno.into()))?;
    fault::point("directory made", "");
    let directory = open_own(all_directory.as_fd(), Path::new(&record.id), &path)?;
    let directory = SessionDirectory { id: record.id.clone(), path, directory };
    // Before there is a record: what has one and is not locked was left by a supervisor that was killed.
    let lock = SupervisorLock { _file: take_lock(&directory.directory, &directory.path, LOCK)? };
    fault::point("directory locked", "");
    directory.write_record(record)?;
    Ok((directory, lock))
}
