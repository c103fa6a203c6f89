//! The directories in which Palisade keeps its own files, and how these are opened.
//!
//! Must never write through a link at the end of a path. No environment variable moves the organisation's directory:
//! that would be a way around its locks.

use crate::error::{Result, SessionError};
use crate::replaced_file::{self, Synced, TEMPORARY, Writers};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// Far larger than any real policy; bounds what a device or an endless pipe can deliver.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 1 << 20;

/// A temporary file is renamed within milliseconds; one of this age was left by a killed process.
const UNFINISHED: Duration = Duration::from_secs(3600);
/// Bounds the cleanup of a very large directory.
const MAX_SWEPT_THROUGH: usize = 10_000;

/// The directories of one caller. A library user may choose any; the command line always uses [`AppDirs::of_caller`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppDirs {
    /// The platform team's policy; only root writes there.
    pub organisation: PathBuf,
    /// The caller's own policy.
    pub user: PathBuf,
    /// Audit log, trust store, canary.
    pub state: PathBuf,
    /// The sockets of running sessions.
    pub runtime: PathBuf,
}

impl AppDirs {
    /// By the XDG base directory rules: a relative path in a variable is ignored.
    pub fn of_caller(
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<&Path>,
    ) -> Result<Self> {
        let below = |name: &'static str, default: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .or_else(|| home.map(|home| home.join(default)))
                .map(|base| base.join("palisade"))
                .ok_or(SessionError::NoHome { variable: name })
        };
        let user = below("XDG_CONFIG_HOME", ".config")?;
        let state = below("XDG_STATE_HOME", ".local/state")?;
        let runtime = variable("XDG_RUNTIME_DIR");
        Ok(Self {
            organisation: PathBuf::from("/etc/palisade"),
            user,
            runtime: palisade_ask::sessions::socket_directory(runtime.as_deref(), &state),
            state,
        })
    }

    pub fn audit_log(&self) -> PathBuf {
        self.state.join("audit.jsonl")
    }

    /// Separate from the log, so that a truncated log is detected.
    pub fn audit_head(&self) -> PathBuf {
        self.state.join("head").join("audit.head")
    }

    /// Where a session keeps the changes of its transaction.
    pub(crate) fn layer(&self, session: &str) -> PathBuf {
        self.state.join("sessions").join(session).join("layers").join("1")
    }

    /// Of runs that are no sessions.
    pub(crate) fn recordings(&self) -> PathBuf {
        self.state.join("recordings")
    }

    /// Tools that do not run.
    pub fn quarantine_store(&self) -> PathBuf {
        self.state.join("quarantine.json")
    }

    /// What is kept of incidents, one directory a session.
    pub fn incidents(&self) -> PathBuf {
        self.state.join("incidents")
    }

    pub(crate) fn trust_store(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// What people agreed to for declared tools.
    pub(crate) fn tool_approvals(&self) -> PathBuf {
        self.state.join("tool-approvals.json")
    }

    /// Never visible in a sandbox, whatever is granted around them.
    pub fn own_paths(&self) -> Vec<PathBuf> {
        let mut own = vec![self.organisation.clone(), self.user.clone(), self.state.clone()];
        // A directory inside another one is covered by it.
        own.extend(Some(self.runtime.clone()).filter(|runtime| !runtime.starts_with(&self.state)));
        own
    }

    /// The file that the self-check tries to read from inside (ESC-2).
    pub fn canary(&self) -> PathBuf {
        self.state.join("canary")
    }

    /// Created once, never removed.
    pub(crate) fn make_canary(&self) -> Result<PathBuf> {
        let path = self.canary();
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            return Ok(path);
        }
        make_private_dir(&self.state)?;
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(|source| SessionError::io("create", &path, source.into()))?;
        file.write_all(b"if a sandbox can read this, its mount view is broken\n")
            .map_err(|source| SessionError::io("write", &path, source))?;
        Ok(path)
    }
}

/// Creates a directory of our own, accessible to its owner only.
pub(crate) fn make_private_dir(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| SessionError::OwnDirectory { path: path.to_owned(), source })
}

/// The text of a small regular file, or `None` if there is no such file.
///
/// Opened without blocking: a FIFO planted as a project's policy must not block the caller.
pub(crate) fn read_document(path: &Path) -> Result<Option<String>> {
    // Most directories have none, and one call says so.
    if rustix::fs::lstat(path).is_err_and(|errno| errno == rustix::io::Errno::NOENT) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        // A broken link: its target was a policy, which must not be skipped silently.
        Err(rustix::io::Errno::NOENT) if fs::symlink_metadata(path).is_ok() => {
            return Err(SessionError::DanglingPolicy { path: path.to_owned() });
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(SessionError::io("open", path, errno.into())),
    };
    let read = |source| SessionError::io("read", path, source);
    if !file.metadata().map_err(read)?.is_file() {
        return Err(SessionError::NotRegular { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(MAX_DOCUMENT_BYTES + 1).read_to_string(&mut text).map_err(read)?;
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(SessionError::TooLarge { path: path.to_owned(), limit: MAX_DOCUMENT_BYTES });
    }
    Ok(Some(text))
}

/// Replaces a file of our own atomically. After a loss of power it is the old one or the new one.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    // A name alone is in the working directory.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    make_private_dir(parent)?;
    let failed = |source| SessionError::io("write", path, source);
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty())
        .map_err(|errno| SessionError::io("open", parent, errno.into()))?;
    let how = (Writers::Any, Synced::Content);
    replaced_file::replace(directory.as_fd(), name, content, how).map_err(failed)?;
    sweep_temporaries(parent);
    Ok(())
}

/// Removes temporary files of writers that were killed before the rename. Best effort: what cannot be read or removed
/// stays.
fn sweep_temporaries(directory: &Path) {
    let is_ours = |name: &OsStr| {
        let id = name.to_str().and_then(|name| name.strip_suffix(TEMPORARY)?.rsplit('.').next());
        id.is_some_and(|id| id.len() == 32 && Uuid::try_parse(id).is_ok())
    };
    let is_old = |found: &fs::Metadata| {
        let written = found.modified().ok().and_then(|written| written.elapsed().ok());
        found.is_file() && written.is_some_and(|age| age > UNFINISHED)
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_SWEPT_THROUGH) {
        if is_ours(&entry.file_name()) && entry.metadata().is_ok_and(|found| is_old(&found)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
#[path = "app_dirs_tests.rs"]
mod tests;
