//! Writes a recording. Nothing waits for it: events are gathered, and written when there are many or after a moment. A recording
//! that reaches its limit says so and ends; so does one that cannot be written, which is told once. Neither ends a command.

use super::CastHeader;
use crate::error::{RecordError, Result};
use crate::files;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least that makes sense: a header, some events and the marker at the end.
const LEAST: u64 = 4096;
/// Kept for the marker that says that the limit was reached.
const RESERVED: u64 = 256;
const GATHERED: usize = 64 * 1024;
/// How long an event may wait to be written.
const FLUSH_AFTER: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct CastWriter {
    /// None when nothing more is recorded.
    pub(super) file: Option<File>,
    path: PathBuf,
    limit: u64,
    start: Instant,
    gathered: Vec<u8>,
    /// Whole lines that are in the file.
    written: u64,
    /// When what is gathered was first of all.
    waits_since: Option<Instant>,
    /// The beginning of a character, of output and of input.
    unfinished: [Vec<u8>; 2],
    failure: Option<String>,
}

impl CastWriter {
    /// Begins a recording in a new file, or one of ours that is overwritten, for the owner only.
    pub fn create(path: &Path, header: &CastHeader, limit: u64) -> Result<Self> {
        let file = files::open_or_create(path, OFlags::WRONLY)?;
        let private = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::fchmod(&file, private).map_err(RecordError::io("set the mode of", path))?;
        file.set_len(0).map_err(RecordError::io("empty", path))?;
        Self::begin(file, path, header, limit)
    }

    /// The same in an empty file that is open for writing.
    pub fn begin(file: File, path: &Path, header: &CastHeader, limit: u64) -> Result<Self> {
        let mut line = serde_json::to_vec(header)?;
        line.push(b'\n');
        (&file).write_all(&line).map_err(RecordError::io("write", path))?;
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
            limit: limit.max(LEAST),
            start: Instant::now(),
            gathered: Vec::new(),
            written: line.len() as u64,
            waits_since: None,
            unfinished: [Vec::new(), Vec::new()],
            failure: None,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It was put elsewhere.
    pub fn moved_to(&mut self, path: PathBuf) {
        self.path = path;
    }

    pub fn output(&mut self, bytes: &[u8]) {
        self.text("o", 0, bytes);
    }

    /// To be called only for what the terminal echoed.
    pub fn input(&mut self, bytes: &[u8]) {
        self.text("i", 1, bytes);
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.event("r", &format!("{columns}x{rows}"));
    }

    pub fn marker(&mut self, text: &str) {
        self.event("m", text);
    }

    /// JSON is text: what is no UTF-8 is replaced, and a character may come in two pieces.
    fn text(&mut self, code: &str, stream: usize, bytes: &[u8]) {
        if self.file.is_none() || bytes.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.unfinished[stream]);
        all.extend_from_slice(bytes);
        let kept = unfinished_character(&all);
        self.unfinished[stream] = all.split_off(all.len() - kept);
        if !all.is_empty() {
            self.event(code, &String::from_utf8_lossy(&all));
        }
    }

    fn event(&mut self, code: &str, text: &str) {
        if self.file.is_none() {
            return;
        }
        let line = line(self.start.elapsed(), code, text);
        let length = self.written + (self.gathered.len() + line.len()) as u64;
        if length + RESERVED > self.limit {
            let full = format!("recording stopped: its limit of {} bytes is reached", self.limit);
            let last = self::line(self.start.elapsed(), "m", &full);
            self.gathered.extend_from_slice(last.as_bytes());
            self.flush();
            self.file = None;
            return;
        }
        self.gathered.extend_from_slice(line.as_bytes());
        self.waits_since.get_or_insert_with(Instant::now);
        if self.gathered.len() >= GATHERED {
            self.flush();
        }
    }

    /// When [`Self::flush_if_due`] has something to do.
    pub fn next_flush(&self) -> Option<Instant> {
        self.waits_since.map(|since| since + FLUSH_AFTER)
    }

    pub fn flush_if_due(&mut self, now: Instant) {
        if self.next_flush().is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    /// Writes what was gathered. What cannot be written ends the recording with the last whole line.
    pub fn flush(&mut self) {
        self.waits_since = None;
        let gathered = std::mem::take(&mut self.gathered);
        let Some(file) = &self.file else { return };
        match (&mut &*file).write_all(&gathered) {
            Ok(()) => self.written += gathered.len() as u64,
            Err(error) => {
                let _ = file.set_len(self.written);
                self.failure = Some(failure(&self.path, error));
                self.file = None;
            }
        }
    }

    /// Why nothing more is recorded. Says it once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

impl Drop for CastWriter {
    fn drop(&mut self) {
        self.flush();
    }
}

fn failure(path: &Path, error: io::Error) -> String {
    let error = RecordError::io("write", path)(error);
    format!("the recording ends here: {error}")
}

fn line(time: Duration, code: &str, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
    format!("[{}.{:06},\"{code}\",{text}]\n", time.as_secs(), time.subsec_micros())
}

/// How many bytes at the end are an incomplete character (UTF-8).
fn unfinished_character(end: &[u8]) -> usize {
    let begins = |length: &usize| {
        let last = std::str::from_utf8(&end[end.len() - length..]);
        last.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=end.len().min(3)).rev().find(begins).unwrap_or(0)
}
