//! The records of an apply in a directory of ours. Each is complete or absent: written under another name, flushed,
//! renamed.

use super::operations::Operation;
use crate::contents::digest_of;
use crate::error::{ChangesError, Result};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result as SysResult};
use rustix::fs::{AtFlags, fsync, openat, renameat, unlinkat};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// Which stage directory is made. Means nothing once there is one of the others.
pub(super) const BEGIN: &str = "apply-begin";
/// The operations: from here on the apply is finished, if need be after a crash.
pub(super) const JOURNAL: &str = "apply-journal";
/// The same record under another name: the apply failed and is undone.
pub(super) const ABORT: &str = "apply-abort";
/// The same again: everything is in its place and flushed.
pub(super) const DONE: &str = "apply-done";
pub(super) const RECORDS: [&str; 4] = [BEGIN, JOURNAL, ABORT, DONE];
/// A record that does not count yet.
pub(super) const NEW: &str = "apply-new";

/// What another version wrote is not understood.
const VERSION: u32 = 1;
const DIGEST_BYTES: usize = 32;

/// Where the staged copies are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begin {
    version: u32,
    pub(super) is_in_project: bool,
    pub(super) stage: String,
}

impl Begin {
    pub(super) fn new(is_in_project: bool, stage: String) -> Self {
        Self { version: VERSION, is_in_project, stage }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) begin: Begin,
    pub(super) operations: Vec<Operation>,
}

pub(super) fn read_begin(state: BorrowedFd<'_>) -> Result<Option<Begin>> {
    read::<Begin>(state, BEGIN)?.map(checked).transpose()
}

/// From a record with one of the three names.
pub(super) fn read_journal(state: BorrowedFd<'_>, name: &str) -> Result<Option<Journal>> {
    let Some(Journal { begin, operations }) = read(state, name)? else { return Ok(None) };
    Ok(Some(Journal { begin: checked(begin)?, operations }))
}

fn checked(begin: Begin) -> Result<Begin> {
    let version = begin.version;
    if version == VERSION {
        return Ok(begin);
    }
    Err(ChangesError::Journal { why: format!("it has version {version}, not {VERSION}") })
}

/// Writes a record that does not count yet, with the digest of its bytes.
pub(super) fn prepare(state: BorrowedFd<'_>, record: &impl Serialize) -> Result<OwnedFd> {
    let bytes = postcard::to_extend(record, Vec::new())
        .map_err(|error| ChangesError::Journal { why: error.to_string() })?;
    let path = Path::new(NEW);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = openat(state, NEW, flags, Mode::RUSR | Mode::WUSR).at("openat", path)?;
    let mut file = File::from(new);
    file.write_all(&digest_of(&bytes)).and_then(|()| file.write_all(&bytes)).at("write", path)?;
    Ok(file.into())
}

/// Makes the prepared record count. It must have been flushed.
pub(super) fn publish(state: BorrowedFd<'_>, name: &str) -> SysResult<()> {
    rename(state, NEW, name)
}

/// The operations get another meaning.
pub(super) fn turn_into(state: BorrowedFd<'_>, name: &str) -> SysResult<()> {
    rename(state, JOURNAL, name)?;
    flush(state)
}

fn rename(state: BorrowedFd<'_>, from: &str, to: &str) -> SysResult<()> {
    renameat(state, from, state, to).at("rename", Path::new(to))
}

fn read<T: serde::de::DeserializeOwned>(state: BorrowedFd<'_>, name: &str) -> Result<Option<T>> {
    let path = Path::new(name);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(state, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        file => file.at("openat", path)?,
    };
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes).at("read", path)?;
    let damaged = || ChangesError::Journal { why: format!("{name} is damaged") };
    let (digest, record) = bytes.split_at_checked(DIGEST_BYTES).ok_or_else(damaged)?;
    if digest != digest_of(record) {
        return Err(damaged());
    }
    postcard::from_bytes(record).map(Some).map_err(|_| damaged())
}

pub(super) fn exists(state: BorrowedFd<'_>, name: &str) -> SysResult<bool> {
    match rustix::fs::statat(state, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno).at("statat", Path::new(name)),
    }
}

pub(super) fn remove(state: BorrowedFd<'_>, name: &str) -> SysResult<()> {
    match unlinkat(state, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).at("unlink", Path::new(name)),
    }
}

/// Names are only on disk when their directory was flushed.
pub(super) fn flush(state: BorrowedFd<'_>) -> SysResult<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(state, ".", flags, Mode::empty()).at("openat", Path::new("."))?;
    fsync(dir).call("fsync")
}
