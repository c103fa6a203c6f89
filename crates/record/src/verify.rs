//! Reads the audit log back: checks the whole chain against the head, or hands out records.
//!
//! Never changes a file, not even to mend what a crash left.

use crate::chain::{self, Record};
use crate::digest::Digest;
use crate::error::RecordError;
use crate::files;
use crate::head::{Head, Lock, Position};
use rustix::fs::OFlags;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
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

/// The first place where the log is not what was written.
#[derive(Debug)]
pub struct VerifyError {
    /// Counts from 1; none where it is not one line that is wrong.
    pub line: Option<u64>,
    pub what: Fault,
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("the audit log is missing")]
    LogMissing,
    #[error("the head of the audit log is missing or empty")]
    HeadMissing,
    #[error("{0}")]
    Unreadable(RecordError),
    #[error("not a sealed record")]
    Malformed,
    #[error("the record was changed: its hash is not that of its content")]
    Edited,
    #[error("the record does not follow the one before it: records were removed, added or moved")]
    ChainBroken,
    #[error("the log ends too early: {missing} of the records its head counts are missing")]
    TailCut { missing: u64 },
    #[error("the log goes on after the last record its head knows")]
    TailAdded,
    #[error("this is not the last record that the head names: the end of the log was rewritten")]
    HeadDisagrees,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => write!(f, "{}", self.what),
        }
    }
}

impl std::error::Error for VerifyError {}

impl VerifyError {
    fn at_line(line: u64, what: Fault) -> VerifyError {
        VerifyError { line: Some(line), what }
    }
}

impl From<Fault> for VerifyError {
    fn from(what: Fault) -> VerifyError {
        VerifyError { line: None, what }
    }
}

impl From<RecordError> for VerifyError {
    fn from(error: RecordError) -> VerifyError {
        Fault::Unreadable(error).into()
    }
}

/// Checks every record of the log against the one before it, and the last one against the head.
pub fn verify(log_path: &Path, head_path: &Path) -> Result<Verified, VerifyError> {
    let head_file = files::open_existing(head_path, OFlags::RDONLY)?.ok_or(Fault::HeadMissing)?;
    let (head, log, length) = {
        // No writer is between its two writes while this is held. What is acknowledged by then never
        // changes again, so the long part needs no lock.
        let _lock = Lock::shared(&head_file, head_path)?;
        let log = files::open_existing(log_path, OFlags::RDONLY)?.ok_or(Fault::LogMissing)?;
        let length = files::length_of_only_link(&log, log_path)?;
        (Head::read(&head_file, head_path)?, log, length)
    };
    let head = match head {
        Some(head) => head,
        None if length == 0 => Head::settled(Position::START),
        None => return Err(Fault::HeadMissing.into()),
    };
    walk(&log, log_path, Position::START, head.committed)?;
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
        _ => Err(VerifyError::at_line(head.committed.records + 1, Fault::TailAdded)),
    }
}

/// Checks that sound records, and nothing else, lead from one place in the log to another.
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
            return Err(VerifyError::at_line(number, Fault::TailCut { missing }));
        };
        at.hash = chain::check(content, number, at.hash)
            .map_err(|fault| VerifyError::at_line(number, fault))?;
        at.records = number;
        at.bytes += read as u64;
    }
    if at == to { Ok(()) } else { Err(VerifyError::at_line(at.records, Fault::HeadDisagrees)) }
}

/// The records of one sandbox, or of all, oldest first. It does not check the chain.
pub fn read(log_path: &Path, sandbox_id: Option<&str>) -> Result<Records, RecordError> {
    let log = files::open_existing(log_path, OFlags::RDONLY)?.ok_or_else(|| {
        RecordError::io("open", log_path)(std::io::Error::from(std::io::ErrorKind::NotFound))
    })?;
    Ok(Records {
        lines: BufReader::new(log),
        path: log_path.to_owned(),
        unread: Vec::new(),
        line_number: 0,
        sandbox_id: sandbox_id.map(str::to_owned),
    })
}

/// Every sandbox that the log tells of. It does not check the chain.
pub fn sandboxes(log_path: &Path) -> Result<BTreeSet<String>, RecordError> {
    let mut records = read(log_path, None)?;
    let mut found = BTreeSet::new();
    while let Some(line) = records.next_line()? {
        match serde_json::from_slice::<Owner<'_>>(&line) {
            Ok(owner) if found.contains(&*owner.sandbox_id) => {}
            Ok(owner) => drop(found.insert(owner.sandbox_id.into_owned())),
            Err(source) => return Err(records.not_a_record(source)),
        }
    }
    Ok(found)
}

/// Whose a record is, and nothing else of it: a log is long, and most of it is about others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'line> {
    #[serde(borrow)]
    sandbox_id: Cow<'line, str>,
}

/// Asked again after its end, it goes on with what was written since.
#[derive(Debug)]
pub struct Records {
    lines: BufReader<File>,
    /// The beginning of a line whose end is yet to be written.
    unread: Vec<u8>,
    path: PathBuf,
    line_number: u64,
    sandbox_id: Option<String>,
}

impl Records {
    /// None at the end, as far as it is written: a line without its end is being written at this moment, or was never
    /// finished.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, RecordError> {
        let read = self.lines.read_until(b'\n', &mut self.unread);
        read.map_err(RecordError::io("read", &self.path))?;
        if self.unread.pop_if(|last| *last == b'\n').is_none() {
            return Ok(None);
        }
        self.line_number += 1;
        Ok(Some(std::mem::take(&mut self.unread)))
    }

    fn is_wanted(&self, line: &[u8]) -> bool {
        let Some(wanted) = &self.sandbox_id else { return true };
        // What is no record at all is told of, whosesoever it is.
        serde_json::from_slice::<Owner<'_>>(line).map_or(true, |owner| owner.sandbox_id == *wanted)
    }

    fn not_a_record(&self, source: serde_json::Error) -> RecordError {
        RecordError::NotARecord { path: self.path.clone(), line: self.line_number, source }
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.next_line() {
                Ok(line) => line?,
                Err(error) => return Some(Err(error)),
            };
            if self.is_wanted(&line) {
                return Some(serde_json::from_slice(&line).map_err(|why| self.not_a_record(why)));
            }
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
