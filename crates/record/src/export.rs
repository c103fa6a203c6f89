//! A part of the audit log in a file of its own, so that it can be verified where the log is not (AUD-1).
//!
//! The first line says where in the chain the part begins and ends; the records follow as they are in the log, without a gap:
//! a record that was left out would be a place where the chain proves nothing. Who wants to know that nobody exchanged the
//! whole file compares its last hash with one that was noted elsewhere.

use crate::chain::{self, Record};
use crate::digest::Digest;
use crate::error::RecordError;
use crate::fault::LogFault;
use crate::files;
use crate::reading::read;
use crate::verify::{VerifyError, verify};
use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read as _, Write};
use std::path::Path;

const VERSION: u32 = 1;
/// Longer than any record.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// Which part of a chain a file has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportHeader {
    audit_export: u32,
    pub exported_at: Timestamp,
    /// The number of the first record.
    pub first: u64,
    /// The hash of the record before it.
    pub prev: Digest,
    /// The number of the last record.
    pub last: u64,
    /// Its hash.
    pub head: Digest,
}

impl ExportHeader {
    pub fn records(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }
}

/// Verifies the log, and writes everything from the first to the last record that is wanted. None if no record is.
pub fn export(
    (log_path, head_path): (&Path, &Path),
    is_wanted: &mut dyn FnMut(&Record) -> bool,
    (to, path): (&mut dyn Write, &Path),
) -> Result<Option<ExportHeader>, VerifyError> {
    verify(log_path, head_path)?;
    let mut found: Option<ExportHeader> = None;
    for record in read(log_path, None)? {
        let record = record?;
        if !is_wanted(&record) {
            continue;
        }
        let Record { seq, prev, hash, .. } = record;
        let header = found.get_or_insert_with(|| ExportHeader {
            audit_export: VERSION,
            exported_at: Timestamp::now(),
            first: seq,
            prev,
            last: seq,
            head: hash,
        });
        (header.last, header.head) = (seq, hash);
    }
    let Some(header) = found else { return Ok(None) };
    let mut write = |line: &[u8]| {
        let written = to.write_all(line).and_then(|()| to.write_all(b"\n"));
        written.map_err(RecordError::io("write", path))
    };
    write(&serde_json::to_vec(&header).map_err(RecordError::from)?)?;
    let (mut seq, mut prev) = (header.first, header.prev);
    let mut records = read(log_path, None)?;
    while seq <= header.last {
        let Some((line, record)) = records.next_with_line()? else {
            return Err(LogFault::TailCut { missing: header.last - seq + 1 }.into());
        };
        if record.seq < header.first {
            continue;
        }
        // What is written was looked at: the files may have changed since.
        prev = chain::check(&line, seq, prev).map_err(|fault| VerifyError::at_line(seq, fault))?;
        write(&line)?;
        seq += 1;
    }
    to.flush().map_err(RecordError::io("write", path))?;
    Ok(Some(header))
}

/// Checks a file that [`export`] wrote: every record, the chain between them, and that none is missing at either end.
pub fn verify_export(path: &Path) -> Result<ExportHeader, VerifyError> {
    let file = files::open_existing(path, OFlags::RDONLY)?.ok_or(LogFault::LogMissing)?;
    let mut lines = BufReader::with_capacity(64 * 1024, file);
    let mut line = Vec::new();
    let mut next = |line: &mut Vec<u8>| {
        line.clear();
        let read = (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', line);
        read.map_err(RecordError::io("read", path))?;
        Ok::<_, VerifyError>(line.pop_if(|last| *last == b'\n').is_some())
    };
    if !next(&mut line)? {
        return Err(LogFault::NotAnExport.into());
    }
    let header: ExportHeader = serde_json::from_slice(&line).map_err(|_| LogFault::NotAnExport)?;
    if header.audit_export != VERSION || header.first == 0 || header.last < header.first {
        return Err(LogFault::NotAnExport.into());
    }
    let mut hash = header.prev;
    for seq in header.first..=header.last {
        if !next(&mut line)? {
            let missing = header.last - seq + 1;
            return Err(VerifyError::at_line(seq, LogFault::TailCut { missing }));
        }
        hash = chain::check(&line, seq, hash).map_err(|fault| VerifyError::at_line(seq, fault))?;
    }
    if hash != header.head {
        return Err(VerifyError::at_line(header.last, LogFault::HeadDisagrees));
    }
    match next(&mut line)? || !line.is_empty() {
        true => Err(VerifyError::at_line(header.last + 1, LogFault::TailAdded)),
        false => Ok(header),
    }
}

#[cfg(test)]
mod tests {
    use super::{export, verify_export};
    use crate::Rotation;
    use crate::audit::tests::{Fixture, events};
    use std::fs;

    fn exported(fixture: &Fixture, session: Option<&str>) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part.jsonl");
        let mut bytes = Vec::new();
        let mut wanted = |record: &crate::Record| {
            session.is_none_or(|session| record.event.sandbox_id == session)
        };
        let places = (fixture.log.as_path(), fixture.head.as_path());
        export(places, &mut wanted, (&mut bytes, &path)).unwrap().unwrap();
        fs::write(&path, &bytes).unwrap();
        (directory, String::from_utf8(bytes).unwrap())
    }

    fn fixture() -> Fixture {
        let fixture = Fixture::new();
        // Over several files.
        let mut log = fixture.open().rotating(Rotation { full_at: 2000, kept: 9 });
        for number in 0..12 {
            log.append_batch(&events(["one", "two", "three"][number % 3], 1)).unwrap();
        }
        fixture
    }

    /// Proves: AUD-1 export, AUD-1 rotation
    #[test]
    fn a_part_can_be_verified_without_the_log() {
        let (directory, text) = exported(&fixture(), None);
        let header = verify_export(&directory.path().join("part.jsonl")).unwrap();
        assert_eq!((header.first, header.last, header.records()), (1, 12, 12));
        assert_eq!(text.lines().count(), 13);

        let (directory, _) = exported(&fixture(), Some("two"));
        let header = verify_export(&directory.path().join("part.jsonl")).unwrap();
        assert_eq!((header.first, header.last), (2, 11), "from its first to its last record");
    }

    /// Proves: AUD-1 export, AUD-1 verify
    #[test]
    fn a_part_that_was_changed_shows() {
        let (directory, text) = exported(&fixture(), None);
        let path = directory.path().join("part.jsonl");
        let lines: Vec<&str> = text.lines().collect();
        let join = |lines: &[&str]| lines.join("\n") + "\n";
        let changed = text.replacen("SIGTERM", "SIGKILL", 1);
        let without = join(&[&lines[..4], &lines[5..]].concat());
        let swapped = join(&[&lines[..4], &[lines[5], lines[4]], &lines[6..]].concat());
        let cut = join(&lines[..10]);
        let longer = join(&[&lines[..], &[lines[12]]].concat());
        let unfinished = format!("{text}{{");
        let headless = join(&lines[1..]);
        for tampered in [changed, without, swapped, cut, longer, unfinished, headless] {
            fs::write(&path, tampered).unwrap();
            verify_export(&path).unwrap_err();
        }
        fs::write(&path, text).unwrap();
        verify_export(&path).unwrap();
    }
}
