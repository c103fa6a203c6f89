//! Reads what the supervisor has logged of a command's output, by the number of each byte, while it is written or later.

use super::directory::SessionDirectory;
use crate::error::{Result, SessionError};
use palisade_launch::CommandId;
use palisade_supervisor::control::output_log::{CommandEnd, END};
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
            match read_from(&path, cursor - first) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    self.next = cursor + bytes.len() as u64;
                    return Ok(Some(OutputChunk { cursor, bytes }));
                }
                // It was dropped meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(SessionError::io("read", &path, error)),
            }
        }
        Ok(None)
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
    use super::{OutputChunk, OutputReader};
    use std::fs;

    #[test]
    fn output_is_read_across_segments_and_what_was_dropped_shows() {
        let directory = tempfile::tempdir().unwrap();
        for (first, text) in [(10, "abcde"), (15, "fgh")] {
            fs::write(directory.path().join(format!("{first:020}")), text).unwrap();
        }
        let read = |from| {
            let mut reader = OutputReader { directory: directory.path().to_owned(), next: from };
            let chunks = std::iter::from_fn(move || reader.read().unwrap());
            chunks.map(|OutputChunk { cursor, bytes }| (cursor, bytes)).collect::<Vec<_>>()
        };
        assert_eq!(read(0), [(10, b"abcde".to_vec()), (15, b"fgh".to_vec())]);
        assert_eq!(read(12), [(12, b"cde".to_vec()), (15, b"fgh".to_vec())]);
        assert_eq!(read(17), [(17, b"h".to_vec())]);
        assert_eq!(read(18), []);
    }
}
