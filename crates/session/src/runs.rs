//! The running sandboxes of one user: each run writes a small file by which `sandbox top` finds it.
//!
//! A file is only a hint: if its supervisor is gone, a killed run left it, and the next command that sees it removes
//! it. Nothing must ever depend on these files, and a run does not fail without one.

mod meter;

pub use meter::{Meter, Reading};
pub use palisade_usage::Io;

use crate::app_dirs::{self, AppDirs};
use crate::error::{Result, SessionError};
use jiff::Timestamp;
use palisade_supervisor::RunRegistration;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SUFFIX: &str = ".json";
/// How many files a run checks when it ends, to remove dead ones: enough that they do not accumulate.
const SWEPT_AT_THE_END: usize = 8;
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Shorter runs are not announced.
const ANNOUNCE_AFTER: Duration = Duration::from_millis(50);
/// Longer command lines are truncated to this many characters.
const MAX_COMMAND_LEN: usize = 1000;
/// Writing such a file takes microseconds. A file that is still empty after this time will stay so.
const UNFINISHED: Duration = Duration::from_secs(5);

/// What is published about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announced {
    pub session: String,
    /// The pid of the sandbox's init in the host's pid namespace.
    pub init: u32,
    /// The process beside the sandbox whose children are a session's commands, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawner: Option<u32>,
    /// With secrets masked.
    pub command: String,
    pub started_at: Timestamp,
    /// The run's control groups, one per hierarchy.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    #[serde(default)]
    pub limits: Vec<AnnouncedLimit>,
}

/// A limit as the plan describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedLimit {
    /// The option's name: `memory`, `cpu-time` …
    pub name: String,
    /// Bytes, milliseconds, thousandths of a CPU, or a count.
    pub value: u64,
    pub holder: String,
    pub grip: String,
}

impl From<&palisade_plan::limit::Limit> for AnnouncedLimit {
    fn from(limit: &palisade_plan::limit::Limit) -> Self {
        Self {
            name: limit.what.name().to_owned(),
            value: limit.value,
            holder: limit.holder.name().to_owned(),
            grip: limit.grip.name().to_owned(),
        }
    }
}

/// The content of a file. A lock on the file shows that its writer is alive.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written<Run> {
    /// Pids have no meaning in another pid namespace, and a container may see the same directory.
    pid_namespace: u64,
    #[serde(flatten)]
    run: Run,
}

fn pid_namespace() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino())
}

fn directory(places: &AppDirs) -> PathBuf {
    places.runtime.join("runs")
}

/// Keeps the file of a run while this value exists.
#[derive(Debug)]
pub struct Announcement {
    directory: PathBuf,
    path: PathBuf,
    /// Locked for as long as it is open.
    _file: File,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // The next run removes what remains.
        let _ = fs::remove_file(&self.path);
        for entry in fs::read_dir(&self.directory).into_iter().flatten().take(SWEPT_AT_THE_END) {
            let _ = entry.map(|entry| look(&entry));
        }
    }
}

/// Makes a run of this process visible to `sandbox top`.
fn announce(places: &AppDirs, run: &Announced) -> Result<Announcement> {
    let directory = directory(places);
    let path = directory.join(format!("{}{SUFFIX}", run.session));
    let failed = |source| SessionError::io("write", &path, source);
    let mut run = run.clone();
    if let Some((end, _)) = run.command.char_indices().nth(MAX_COMMAND_LEN) {
        run.command.truncate(end);
        run.command.push('…');
    }
    let pid_namespace = pid_namespace().map_err(failed)?;
    let written = serde_json::to_vec(&Written { pid_namespace, run: &run })
        .map_err(|error| failed(error.into()))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let create = || rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
    let file = match create() {
        Err(Errno::NOENT) => {
            app_dirs::make_private_dir(&directory)?;
            create()
        }
        created => created,
    };
    let mut file = File::from(file.map_err(|errno| failed(errno.into()))?);
    // Locked before it is written: readers leave an empty file alone for a while.
    let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    let written = locked.map_err(io::Error::from).and_then(|()| file.write_all(&written));
    let announcement = Announcement { directory, path: path.clone(), _file: file };
    written.map_err(failed)?;
    Ok(announcement)
}

/// Announces a run after a short delay: most runs end before anybody could look for them.
#[derive(Debug)]
pub(crate) struct FileRegistration<'a> {
    places: &'a AppDirs,
    run: Announced,
    due: Option<Instant>,
    announced: Option<Announcement>,
}

impl<'a> FileRegistration<'a> {
    pub(crate) fn new(places: &'a AppDirs, run: Announced) -> Self {
        Self { places, run, due: Some(Instant::now() + ANNOUNCE_AFTER), announced: None }
    }
}

impl RunRegistration for FileRegistration<'_> {
    fn next_deadline(&self) -> Option<Instant> {
        self.due
    }

    /// A run that cannot be announced continues.
    fn act(&mut self) {
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.due = None;
            self.announced = announce(self.places, &self.run).ok();
        }
    }
}

/// This user's runs, oldest first.
pub fn list(places: &AppDirs) -> Result<Vec<Announced>> {
    let directory = directory(places);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("read", &directory, error)),
    };
    let mut runs: Vec<Announced> = entries.flatten().filter_map(|entry| look(&entry)).collect();
    runs.sort_by(|a, b| (a.started_at, &a.session).cmp(&(b.started_at, &b.session)));
    Ok(runs)
}

/// The run that a file describes, if it belongs to this user and still runs. Removes a file that was left behind.
fn look(entry: &DirEntry) -> Option<Announced> {
    let path = entry.path();
    let name = entry.file_name();
    let session = name.to_str()?.strip_suffix(SUFFIX)?;
    let file = open(&path)?;
    let metadata = file.metadata().ok()?;
    // Root may have been given another user's directory.
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut text = Vec::new();
    (&file).take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
    // Shared, so that two readers do not take each other for the writer.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {
            let Written { pid_namespace: of, run } =
                serde_json::from_slice::<Written<Announced>>(&text).ok()?;
            (run.session == session && pid_namespace().ok()? == of).then_some(run)
        }
        // Its writer may be about to lock it.
        Ok(()) if text.is_empty() && is_young(&metadata) => None,
        Ok(()) => {
            // Another reader may have removed it first.
            let _ = fs::remove_file(&path);
            None
        }
        Err(_) => None,
    }
}

fn is_young(file: &fs::Metadata) -> bool {
    let age = file.modified().ok().and_then(|written| written.elapsed().ok());
    age.is_none_or(|age| age <= UNFINISHED)
}

fn open(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
