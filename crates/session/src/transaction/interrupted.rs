//! The mark of a rollback that is going on, or was interrupted, and how it comes to its end where no process of the session is
//! left: the changes are replaced by a copy of the state, in one step.

use super::{CHECKPOINTS, DIRECTORY, LAYER, RECORD, TransactionRecord, UPPER, open_project};
use crate::error::{Result, SessionError};
use crate::kept_layer;
use crate::replaced_file::Synced;
use crate::sessions::SessionDirectory;
use palisade_changes::{CopyThreads, Layers, Restoration};
use palisade_plan::model::TransactionMethod;
use palisade_sys::beneath::open_beneath;
use palisade_sys::{At as _, Errno, fault};
use rustix::fs::{AtFlags, RenameFlags};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// In a session's directory, while a state is brought back.
const MARK: &str = "rollback.json";
/// Beside the upper layer: the one that takes its place, and then the old one.
const REPLACEMENT: &str = "replacement";
/// A large state takes a while to be copied.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) checkpoint: u32,
    /// Whether files of a copy may have changed already.
    #[serde(default)]
    pub(super) is_under_way: bool,
}

impl Mark {
    pub(super) fn write(&self, directory: &SessionDirectory) -> Result<()> {
        // Before any file changes.
        directory.write_json(MARK, self, Synced::Everything)
    }
}

/// Whether a rollback was begun and not finished, or is going on.
pub(super) fn is_interrupted(directory: &SessionDirectory) -> bool {
    rustix::fs::accessat(directory.directory(), MARK, rustix::fs::Access::EXISTS, AtFlags::empty())
        .is_ok()
}

pub(super) fn read_mark(directory: &SessionDirectory) -> Result<Option<Mark>> {
    match directory.read_json(MARK) {
        Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        mark => mark.map(Some),
    }
}

pub(super) fn remove_mark(directory: &SessionDirectory) -> Result<()> {
    match rustix::fs::unlinkat(directory.directory(), MARK, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).at("unlink", Path::new(MARK))?,
    }
}

/// One at a time changes what was kept of a session.
pub(super) fn lock(directory: &SessionDirectory) -> Result<OwnedFd> {
    let locked = directory.lock_changes(LOCK_TIMEOUT)?;
    locked.ok_or_else(|| SessionError::ChangesLocked { session: directory.id().to_owned() })
}

/// Finishes the rollback of a session of which no process is left.
pub(super) fn finish_ended(directory: &SessionDirectory) -> Result<()> {
    if !is_interrupted(directory) {
        return Ok(());
    }
    // The mark may be that of a rollback which another process is busy with, and is gone then.
    let _lock = lock(directory)?;
    finish_ended_locked(directory)
}

/// The same for who has the lock.
pub(super) fn finish_ended_locked(directory: &SessionDirectory) -> Result<()> {
    let Some(mark) = read_mark(directory)? else { return Ok(()) };
    let checkpoint = mark.checkpoint;
    let at = directory.directory();
    let record: TransactionRecord = directory.read_json(RECORD)?;
    if record.method == TransactionMethod::Copy {
        return finish_in_copy(directory, &record, &mark);
    }
    let image = match checkpoint {
        0 => Path::new(CHECKPOINTS).join("0"),
        number => Path::new(CHECKPOINTS).join(number.to_string()).join(kept_layer::UPPER),
    };
    let image = match open_beneath(at, &image, DIRECTORY) {
        // Its changes were discarded meanwhile.
        Err(error) if error.errno == Errno::NOENT => return remove_mark(directory),
        image => image?,
    };
    let layer = match open_beneath(at, Path::new(LAYER), DIRECTORY) {
        Err(error) if error.errno == Errno::NOENT => return remove_mark(directory),
        layer => layer?,
    };
    let replacement = OsStr::new(REPLACEMENT);
    palisade_changes::discard(layer.as_fd(), replacement)?;
    fault::point("copying", "the replacement");
    palisade_changes::copy_layer(image.as_fd(), layer.as_fd(), replacement, CopyThreads::One)?;
    // The mark may be gone from the disk before the copy is there.
    rustix::fs::syncfs(&layer).call("syncfs")?;
    fault::point("exchanging", "the layers");
    let flags = RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(&layer, REPLACEMENT, &layer, kept_layer::UPPER, flags)
        .at("rename", Path::new(REPLACEMENT))?;
    fault::point("exchanged", "the layers");
    // Before the mark goes: without it nobody would look for the old one. Interrupted, all of it is done once more.
    palisade_changes::discard(layer.as_fd(), replacement)?;
    fault::point("discarded", "the replaced layer");
    remove_mark(directory)
}

/// By ordinary calls in the copy: what did not change in it is still known to be as it was copied.
fn finish_in_copy(
    directory: &SessionDirectory,
    record: &TransactionRecord,
    &Mark { checkpoint, is_under_way }: &Mark,
) -> Result<()> {
    let at = directory.directory();
    let project = || open_project(&directory.record()?.project);
    let open = |path: &Path| match open_beneath(at, path, DIRECTORY) {
        Err(error) if error.errno == Errno::NOENT => Ok(None),
        opened => opened.map(Some),
    };
    let image = match checkpoint {
        0 => Some(project()?),
        number => open(&Path::new(CHECKPOINTS).join(number.to_string()).join(kept_layer::UPPER))?,
    };
    // Its changes were discarded meanwhile.
    let (Some(image), Some(copy), Some(tree)) =
        (image, open(Path::new(UPPER))?, open(Path::new(UPPER))?)
    else {
        return remove_mark(directory);
    };
    let hidden: Vec<PathBuf> = record.hidden_paths();
    let layers = Layers::states_of_copies(project()?, copy, image, &hidden);
    let restoration = Restoration::plan(&layers).inspect_err(|_| {
        // Nothing has changed, and nobody should have to try again.
        if !is_under_way {
            let _ = remove_mark(directory);
        }
    })?;
    Mark { checkpoint, is_under_way: true }.write(directory)?;
    restoration.perform(tree.as_fd())?;
    // The mark may be gone from the disk before what it stands for is there.
    rustix::fs::syncfs(&tree).call("syncfs")?;
    remove_mark(directory)
}
