//! The directory of one session: opened once, and everything in it by its descriptor. A session has at most one
//! supervisor, which is who holds the lock.

use super::record::{SessionRecord, SessionSummary};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::replaced_file::{self, Synced, TEMPORARY, Writers};
use palisade_sys::fault;
use palisade_sys::lock::{lock_within, try_lock_file};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

const RECORD: &str = "session.json";
pub(super) const LOCK: &str = "supervisor.lock";
const CHANGES_LOCK: &str = "changes.lock";
const CONTROL: &str = "control";
const LOG: &str = "supervisor.log";
const OUTPUT: &str = "output";
/// What the name of a directory that is being removed ends with.
pub(super) const REMOVED: &str = ".removed";

const MAX_RECORD_BYTES: u64 = 256 << 10;
/// Others hold these locks for microseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Clients that connected and were not accepted yet.
const BACKLOG: i32 = 64;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// The directory of all sessions.
pub(super) fn all_sessions(places: &AppDirs) -> PathBuf {
    places.state.join("sessions")
}

#[derive(Debug)]
pub struct SessionDirectory {
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
}

/// Shows that the supervisor of a session lives, for as long as it is open.
#[derive(Debug)]
pub struct SupervisorLock {
    pub(super) _file: OwnedFd,
}

/// A directory that belongs to this user, and to nobody else's group.
pub(super) fn open_own(at: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<OwnedFd> {
    let failed = |errno: Errno| SessionError::io("open", path, errno.into());
    let directory = rustix::fs::openat(at, name, DIRECTORY, Mode::empty()).map_err(failed)?;
    let found = rustix::fs::fstat(&directory).map_err(failed)?;
    if found.st_uid != rustix::process::geteuid().as_raw() || found.st_mode & 0o022 != 0 {
        return Err(SessionError::ForeignDirectory { path: path.to_owned() });
    }
    Ok(directory)
}

pub(super) fn take_lock(at: &OwnedFd, path: &Path, name: &str) -> Result<OwnedFd> {
    let busy = || SessionError::io("lock", &path.join(name), Errno::AGAIN.into());
    take_lock_within(LOCK_TIMEOUT, at, path, name)?.ok_or_else(busy)
}

/// None if somebody else still holds it.
pub(super) fn take_lock_within(
    patience: Duration,
    at: &OwnedFd,
    path: &Path,
    name: &str,
) -> Result<Option<OwnedFd>> {
    let failed = |errno: Errno| SessionError::io("lock", &path.join(name), errno.into());
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(at, name, flags, OWNER).map_err(failed)?;
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let is_held = lock_within(patience, || try_lock_file(&file, exclusive)).map_err(failed)?;
    Ok(is_held.then_some(file))
}

impl SessionDirectory {
    /// None if there is no such session.
    pub fn open(places: &AppDirs, id: &str) -> Result<Option<Self>> {
        // An id becomes a file name here.
        if Uuid::try_parse(id).is_err() {
            return Ok(None);
        }
        let path = all_sessions(places).join(id);
        match open_own(rustix::fs::CWD, &path, &path) {
            Ok(directory) => Ok(Some(Self { id: id.to_owned(), path, directory })),
            Err(SessionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The same directory, for somebody else.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let directory = self.directory.try_clone();
        let directory = directory.map_err(|source| SessionError::io("open", &self.path, source))?;
        Ok(Self { id: self.id.clone(), path: self.path.clone(), directory })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// For what else belongs to the session.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub fn record(&self) -> Result<SessionRecord> {
        self.read_json(RECORD)
    }

    pub(super) fn summary(&self) -> Result<SessionSummary> {
        self.read_json(RECORD)
    }

    /// One of the files in which we write down what a session is.
    pub(crate) fn read_json<Content: DeserializeOwned>(&self, name: &str) -> Result<Content> {
        let path = self.path.join(name);
        let failed = |source| SessionError::io("read", &path, source);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty())
            .map(File::from)
            .map_err(|errno| failed(errno.into()))?;
        let mut text = Vec::new();
        file.take(MAX_RECORD_BYTES).read_to_end(&mut text).map_err(failed)?;
        serde_json::from_slice(&text)
            .map_err(|source| SessionError::SessionRecord { path: path.clone(), source })
    }

    /// The same with any content and length.
    pub(crate) fn read_file(&self, name: &str) -> Result<Vec<u8>> {
        let failed = |source| SessionError::io("read", &self.path.join(name), source);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = rustix::fs::openat(&self.directory, name, flags, Mode::empty())
            .map(File::from)
            .map_err(|errno| failed(errno.into()))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        Ok(content)
    }

    /// Replaces the record. Of a session that is over it has to last if changes may wait there; one that lives has nothing
    /// that a loss of power would spare, until its records are written to disk ([`Self::sync_records`]).
    pub(crate) fn write_record(&self, record: &SessionRecord) -> Result<()> {
        let has_changes = record.is_over() && record.transaction.is_some();
        let synced = if has_changes { Synced::Content } else { Synced::Nothing };
        self.write_json(RECORD, record, synced)
    }

    /// Replaces one of the files in which we write down what a session is.
    pub(crate) fn write_json(
        &self,
        name: &str,
        content: &impl Serialize,
        synced: Synced,
    ) -> Result<()> {
        let text = serde_json::to_vec_pretty(content)
            .map_err(|error| SessionError::io("write", &self.path.join(name), error.into()))?;
        self.write_file(name, &text, synced)
    }

    /// The same with any content.
    pub(crate) fn write_file(&self, name: &str, content: &[u8], synced: Synced) -> Result<()> {
        let how = (Writers::OneAtATime, synced);
        replaced_file::replace(self.directory.as_fd(), name, content, how)
            .map_err(|source| SessionError::io("write", &self.path.join(name), source))
    }

    /// Sees to it that the record and these files are on disk, as far as there are any, with the directory itself.
    pub(crate) fn sync_records(&self, names: &[&str]) -> Result<()> {
        let failed = |errno: Errno| SessionError::io("sync", &self.path, errno.into());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        for name in [RECORD].iter().chain(names) {
            match rustix::fs::openat(&self.directory, *name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {}
                file => rustix::fs::fsync(file.map_err(failed)?).map_err(failed)?,
            }
        }
        rustix::fs::fsync(&self.directory).map_err(failed)?;
        let all = rustix::fs::openat(&self.directory, "..", DIRECTORY, Mode::empty());
        rustix::fs::fsync(all.map_err(failed)?).map_err(failed)
    }

    /// What somebody left who was killed while he replaced one of our files. To be called by who holds the supervisor's lock.
    pub(super) fn remove_temporaries(&self) -> Result<()> {
        // A client of the session may be busy with one, and will rename it.
        let Some(_lock) = self.lock_changes(Duration::ZERO)? else { return Ok(()) };
        let failed = |errno: Errno| SessionError::io("read", &self.path, errno.into());
        for entry in rustix::fs::Dir::read_from(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_bytes().ends_with(TEMPORARY.as_bytes()) {
                rustix::fs::unlinkat(&self.directory, entry.file_name(), AtFlags::empty())
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Whether its supervisor lives.
    pub fn is_alive(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, LOCK, flags, Mode::empty());
        // Shared, so that two who look do not take each other for the supervisor.
        file.is_ok_and(|file| {
            try_lock_file(file, FlockOperation::NonBlockingLockShared) == Ok(false)
        })
    }

    /// The supervisor's lock, if it is free.
    pub(super) fn try_lock(&self) -> Result<Option<SupervisorLock>> {
        let failed = |errno: Errno| SessionError::io("lock", &self.path.join(LOCK), errno.into());
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, LOCK, flags, OWNER).map_err(failed)?;
        let is_free = try_lock_file(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(is_free.map_err(failed)?.then_some(SupervisorLock { _file: file }))
    }

    /// Held by who changes what was kept of the session's project, one at a time. None if another one still holds it.
    pub(crate) fn lock_changes(&self, patience: Duration) -> Result<Option<OwnedFd>> {
        let failed =
            |errno: Errno| SessionError::io("lock", &self.path.join(CHANGES_LOCK), errno.into());
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&self.directory, CHANGES_LOCK, flags, OWNER).map_err(failed)?;
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let is_held = lock_within(patience, || try_lock_file(&file, exclusive)).map_err(failed)?;
        Ok(is_held.then_some(file))
    }

    /// The socket at which the supervisor takes requests.
    pub(crate) fn listen(&self) -> Result<OwnedFd> {
        let failed =
            |errno: Errno| SessionError::io("listen at", &self.path.join(CONTROL), errno.into());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(failed)?;
        rustix::net::bind(&socket, &self.control_address().map_err(failed)?).map_err(failed)?;
        rustix::net::listen(&socket, BACKLOG).map_err(failed)?;
        Ok(socket)
    }

    /// A connection to the supervisor.
    pub fn connect(&self) -> Result<OwnedFd> {
        let failed = |errno: Errno| match errno {
            Errno::NOENT | Errno::CONNREFUSED => {
                SessionError::SessionNotRunning { session: self.id.clone() }
            }
            errno => SessionError::io("connect to", &self.path.join(CONTROL), errno.into()),
        };
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(failed)?;
        rustix::net::connect(&socket, &self.control_address().map_err(failed)?).map_err(failed)?;
        Ok(socket)
    }

    /// Through the descriptor of the directory: the whole path may exceed the 108 bytes of unix(7).
    fn control_address(&self) -> std::result::Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{CONTROL}", self.directory.as_raw_fd()))
    }

    /// For what the supervisor says to people.
    pub(crate) fn open_log(&self) -> Result<OwnedFd> {
        let flags =
            OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, LOG, flags, OWNER)
            .map_err(|errno| SessionError::io("open", &self.path.join(LOG), errno.into()))
    }

    /// Where the output of commands is kept, one directory a command.
    pub(crate) fn open_output(&self) -> Result<OwnedFd> {
        let failed = |errno: Errno| SessionError::io("open", &self.path.join(OUTPUT), errno.into());
        match rustix::fs::mkdirat(&self.directory, OUTPUT, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        rustix::fs::openat(&self.directory, OUTPUT, DIRECTORY, Mode::empty()).map_err(failed)
    }

    /// After the end: nobody can connect.
    pub(crate) fn remove_socket(&self) {
        // Where it is gone already, there is nothing to do.
        let _ = rustix::fs::unlinkat(&self.directory, CONTROL, AtFlags::empty());
    }

    /// While an apply is interrupted, files of the host are kept there.
    pub(crate) const APPLY: &str = "apply";

    pub(crate) fn refuse_interrupted_apply(&self) -> Result<()> {
        let is_empty = match fs::read_dir(self.path.join(Self::APPLY)) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        match is_empty {
            true => Ok(()),
            false => Err(SessionError::InterruptedApply { session: self.id.clone() }),
        }
    }

    /// Removes a session whose supervisor is gone, with all its files.
    pub fn remove(self) -> Result<()> {
        let Some(_lock) = self.try_lock()? else {
            return Err(SessionError::SessionRunning { session: self.id });
        };
        self.refuse_interrupted_apply()?;
        // Out of everybody's sight first: half of a session is none.
        let removed = self.path.with_file_name(format!("{}{REMOVED}", self.id));
        fs::rename(&self.path, &removed)
            .map_err(|source| SessionError::io("remove", &self.path, source))?;
        fault::point("out of sight", "");
        // A command wrote the layers of a transaction.
        let all = removed.parent().unwrap_or(Path::new("/"));
        let all = open_own(rustix::fs::CWD, all, all)?;
        palisade_changes::discard(all.as_fd(), removed.file_name().unwrap_or_default())?;
        Ok(())
    }
}
