//! Errors while recording. A forged log is not among them: see [`crate::VerifyError`].

use crate::malformed::Malformed;
use crate::state::WrongOrder;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) type Result<T, E = RecordError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot {action} {}: {}", path.display(), told(source))]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    #[error(
        "{} is a symbolic link, which is refused here: remove it, or name the file it points to",
        .0.display()
    )]
    SymbolicLink(PathBuf),

    #[error("{} is not a regular file: name another path", .0.display())]
    NotRegular(PathBuf),

    #[error("{} names no file: give a path that ends in a file name", .0.display())]
    NoFileName(PathBuf),

    #[error(
        "{} has {links} hard links where it must have exactly one: it was removed, replaced or \
         linked elsewhere; run `sandbox audit verify`",
        path.display()
    )]
    HardLinks { path: PathBuf, links: u64 },

    #[error(
        "the audit log {} is missing although its head {} counts records: restore it, or move the \
         head aside to begin a new log",
        log.display(), head.display()
    )]
    LogMissing { log: PathBuf, head: PathBuf },

    #[error(
        "the audit log {} holds records but its head {} is missing or empty: restore the head, or \
         move the log aside to begin a new one",
        log.display(), head.display()
    )]
    HeadMissing { log: PathBuf, head: PathBuf },

    #[error(
        "{} has been locked by another process for {} s: a sandbox may be stopped; `fuser {}` shows which",
        path.display(), waited.as_secs(), path.display()
    )]
    Locked { path: PathBuf, waited: std::time::Duration },

    #[error("the audit head {} cannot be read: {what}; run `sandbox audit verify`", path.display())]
    HeadMalformed { path: PathBuf, what: String },

    #[error(
        "the audit log {} does not end where its head says ({found} bytes, {expected} expected): \
         it was changed, or the machine lost power; run `sandbox audit verify`, then move log and \
         head aside to begin a new log",
        log.display()
    )]
    LengthDisagrees { log: PathBuf, expected: u64, found: u64 },

    #[error(
        "the last record of the audit log {} is not the one its head names: the log was changed; \
         run `sandbox audit verify`",
        .0.display()
    )]
    LastRecordDisagrees(PathBuf),

    #[error("line {line} of {} is not a record: {source}", path.display())]
    NotARecord { path: PathBuf, line: u64, source: serde_json::Error },

    #[error(
        "{} is no metrics file of ours: {source}; nothing was changed: name another path, or move it \
         away",
        path.display()
    )]
    NotMetrics { path: PathBuf, source: Malformed },

    #[error(
        "somebody keeps a lock on {}: this run is not counted in {}; see who with `fuser`",
        lock.display(), path.display()
    )]
    MetricsLocked { path: PathBuf, lock: PathBuf },

    #[error("cannot write a record as JSON: {0}")]
    Encode(#[from] serde_json::Error),

    #[error(transparent)]
    WrongOrder(#[from] WrongOrder),
}

impl RecordError {
    /// For `map_err`: adds the action and the path to the errno.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> RecordError {
        let path = path.to_owned();
        move |source| RecordError::Io { action, path, source: source.into() }
    }
}

/// The errno by name, and a fix where one is known. Covers the errnos of file operations.
fn told(error: &io::Error) -> String {
    let text = error.to_string();
    let (Some(errno), Some((words, _))) =
        (Errno::from_io_error(error), text.split_once(" (os error"))
    else {
        return text;
    };
    let (name, fix) = match errno {
        Errno::NOENT => ("ENOENT", "; create it, or name another path"),
        Errno::NOTDIR => ("ENOTDIR", "; name another path"),
        Errno::ACCESS => ("EACCES", "; allow it to this user, or name another path"),
        Errno::PERM => ("EPERM", "; allow it to this user, or name another path"),
        Errno::ROFS => ("EROFS", "; name a path that can be written"),
        Errno::NOSPC => ("ENOSPC", "; free some space"),
        Errno::DQUOT => ("EDQUOT", "; free some space"),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "; name a shorter path"),
        Errno::LOOP => ("ELOOP", "; name the file itself"),
        Errno::ISDIR => ("EISDIR", "; name a file"),
        Errno::EXIST => ("EEXIST", ""),
        Errno::BUSY => ("EBUSY", ""),
        Errno::IO => ("EIO", ""),
        Errno::FBIG => ("EFBIG", "; raise the limit on the size of files (ulimit -f)"),
        Errno::MFILE => ("EMFILE", "; raise the limit on open files (ulimit -n)"),
        Errno::NFILE => ("ENFILE", ""),
        other => return format!("{words} (errno {})", other.raw_os_error()),
    };
    format!("{words} ({name}){fix}")
}
