//! Transactions where the kernel mounts no overlay: the command works in a copy of the project, made before it starts
//! (LIFE-2). What the copy was like is written down outside of it, where no command can write.

use super::{DIRECTORY, LAYER, open_project};
use crate::error::{Result, SessionError};
use crate::kept_layer::UPPER;
use crate::sessions::SessionDirectory;
use palisade_changes::{CopiedLayer, CopyLimits, CopyRecord, ProjectCopy};
use palisade_sys::beneath::open_beneath;
use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// In a session's directory.
const COPY_RECORD: &str = "copied.bin";
/// More is not worth the time and the room: an overlay costs nothing.
const LIMITS: CopyLimits = CopyLimits { files: 500_000, bytes: 4 << 30 };
/// When a person at a terminal is told how far it is, and how often after that.
const FIRST_PROGRESS: Duration = Duration::from_secs(2);
const NEXT_PROGRESS: Duration = Duration::from_secs(5);
/// How long the clock of files may stand still.
const TICK: Duration = Duration::from_millis(100);

/// Copies the project, without what the command must not see.
pub(super) fn make(
    directory: &SessionDirectory,
    project: &Path,
    hidden: &[PathBuf],
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let failed = |source| SessionError::ProjectNotCopied { project: project.to_owned(), source };
    let layer = open_beneath(directory.directory(), Path::new(LAYER), DIRECTORY)?;
    let upper = OsStr::new(UPPER);
    // It is there already, and empty.
    palisade_changes::discard(layer.as_fd(), upper)?;
    let mut progress = progress(tell);
    let wanted = ProjectCopy { hidden, limits: LIMITS, progress: &mut progress };
    let from = open_project(project)?;
    let (_, record) = palisade_changes::copy_project(from.as_fd(), (layer.as_fd(), upper), wanted)
        .map_err(failed)?;
    directory.write_file(COPY_RECORD, &record.to_bytes()?)?;
    wait_for_later_than(&record);
    Ok(())
}

/// What a command changes must be younger than the copy.
fn wait_for_later_than(record: &CopyRecord) {
    let end = Instant::now() + TICK;
    while Some(super::now_on_files()) <= record.newest() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn progress(tell: &mut dyn FnMut(&str)) -> impl FnMut(CopiedLayer) {
    let is_watched = std::io::stderr().is_terminal();
    let mut next = Instant::now() + FIRST_PROGRESS;
    move |CopiedLayer { entries, bytes, .. }| {
        // Not a look at the clock for every file.
        if is_watched && entries.is_multiple_of(64) && Instant::now() >= next {
            next = Instant::now() + NEXT_PROGRESS;
            tell(&format!("copying the project: {entries} files, {} MiB so far", bytes >> 20));
        }
    }
}

pub(super) fn read(directory: &SessionDirectory) -> Result<CopyRecord> {
    Ok(CopyRecord::from_bytes(&directory.read_file(COPY_RECORD)?)?)
}
