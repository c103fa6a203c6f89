//! Reads the records of the log from all of its files. Does not verify the chain; `verify` does.
//!
//! Must never change a file. Needs no lock: written records stay, and a rotated file keeps its place in the order.

use crate::chain::Record;
use crate::error::{RecordError, Result};
use crate::files;
use crate::rotation::{numbers, path_of};
use rustix::fs::OFlags;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How much of the end of a file is searched at once for the beginning of its last line.
const LAST_LINE_CHUNK: usize = 4096;

/// The records of one sandbox, or of all, oldest first.
pub fn read(log_path: &Path, sandbox_id: Option<&str>) -> Result<Records> {
    let (lines, path, number) = match numbers(log_path).first() {
        Some(first) => open_part(log_path, *first)?,
        None => open_current(log_path)?,
    };
    Ok(Records {
        lines,
        path,
        number,
        log_path: log_path.to_owned(),
        unread: Vec::new(),
        line_number: 0,
        sandbox_id: sandbox_id.map(str::to_owned),
    })
}

/// What is written from now on, without what is there already.
pub fn read_on(log_path: &Path, sandbox_id: Option<&str>) -> Result<Records> {
    let (mut lines, path, number) = open_current(log_path)?;
    let failed = RecordError::io("read", log_path);
    go_to_last_line(&mut lines).map_err(failed)?;
    Ok(Records {
        lines,
        path,
        number,
        log_path: log_path.to_owned(),
        unread: Vec::new(),
        line_number: 0,
        sandbox_id: sandbox_id.map(str::to_owned),
    })
}

/// To the end, or to the beginning of a line that is being written.
fn go_to_last_line(lines: &mut BufReader<File>) -> io::Result<()> {
    let mut end = lines.seek(SeekFrom::End(0))?;
    let mut chunk = [0; LAST_LINE_CHUNK];
    while end > 0 {
        let start = end.saturating_sub(LAST_LINE_CHUNK as u64);
        let part = &mut chunk[..usize::try_from(end - start).unwrap_or(LAST_LINE_CHUNK)];
        lines.seek(SeekFrom::Start(start))?;
        lines.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            end = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    lines.seek(SeekFrom::Start(end)).map(drop)
}

/// A file of the log, its path, and its number if it was rotated.
type Part = (BufReader<File>, PathBuf, Option<u64>);

fn open_current(log_path: &Path) -> Result<Part> {
    let log = files::open_existing(log_path, OFlags::RDONLY)?.ok_or_else(|| {
        RecordError::io("open", log_path)(io::Error::from(io::ErrorKind::NotFound))
    })?;
    Ok((BufReader::new(log), log_path.to_owned(), None))
}

/// A file that no longer exists was removed as the oldest: continue with the next one.
fn open_part(log_path: &Path, number: u64) -> Result<Part> {
    for number in numbers(log_path).into_iter().filter(|other| *other >= number) {
        let path = path_of(log_path, number);
        if let Some(file) = files::open_existing(&path, OFlags::RDONLY)? {
            return Ok((BufReader::new(file), path, Some(number)));
        }
    }
    open_current(log_path)
}

/// Every sandbox in the log. Does not verify the chain.
pub fn sandboxes(log_path: &Path) -> Result<BTreeSet<String>> {
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

/// Decodes only the sandbox id: a log is long, and most records belong to other sandboxes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'line> {
    #[serde(borrow)]
    sandbox_id: Cow<'line, str>,
}

/// After its end, calling it again continues with records written since.
#[derive(Debug)]
pub struct Records {
    lines: BufReader<File>,
    /// The beginning of a line that is not complete yet.
    unread: Vec<u8>,
    path: PathBuf,
    /// The number of the file being read; `None` for the current file.
    number: Option<u64>,
    log_path: PathBuf,
    line_number: u64,
    sandbox_id: Option<String>,
}

impl Records {
    /// `None` at the end of the complete lines: a line without a newline is being written, or was never finished.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let read = self.lines.read_until(b'\n', &mut self.unread);
            read.map_err(RecordError::io("read", &self.path))?;
            if self.unread.pop_if(|last| *last == b'\n').is_some() {
                self.line_number += 1;
                return Ok(Some(std::mem::take(&mut self.unread)));
            }
            match self.number {
                Some(number) => self.go_on_with(open_part(&self.log_path, number + 1)?),
                // It was rotated meanwhile, possibly after more records: read it to its end again.
                None => match self.number_by_now()? {
                    Some(number) => self.number = Some(number),
                    None => return Ok(None),
                },
            }
        }
    }

    /// The next record with its line as it is in the log. None at the end, for now.
    pub(crate) fn next_with_line(&mut self) -> Result<Option<(Vec<u8>, Record)>> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        let record = serde_json::from_slice(&line).map_err(|why| self.not_a_record(why))?;
        Ok(Some((line, record)))
    }

    fn go_on_with(&mut self, (lines, path, number): Part) {
        (self.lines, self.path, self.number) = (lines, path, number);
        self.line_number = 0;
        self.unread.clear();
    }

    /// The number under which the file that we read as the log was rotated meanwhile.
    fn number_by_now(&self) -> Result<Option<u64>> {
        let inode = |found: io::Result<std::fs::Metadata>| found.map(|found| found.ino()).ok();
        let own = inode(self.lines.get_ref().metadata());
        if inode(std::fs::symlink_metadata(&self.log_path)) == own {
            return Ok(None);
        }
        let mut numbers = numbers(&self.log_path).into_iter().rev();
        Ok(numbers.find(|number| inode(path_of(&self.log_path, *number).symlink_metadata()) == own))
    }

    fn is_wanted(&self, line: &[u8]) -> bool {
        let Some(wanted) = &self.sandbox_id else { return true };
        // A line that is not a record is reported, whichever run was asked for.
        serde_json::from_slice::<Owner<'_>>(line).map_or(true, |owner| owner.sandbox_id == *wanted)
    }

    fn not_a_record(&self, source: serde_json::Error) -> RecordError {
        RecordError::NotARecord { path: self.path.clone(), line: self.line_number, source }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

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
