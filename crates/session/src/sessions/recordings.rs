//! Recordings of a session's commands, a file each: `recordings/N.cast`. They go with the session.

use super::directory::SessionDirectory;
use super::record::Recorded;
use crate::app_dirs;
use crate::error::{Result, SessionError};
use palisade_launch::CommandId;
use palisade_plan::model::{Plan, Recording};
use palisade_record::cast::{CastHeader, CastWriter};
use palisade_supervisor::recording::{MAX_RECORDINGS, RecordingDirectory};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

const DIRECTORY: &str = "recordings";
const ENDING: &str = ".cast";

/// A recording that was begun for a command which has no number yet.
#[derive(Debug)]
pub struct NewRecording {
    writer: CastWriter,
}

impl NewRecording {
    /// In a file that somebody chose.
    pub fn in_file(writer: CastWriter) -> Self {
        Self { writer }
    }

    /// The command has this number.
    pub(crate) fn of_command(self, command: CommandId) -> CastWriter {
        let mut writer = self.writer;
        let is_ours = writer.path().file_name().is_some_and(|name| {
            name.to_str().is_some_and(|name| name.starts_with(NEW) && name.ends_with(ENDING))
        });
        if is_ours {
            let path = writer.path().with_file_name(format!("{}{ENDING}", command.0));
            // If it cannot have the name, it keeps its own and goes with the session.
            if fs::rename(writer.path(), &path).is_ok() {
                writer.moved_to(path);
            }
        }
        writer
    }
}

const NEW: &str = "new-";

impl SessionDirectory {
    fn recordings(&self) -> PathBuf {
        self.path().join(DIRECTORY)
    }

    /// For commands whose streams the supervisor holds.
    pub(super) fn open_recordings(&self, plan: &Plan) -> Result<Option<RecordingDirectory>> {
        let Some(planned) = plan.supervision.recording else { return Ok(None) };
        let path = self.recordings();
        app_dirs::make_private_dir(&path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(self.directory(), DIRECTORY, flags, Mode::empty())
            .map_err(|errno| SessionError::io("open", &path, errno.into()))?;
        Ok(Some(RecordingDirectory::new(directory, path, planned)))
    }

    /// For a command whose streams are its client's, which records them itself.
    pub fn begin_recording(&self, header: &CastHeader, max_bytes: u64) -> Result<NewRecording> {
        let all = self.recordings();
        app_dirs::make_private_dir(&all)?;
        make_room(&all)?;
        let path = all.join(format!("{NEW}{}{ENDING}", Uuid::now_v7().simple()));
        Ok(NewRecording { writer: CastWriter::create(&path, header, max_bytes)? })
    }

    /// What was recorded, by the numbers of commands, oldest first.
    pub fn recorded_commands(&self) -> Result<Vec<(CommandId, PathBuf)>> {
        let all = self.recordings();
        let entries = match fs::read_dir(&all) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SessionError::io("read", &all, error)),
        };
        let number = |name: &str| name.strip_suffix(ENDING)?.parse().ok().map(CommandId);
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<_> =
            names.filter_map(|name| Some((number(&name)?, all.join(name)))).collect();
        found.sort_by_key(|(command, _)| command.0);
        Ok(found)
    }
}

/// Removes the oldest recordings where there are as many as a session keeps. One of a client that died goes with them.
fn make_room(all: &Path) -> Result<()> {
    let failed = |source| SessionError::io("read", all, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(all).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let changed = entry.metadata().and_then(|found| found.modified()).map_err(failed)?;
        found.push((changed, entry.path()));
    }
    found.sort();
    let excess = (found.len() + 1).saturating_sub(MAX_RECORDINGS);
    for (_, path) in found.into_iter().take(excess) {
        fs::remove_file(&path).map_err(|source| SessionError::io("remove", &path, source))?;
    }
    Ok(())
}

impl Recorded {
    /// Where nothing else is said.
    pub const MAX_BYTES: u64 = Recording::MAX_BYTES;
}

impl From<Recording> for Recorded {
    fn from(planned: Recording) -> Self {
        Self { input: planned.input, max_bytes: planned.max_bytes }
    }
}
