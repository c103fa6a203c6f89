//! Reads what the supervisor has logged of a command's output, by the number of each byte, while it is written or later.

use super::directory::SessionDirectory;
use crate::error::{Result, SessionError};
use palisade_launch::CommandId;
use palisade_supervisor::control::interface::OutputStream;
use palisade_supervisor::control::output_log::{CommandEnd, END, runs_name};
use palisade_supervisor::control::output_runs::{self, OutputRun};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Read at a time.
const CHUNK: u64 = 256 * 1024;

/// A part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputChunk {
    /// The number of its first byte. More than was asked for: what is between was dropped.
    pub cursor: u64,
    pub bytes: Vec<u8>,
    /// Whose bytes they are, in their order.
    runs: Vec<OutputRun>,
}

impl OutputChunk {
    /// The bytes of one output after those of the other, each with the number of its first byte.
    pub fn parts(&self) -> impl Iterator<Item = (u64, OutputStream, &[u8])> {
        let mut rest = self.bytes.as_slice();
        let mut cursor = self.cursor;
        self.runs.iter().map(move |run| {
            let length = usize::try_from(run.length).unwrap_or(usize::MAX).min(rest.len());
            let (part, later) = rest.split_at(length);
            let first = cursor;
            rest = later;
            cursor += part.len() as u64;
            (first, run.stream, part)
        })
    }
}

#[derive(Debug)]
pub struct OutputReader {
    directory: PathBuf,
    next: u64,
}

/// The commands that have a log, oldest first.
pub fn logged_commands(session: &SessionDirectory) -> Result<Vec<CommandId>> {
    let names = numbers_in(&session.path().join("output"))?;
    Ok(names.into_iter().map(CommandId).collect())
}

/// How a command ended whose output is kept. None: it has not, or its sandbox was killed with it.
pub fn command_end(session: &SessionDirectory, command: CommandId) -> Result<Option<CommandEnd>> {
    match session.read_json(&format!("output/{}/{END}", command.0)) {
        Ok(end) => Ok(Some(end)),
        Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Names that are numbers, in order.
fn numbers_in(directory: &Path) -> Result<Vec<u64>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("read", directory, error)),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut numbers: Vec<u64> = names.filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl OutputReader {
    /// From this byte on.
    pub fn new(session: &SessionDirectory, command: CommandId, from: u64) -> Self {
        let directory = session.path().join("output").join(command.0.to_string());
        Self { directory, next: from }
    }

    /// The number of the byte that comes next.
    pub fn cursor(&self) -> u64 {
        self.next
    }

    /// What comes next. None: nothing so far.
    pub fn read(&mut self) -> Result<Option<OutputChunk>> {
        let segments = numbers_in(&self.directory)?;
        // The one that has the next byte, or the oldest if that one was dropped.
        let at = segments.partition_point(|first| *first <= self.next);
        for first in &segments[at.saturating_sub(1)..] {
            let path = self.directory.join(format!("{first:020}"));
            let cursor = self.next.max(*first);
            let read = read_from(&path, cursor - first).and_then(|bytes| {
                let runs = self.runs_of(*first, cursor - first, bytes.len() as u64)?;
                Ok((bytes, runs))
            });
            match read {
                Ok((_, runs)) if runs.is_empty() => {}
                Ok((mut bytes, runs)) => {
                    let known: u64 = runs.iter().map(|run| run.length).sum();
                    bytes.truncate(usize::try_from(known).unwrap_or(usize::MAX));
                    self.next = cursor + bytes.len() as u64;
                    return Ok(Some(OutputChunk { cursor, bytes, runs }));
                }
                // It was dropped meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(SessionError::io("read", &path, error)),
            }
        }
        Ok(None)
    }

    /// Whose these bytes of a segment are, as far as that is known.
    fn runs_of(&self, segment: u64, offset: u64, length: u64) -> io::Result<Vec<OutputRun>> {
        let record = match fs::read(self.directory.join(runs_name(segment))) {
            Ok(record) => record,
            // There is one output only.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let all = OutputRun { stream: OutputStream::Stdout, length };
                return Ok(if length == 0 { Vec::new() } else { vec![all] });
            }
            Err(error) => return Err(error),
        };
        let mut cut: Vec<OutputRun> = Vec::new();
        let mut at = 0_u64;
        for OutputRun { stream, length: whole } in output_runs::decode(&record) {
            let (from, to) = (at.max(offset), (at.saturating_add(whole)).min(offset + length));
            at = at.saturating_add(whole);
            match cut.last_mut() {
                _ if from >= to => {}
                Some(last) if last.stream == stream => last.length += to - from,
                _ => cut.push(OutputRun { stream, length: to - from }),
            }
        }
        Ok(cut)
    }
}

fn read_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{OutputChunk, OutputReader, OutputStream, runs_name};
    use std::fs;
    use std::path::Path;

    fn reader(directory: &Path, next: u64) -> OutputReader {
        OutputReader { directory: directory.to_owned(), next }
    }

    #[test]
    fn output_is_read_across_segments_and_what_was_dropped_shows() {
        let directory = tempfile::tempdir().unwrap();
        for (first, text) in [(10, "abcde"), (15, "fgh")] {
            fs::write(directory.path().join(format!("{first:020}")), text).unwrap();
        }
        let read = |from| {
            let mut reader = reader(directory.path(), from);
            let chunks = std::iter::from_fn(move || reader.read().unwrap());
            chunks.map(|OutputChunk { cursor, bytes, .. }| (cursor, bytes)).collect::<Vec<_>>()
        };
        assert_eq!(read(0), [(10, b"abcde".to_vec()), (15, b"fgh".to_vec())]);
        assert_eq!(read(12), [(12, b"cde".to_vec()), (15, b"fgh".to_vec())]);
        assert_eq!(read(17), [(17, b"h".to_vec())]);
        assert_eq!(read(18), []);
    }

    /// The record is behind while the supervisor writes: what it does not know yet is read later.
    #[test]
    fn bytes_of_two_outputs_are_told_apart_as_far_as_the_record_goes() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(format!("{:020}", 10)), "outERRmoreLATER").unwrap();
        fs::write(directory.path().join(runs_name(10)), [3 << 1, 3 << 1 | 1, 4 << 1]).unwrap();
        let read = |from| {
            let chunk = reader(directory.path(), from).read().unwrap()?;
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            Some(chunk.parts().map(|(at, of, part)| (at, of, text(part))).collect::<Vec<_>>())
        };
        let (out, err) = (OutputStream::Stdout, OutputStream::Stderr);
        let all = [(10, out, "out".into()), (13, err, "ERR".into()), (16, out, "more".into())];
        assert_eq!(read(0).unwrap(), all);
        assert_eq!(read(14).unwrap(), [(14, err, "RR".into()), (16, out, "more".to_owned())]);
        assert_eq!(read(20), None);
    }
}
