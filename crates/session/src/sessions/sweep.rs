//! Puts right what supervisors left that were killed, by a crash or with the whole machine. Their sandboxes ended with them;
//! what is left is a record that says otherwise. Every start does a little of it.

use super::create::NAMES_LOCK;
use super::directory::{REMOVED, SessionDirectory, all_sessions, open_own, take_lock_within};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use jiff::Timestamp;
use palisade_record::{Destroyed, Failure, State};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// How many directories a command for sessions looks at.
pub const SWEPT_BY_COMMANDS: usize = 64;
/// And a run, which has to be quick.
pub(crate) const SWEPT_BY_RUNS: usize = 4;
/// Of the names in the directory, beyond which nobody looks: a start must not take longer for each session that was.
const MAX_NAMES: usize = 1_000;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Sessions that were recorded as running, and whose supervisor was gone.
    pub marked: u64,
    /// Directories of which only a part was left.
    pub removed: u64,
    /// What could not be put right.
    pub failed: u64,
}

impl Swept {
    fn count_removal(&mut self, is_removed: bool) {
        match is_removed {
            true => self.removed += 1,
            false => self.failed += 1,
        }
    }
}

/// Looks at some of the sessions, others each time. What is left is for the next one.
pub fn sweep(places: &AppDirs, most: usize) -> Swept {
    let mut swept = Swept::default();
    let all = all_sessions(places);
    let entries = fs::read_dir(&all).into_iter().flatten().flatten().take(MAX_NAMES);
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    if !names.is_empty() {
        let any = usize::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
        let first = any % names.len();
        names.rotate_left(first);
    }
    for name in names.into_iter().take(most) {
        if name.ends_with(REMOVED) {
            let removed = open_own(rustix::fs::CWD, &all, &all)
                .and_then(|all| Ok(palisade_changes::discard(all.as_fd(), name.as_ref())?));
            swept.count_removal(removed.is_ok());
            continue;
        }
        let Ok(Some(directory)) = SessionDirectory::open(places, &name) else { continue };
        match mark_if_killed(places, &directory) {
            Ok(Looked::Marked) => swept.marked += 1,
            Ok(Looked::Unfinished) => swept.count_removal(directory.remove().is_ok()),
            Ok(Looked::AsItShould) => {}
            Err(_) => swept.failed += 1,
        }
    }
    swept
}

enum Looked {
    AsItShould,
    Marked,
    /// Its creator was killed before it had a record, or it was never claimed.
    Unfinished,
}

fn mark_if_killed(places: &AppDirs, directory: &SessionDirectory) -> Result<Looked> {
    match directory.record() {
        Ok(record) if record.is_over() => return Ok(Looked::AsItShould),
        Ok(_) => {}
        Err(error) if is_missing(&error) => return look_at_unfinished(places, directory),
        // Nobody knows what is in it, so it stays.
        Err(error) => return Err(error),
    }
    // Let go of at the end: what removes the directory takes it.
    let Some(_lock) = directory.try_lock()? else { return Ok(Looked::AsItShould) };
    // Read again: it may have ended in an orderly way since.
    let mut record = directory.record()?;
    if record.is_over() {
        return Ok(Looked::AsItShould);
    }
    record.end(State::Error, None);
    let why = SessionError::SupervisorKilled;
    record.end_reason = Some(why.to_string());
    // Its own supervisor could not: the log would have a session without an end.
    let lived = Timestamp::now().duration_since(record.created_at).as_millis();
    let destroyed = Destroyed { duration_ms: u64::try_from(lived).unwrap_or_default() };
    Journal::open(places, &record.id)?.resumed().fail(Failure::of(why.kind(), &why), destroyed)?;
    directory.remove_socket();
    directory.remove_temporaries()?;
    // Nobody had it, so nobody looks for it.
    if record.is_prepared {
        return Ok(Looked::Unfinished);
    }
    directory.write_record(&record)?;
    Ok(Looked::Marked)
}

/// Who makes a session holds the lock on names until it has a record.
fn look_at_unfinished(places: &AppDirs, directory: &SessionDirectory) -> Result<Looked> {
    let all = all_sessions(places);
    let all_directory = open_own(rustix::fs::CWD, &all, &all)?;
    let names = take_lock_within(Duration::ZERO, &all_directory, &all, NAMES_LOCK)?;
    let Some(_names) = names else { return Ok(Looked::AsItShould) };
    match directory.record() {
        Err(error) if is_missing(&error) => {}
        _ => return Ok(Looked::AsItShould),
    }
    Ok(Looked::Unfinished)
}

fn is_missing(error: &SessionError) -> bool {
    matches!(error, SessionError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
