//! Verifies the audit log: checks the whole chain against the head.
//!
//! Must never change a file, not even to repair what a crash left.

use crate::chain;
use crate::digest::Digest;
use crate::error::RecordError;
pub use crate::fault::LogFault;
use crate::files;
use crate::head::{Head, Lock, Position};
use crate::rotation;
use rustix::fs::OFlags;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    /// The hash of the last record.
    pub head: Digest,
    /// Left by a writer that died in the middle of a batch; the next append cuts them off.
    pub unacknowledged_bytes: u64,
}

/// The first position at which the log is not what was written.
#[derive(Debug)]
pub struct VerifyError {
    /// The record's number, from 1; `None` if the fault is not in one record.
    pub line: Option<u64>,
    pub what: LogFault,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "record {line}: {}", self.what),
            None => write!(f, "{}", self.what),
        }
    }
}

impl std::error::Error for VerifyError {}

impl VerifyError {
    pub(crate) fn at_line(line: u64, what: LogFault) -> VerifyError {
        VerifyError { line: Some(line), what }
    }
}

impl From<LogFault> for VerifyError {
    fn from(what: LogFault) -> VerifyError {
        VerifyError { line: None, what }
    }
}

impl From<RecordError> for VerifyError {
    fn from(error: RecordError) -> VerifyError {
        LogFault::Unreadable(error).into()
    }
}

/// Checks every record of the log against the one before it, and the last one against the head.
pub fn verify(log_path: &Path, head_path: &Path) -> Result<Verified, VerifyError> {
    let head_file =
        files::open_existing(head_path, OFlags::RDONLY)?.ok_or(LogFault::HeadMissing)?;
    let (head, parts, log, length) = {
        // While this is held, no writer is between its two writes. Acknowledged records never change, so the long part
        // needs no lock.
        let _lock = Lock::shared(&head_file, head_path)?;
        let head = Head::read(&head_file, head_path)?;
        let parts = open_parts(log_path, head.as_ref())?;
        let (log, at) = open_current(log_path, head.as_ref())?;
        let length = files::length_of_only_link(&log, &at)?;
        (head, parts, log, length)
    };
    let head = match head {
        Some(head) => head,
        None if length == 0 => Head::start(),
        None => return Err(LogFault::HeadMissing.into()),
    };
    let mut start = head.put_aside.map_or(Position::START, |aside| Position {
        records: aside.records,
        bytes: 0,
        hash: aside.hash,
    });
    for (part, path) in &parts {
        start = Position { bytes: 0, ..walk_to_end(part, path, start)? };
    }
    walk(&log, log_path, start, head.committed)?;
    let verified = |end: Position| Verified {
        records: end.records,
        head: end.hash,
        unacknowledged_bytes: length.saturating_sub(end.bytes),
    };
    match head.announced {
        _ if length == head.committed.bytes => Ok(verified(head.committed)),
        Some(end) if length == end.bytes && walk(&log, log_path, head.committed, end).is_ok() => {
            Ok(verified(end))
        }
        Some(end) if length <= end.bytes => Ok(verified(head.committed)),
        _ => Err(VerifyError::at_line(head.committed.records + 1, LogFault::TailAdded)),
    }
}

/// The rotated files, oldest first. All are opened under the lock: the oldest may be removed at any time.
fn open_parts(log_path: &Path, head: Option<&Head>) -> Result<Vec<(File, PathBuf)>, VerifyError> {
    let Some(aside) = head.and_then(|head| head.put_aside) else { return Ok(Vec::new()) };
    let open = |number| {
        let path = rotation::path_of(log_path, number);
        let file = files::open_existing(&path, OFlags::RDONLY)?;
        Ok((file.ok_or_else(|| LogFault::PartMissing(path.clone()))?, path))
    };
    (aside.first..=aside.last).map(open).collect()
}

/// The file that contains the head's end: the log, or the file that a killed writer was about to rotate.
fn open_current(log_path: &Path, head: Option<&Head>) -> Result<(File, PathBuf), VerifyError> {
    let log = files::open_existing(log_path, OFlags::RDONLY)?;
    let length = log.as_ref().map(|log| files::length_of_only_link(log, log_path)).transpose()?;
    if let Some(head) = head.filter(|head| head.committed.bytes > 0 && length.unwrap_or(0) == 0) {
        let path = rotation::path_of(log_path, head.next_number());
        if let Some(aside) = files::open_existing(&path, OFlags::RDONLY)? {
            return Ok((aside, path));
        }
    }
    Ok((log.ok_or(LogFault::LogMissing)?, log_path.to_owned()))
}

/// Checks that a full file contains only valid records. Returns the position after them.
fn walk_to_end(part: &File, path: &Path, from: Position) -> Result<Position, VerifyError> {
    let mut reader = BufReader::with_capacity(64 * 1024, part);
    let mut at = from;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(RecordError::io("read", path))?;
        if read == 0 {
            return Ok(at);
        }
        let number = at.records + 1;
        let content = line.strip_suffix(b"\n");
        let content = content.ok_or(VerifyError::at_line(number, LogFault::Malformed))?;
        at.hash = chain::check(content, number, at.hash)
            .map_err(|fault| VerifyError::at_line(number, fault))?;
        at.records = number;
        at.bytes += read as u64;
    }
}

/// Checks that exactly the valid records between two positions are there.
pub(crate) fn walk(
    log: &File,
    path: &Path,
    from: Position,
    to: Position,
) -> Result<(), VerifyError> {
    let mut reader = BufReader::with_capacity(64 * 1024, log);
    reader.seek(SeekFrom::Start(from.bytes)).map_err(RecordError::io("seek in", path))?;
    let mut at = from;
    let mut line = Vec::new();
    while at.records < to.records {
        let number = at.records + 1;
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(RecordError::io("read", path))?;
        let Some(content) = line.strip_suffix(b"\n") else {
            let missing = to.records - at.records;
            return Err(VerifyError::at_line(number, LogFault::TailCut { missing }));
        };
        at.hash = chain::check(content, number, at.hash)
            .map_err(|fault| VerifyError::at_line(number, fault))?;
        at.records = number;
        at.bytes += read as u64;
    }
    if at == to { Ok(()) } else { Err(VerifyError::at_line(at.records, LogFault::HeadDisagrees)) }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
