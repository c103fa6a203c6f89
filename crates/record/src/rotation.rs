//! The files of one audit log. The newest has the log's own name. When it is full, it is renamed to the next number,
//! and the chain continues in a new file. The oldest are removed when there are too many.
//!
//! Everything here happens under the exclusive lock on the head. The next process finishes an interrupted rotation:
//! numbers are never reused, so the intention is clear.

use crate::chain;
use crate::digest::Digest;
use crate::error::{RecordError, Result};
use crate::files;
use crate::head::{Head, Position, PutAside};
use rustix::fs::{CWD, OFlags, RenameFlags};
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The size at which a file is full, and how many rotated files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    pub full_at: u64,
    pub kept: u64,
}

impl Default for Rotation {
    /// One gigabyte in total: a record has about 500 bytes, a run about ten records.
    fn default() -> Self {
        Self { full_at: 64 << 20, kept: 15 }
    }
}

/// Longer than any record.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// The rotated file with this number; a smaller number is older.
pub(crate) fn path_of(log_path: &Path, number: u64) -> PathBuf {
    let mut path = log_path.as_os_str().to_owned();
    path.push(format!(".{number}"));
    path.into()
}

/// The numbers in the log's directory, oldest first.
pub(crate) fn numbers(log_path: &Path) -> Vec<u64> {
    let Some((directory, name)) = log_path.parent().zip(log_path.file_name()) else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| -> Option<u64> {
        let entry = entry.file_name();
        let digits = entry.to_str()?.strip_prefix(name.to_str()?)?.strip_prefix('.')?;
        digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u64> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The log to write to, and its head. `log` is `None` if no file has its name.
pub(crate) fn finish_interrupted(
    log: Option<File>,
    log_path: &Path,
    head: Head,
    (head_file, head_path): (&File, &Path),
) -> Result<(Option<File>, Head)> {
    let length = match &log {
        Some(log) => files::length_of_only_link(log, log_path)?,
        None => 0,
    };
    let aside = path_of(log_path, head.next_number());
    if length > 0 || head.committed.bytes == 0 || !is_there(&aside, head.committed.bytes)? {
        return Ok((log, head));
    }
    let log = match log {
        Some(log) => log,
        None => files::open_or_create(log_path, OFlags::RDWR | OFlags::APPEND)?,
    };
    let head = head.rotated();
    head.write(head_file, head_path)?;
    Ok((Some(log), head))
}

fn is_there(path: &Path, length: u64) -> Result<bool> {
    match files::open_existing(path, OFlags::RDONLY)? {
        Some(file) => Ok(files::length_of_only_link(&file, path)? == length),
        None => Ok(false),
    }
}

/// Renames a full file and begins a new one. The head must be settled and agree with the file.
pub(crate) fn rotate(
    log_path: &Path,
    head: Head,
    (head_file, head_path): (&File, &Path),
    rotation: Rotation,
) -> Result<(File, Head)> {
    let aside = path_of(log_path, head.next_number());
    rustix::fs::renameat_with(CWD, log_path, CWD, &aside, RenameFlags::NOREPLACE)
        .map_err(RecordError::io("put the full audit log aside as", &aside))?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::EXCL;
    let log = files::open_or_create(log_path, flags)?;
    let mut head = head.rotated();
    head.write(head_file, head_path)?;
    while let Some(shorter) = without_oldest(log_path, &head, rotation.kept) {
        let oldest = head.put_aside.map_or(0, |aside| aside.first);
        // The head first: a file that it does not list is not missed.
        shorter.write(head_file, head_path)?;
        head = shorter;
        let _ = fs::remove_file(path_of(log_path, oldest));
    }
    // Left by a process that was killed right there.
    if let Some(gone) = head.put_aside.and_then(|aside| aside.first.checked_sub(1)) {
        let _ = fs::remove_file(path_of(log_path, gone));
    }
    Ok((log, head))
}

/// The head without the oldest file, if there are more than are kept. Also `None` if the next one cannot be read: then
/// nothing is removed, and `audit verify` reports it.
fn without_oldest(log_path: &Path, head: &Head, kept: u64) -> Option<Head> {
    let aside = head.put_aside.filter(|aside| aside.last - aside.first >= kept)?;
    let next = aside.first + 1;
    let (records, hash) = before(&path_of(log_path, next))?;
    // Otherwise, records removed from the beginning of the next file would go unnoticed.
    last_of(&path_of(log_path, aside.first)).filter(|last| *last == (records, hash))?;
    Some(head.with_put_aside(PutAside { first: next, records, hash, ..aside }))
}

/// The fields that chain a record to the one before it.
#[derive(Deserialize)]
struct Link {
    seq: u64,
    prev: Digest,
}

/// The number and the hash of the record before a file's first record.
fn before(path: &Path) -> Option<(u64, Digest)> {
    let file = files::open_existing(path, OFlags::RDONLY).ok()??;
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    let Link { seq, prev } = serde_json::from_slice(&line).ok()?;
    Some((seq.checked_sub(1)?, prev))
}

/// The number and the hash of a file's last record, if it is valid.
fn last_of(path: &Path) -> Option<(u64, Digest)> {
    let mut file = files::open_existing(path, OFlags::RDONLY).ok()??;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_RECORD_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let line = tail.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let Link { seq, prev } = serde_json::from_slice(line).ok()?;
    Some((seq, chain::check(line, seq, prev).ok()?))
}

impl Head {
    /// The head after its current file was rotated.
    fn rotated(self) -> Head {
        let last = self.next_number();
        let put_aside = match self.put_aside {
            Some(aside) => PutAside { last, ..aside },
            None => PutAside { first: last, last, records: 0, hash: Digest::NONE },
        };
        let committed = Position { bytes: 0, ..self.committed };
        self.settled(committed).with_put_aside(put_aside)
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.put_aside.map_or(1, |aside| aside.last + 1)
    }
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
