//! The output of a command in files, for `sandbox logs`, also when the session is over. Segments of one size, each named by
//! the number of its first byte; the oldest are removed. Beside a segment with bytes of two outputs there is a record of which are
//! which ([`super::output_runs`]). A log that cannot be written is given up: no command fails for it.

use super::interface::OutputStream;
use super::output_runs::OutputRun;
use jiff::Timestamp;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use palisade_launch::CommandId;

const SEGMENT_BYTES: u64 = 1 << 20;
/// Of one command.
const MAX_SEGMENTS: u64 = 4;
/// Of one session. The oldest are removed.
const MAX_LOGS: usize = 64;

const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// How a command ended, beside its output.
pub const END: &str = "end.json";
/// It takes the place of the other one when it is written.
const UNFINISHED_END: &str = "end.json.tmp";

/// What is known later of a command whose streams the supervisor held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandEnd {
    /// Its command line, masked.
    pub command: String,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Of a command that did not start, what a shell would end with.
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Why it did not start.
    pub message: Option<String>,
    pub has_terminal: bool,
}

/// The logs of one session.
#[derive(Debug)]
pub(crate) struct OutputLogs {
    directory: OwnedFd,
    /// Oldest first.
    logged: VecDeque<CommandId>,
}

impl OutputLogs {
    pub(crate) fn new(directory: OwnedFd) -> Self {
        Self { directory, logged: VecDeque::new() }
    }

    /// None if it cannot be made.
    pub(crate) fn open(&mut self, command: CommandId, has_two_outputs: bool) -> Option<OutputLog> {
        while self.logged.len() >= MAX_LOGS
            && let Some(oldest) = self.logged.pop_front()
        {
            // What cannot be removed goes with the session.
            let _ = remove(&self.directory, oldest);
        }
        let name = command.0.to_string();
        rustix::fs::mkdirat(&self.directory, &name, Mode::RWXU).ok()?;
        self.logged.push_back(command);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.directory, &name, flags, Mode::empty()).ok()?;
        Some(OutputLog { directory, segment: None, runs: None, has_two_outputs, end: 0 })
    }
}

fn remove(logs: &OwnedFd, command: CommandId) -> Result<(), Errno> {
    let name = command.0.to_string();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(logs, &name, flags, Mode::empty())?;
    for entry in Dir::read_from(&directory)?.flatten() {
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            rustix::fs::unlinkat(&directory, entry.file_name(), AtFlags::empty())?;
        }
    }
    rustix::fs::unlinkat(logs, &name, AtFlags::REMOVEDIR)
}

#[derive(Debug)]
pub(crate) struct OutputLog {
    directory: OwnedFd,
    segment: Option<File>,
    /// Which bytes of the segment are of which output.
    runs: Option<File>,
    has_two_outputs: bool,
    end: u64,
}

impl OutputLog {
    /// An error means that nothing more is logged.
    pub(crate) fn append(&mut self, stream: OutputStream, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let used = self.end % SEGMENT_BYTES;
            if used == 0 {
                self.begin_segment()?;
            }
            let room = usize::try_from(SEGMENT_BYTES - used).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(segment) = &mut self.segment {
                segment.write_all(now)?;
            }
            // After the bytes: who reads takes only those of which this says something.
            if let Some(runs) = &mut self.runs {
                runs.write_all(&OutputRun { stream, length: now.len() as u64 }.encode())?;
            }
            self.end += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// A reader sees all of it or nothing.
    pub(crate) fn write_end(&self, end: &CommandEnd) -> std::io::Result<()> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, UNFINISHED_END, flags, OWNER)?;
        File::from(file).write_all(&serde_json::to_vec(end)?)?;
        Ok(rustix::fs::renameat(&self.directory, UNFINISHED_END, &self.directory, END)?)
    }

    fn begin_segment(&mut self) -> std::io::Result<()> {
        if let Some(oldest) = self.end.checked_sub(SEGMENT_BYTES * MAX_SEGMENTS) {
            // Somebody may have removed it.
            let _ = rustix::fs::unlinkat(&self.directory, name_of(oldest), AtFlags::empty());
            let _ = rustix::fs::unlinkat(&self.directory, runs_name(oldest), AtFlags::empty());
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let create =
            |name: String| rustix::fs::openat(&self.directory, name, flags, OWNER).map(File::from);
        // Before the segment: bytes without a record are those of one output.
        self.runs = self.has_two_outputs.then(|| create(runs_name(self.end))).transpose()?;
        self.segment = Some(create(name_of(self.end))?);
        Ok(())
    }
}

fn name_of(cursor: u64) -> String {
    format!("{cursor:020}")
}

/// The name of the record beside the segment that begins with this byte.
pub fn runs_name(cursor: u64) -> String {
    format!("{cursor:020}.streams")
}

#[cfg(test)]
mod tests {
    use super::{CommandId, MAX_LOGS, MAX_SEGMENTS, OutputLogs, OutputStream, SEGMENT_BYTES};
    use std::fs;

    fn names(directory: &std::path::Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_log_keeps_its_last_segments_and_a_session_its_last_logs() {
        let directory = tempfile::tempdir().unwrap();
        let mut logs = OutputLogs::new(fs::File::open(directory.path()).unwrap().into());
        let mut log = logs.open(CommandId(1), false).unwrap();
        let part = vec![b'x'; 700_000];
        for _ in 0..10 {
            log.append(OutputStream::Stdout, &part).unwrap();
        }
        let segments = names(&directory.path().join("1"));
        assert_eq!(segments.len() as u64, MAX_SEGMENTS);
        let first: u64 = segments[0].parse().unwrap();
        let last = directory.path().join("1").join(segments.last().unwrap());
        let bytes = (MAX_SEGMENTS - 1) * SEGMENT_BYTES + fs::metadata(last).unwrap().len();
        assert_eq!(first + bytes, 7_000_000);
        for number in 2..=u64::try_from(MAX_LOGS).unwrap() + 1 {
            logs.open(CommandId(number), true).unwrap();
        }
        let kept = names(directory.path());
        assert!(kept.len() == MAX_LOGS && !kept.contains(&"1".to_owned()), "{kept:?}");
    }
}
