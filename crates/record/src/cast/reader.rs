//! Reads a recording. The file may be anybody's: nothing in it is believed, and memory stays bounded.

use super::{CastHeader, VERSION};
use crate::error::RecordError;
use crate::files;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Far more than a line of ours.
const MAX_LINE_BYTES: u64 = 4 << 20;
/// A recording of more than a year is none.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

#[derive(Debug, thiserror::Error)]
pub enum CastError {
    #[error(transparent)]
    Unreadable(#[from] RecordError),
    #[error("{} is no recording: its first line is not the header of an asciicast file, version 2", .0.display())]
    NoHeader(PathBuf),
    #[error("line {line} of {} is no event of a recording", path.display())]
    NoEvent { path: PathBuf, line: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    Output,
    Input,
    Resize,
    Marker,
    /// Of a later version.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastEvent {
    /// Since the beginning.
    pub time: Duration,
    pub kind: CastKind,
    pub text: String,
}

#[derive(Debug)]
pub struct CastReader {
    pub header: CastHeader,
    lines: BufReader<File>,
    path: PathBuf,
    line: u64,
    last: Duration,
}

impl CastReader {
    pub fn open(path: &Path) -> Result<Self, CastError> {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let file = files::open_existing(path, OFlags::RDONLY)?
            .ok_or_else(|| RecordError::io("open", path)(missing()))?;
        let mut lines = BufReader::with_capacity(64 * 1024, file);
        let first = next_line(&mut lines, path)?;
        let header = first.and_then(|first| serde_json::from_slice::<CastHeader>(&first).ok());
        let header = header.filter(|header| header.version == VERSION);
        let header = header.ok_or_else(|| CastError::NoHeader(path.to_owned()))?;
        let path = path.to_owned();
        Ok(Self { header, lines, path, line: 1, last: Duration::ZERO })
    }

    /// The next event. A last line without its end is being written, or was cut.
    pub fn next_event(&mut self) -> Result<Option<CastEvent>, CastError> {
        loop {
            let Some(line) = next_line(&mut self.lines, &self.path)? else { return Ok(None) };
            self.line += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let event = serde_json::from_slice::<(f64, String, String)>(&line);
            let Ok((time, code, text)) = event else {
                return Err(CastError::NoEvent { path: self.path.clone(), line: self.line });
            };
            // Time only goes on.
            let time = Duration::from_secs_f64(time.clamp(0.0, MAX_SECONDS)).max(self.last);
            self.last = time;
            let kind = match code.as_str() {
                "o" => CastKind::Output,
                "i" => CastKind::Input,
                "r" => CastKind::Resize,
                "m" => CastKind::Marker,
                _ => CastKind::Other,
            };
            return Ok(Some(CastEvent { time, kind, text }));
        }
    }
}

fn next_line(lines: &mut BufReader<File>, path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    let mut line = Vec::new();
    let read = lines.take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
    read.map_err(RecordError::io("read", path))?;
    Ok(line.pop_if(|last| *last == b'\n').map(|_| line))
}
