//! Transactions where the kernel mounts no overlay: the command works in a copy of the project, made before it starts
//! (LIFE-2). What the copy was like is written down outside of it, where no command can write.

use super::{DIRECTORY, LAYER, open_project};
use crate::error::{Result, SessionError};
use crate::kept_layer::UPPER;
use crate::replaced_file::Synced;
use crate::sessions::SessionDirectory;
use palisade_changes::{CopiedLayer, CopyLimits, CopyRecord, ProjectCopy};
use palisade_sys::beneath::open_beneath;
use palisade_sys::{At as _, Mode, OFlags};
use rustix::fs::{AtFlags, fstat, openat, unlinkat};
use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// In a session's directory.
pub(super) const COPY_RECORD: &str = "copied.bin";
/// More is not worth the time and the room: an overlay costs nothing.
const LIMITS: CopyLimits = CopyLimits { files: 500_000, bytes: 4 << 30 };
/// When a person at a terminal is told how far it is, and how often after that.
const FIRST_PROGRESS: Duration = Duration::from_secs(2);
const NEXT_PROGRESS: Duration = Duration::from_secs(5);
/// How long the clock of files may stand still: vfat's by two seconds.
const LONGEST_TICK: Duration = Duration::from_millis(2500);
/// A file beside the copy, to read the clock by.
const CLOCK: &str = "clock";

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
    let (_, mut record) =
        palisade_changes::copy_project(from.as_fd(), (layer.as_fd(), upper), wanted)
            .map_err(failed)?;
    if !wait_for_later_than(&record, &layer)? {
        record.distrust_times();
    }
    directory.write_file(COPY_RECORD, &record.to_bytes()?, Synced::Content)
}

/// What a command changes must be younger than the copy, by the clock of the file system that holds it: some count
/// seconds, and some are another machine's. False if that could not be had.
fn wait_for_later_than(record: &CopyRecord, layer: &OwnedFd) -> Result<bool> {
    let end = Instant::now() + LONGEST_TICK;
    let is_later = loop {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(layer, CLOCK, flags, Mode::RUSR | Mode::WUSR).call("openat")?;
        rustix::io::write(&file, b"x").call("write")?;
        let is_later = record.is_older_than(&fstat(&file).call("fstat")?);
        unlinkat(layer, CLOCK, AtFlags::empty()).call("unlinkat")?;
        if is_later || Instant::now() > end {
            break is_later;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Ok(is_later)
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
