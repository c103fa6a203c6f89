//! The head of an audit log, in a separate file: where the log ends and what its last record is.
//!
//! The head is always one block of fixed size, written by one call, so that a reader never sees a partial change. The
//! end of a batch is announced here before it is appended. After a crash only announced records can be adopted, so a
//! process that can write only the log can never add to it.

use crate::digest::Digest;
use crate::error::{RecordError, Result};
use palisade_sys::lock::{lock_within, try_lock_file};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// One sector, which a disk writes atomically.
const SIZE: usize = 512;
/// A lock is held for one batch of records.
const LOCK_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// The second version adds rotated files.
const VERSIONS: [u32; 2] = [1, 2];

/// A position between two records of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The hash of the record before this position.
    pub(crate) hash: Digest,
}

impl Position {
    pub(crate) const START: Position = Position { records: 0, bytes: 0, hash: Digest::NONE };
}

/// The rotated files of the log, by number, and the last record before the oldest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutAside {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) records: u64,
    pub(crate) hash: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Head {
    version: u32,
    /// Everything before this position was written and acknowledged.
    pub(crate) committed: Position,
    /// Where the log ends once the current batch is written.
    pub(crate) announced: Option<Position>,
    /// `None` while the log is a single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) put_aside: Option<PutAside>,
}

impl Head {
    /// The head of an empty log.
    pub(crate) fn start() -> Head {
        let [version, _] = VERSIONS;
        Head { version, committed: Position::START, announced: None, put_aside: None }
    }

    pub(crate) fn settled(self, committed: Position) -> Head {
        Head { committed, announced: None, ..self }
    }

    /// A head with rotated files has the second version.
    pub(crate) fn with_put_aside(self, aside: PutAside) -> Head {
        let [_, version] = VERSIONS;
        Head { version, put_aside: Some(aside), ..self }
    }

    pub(crate) fn announcing(self, end: Position) -> Head {
        Head { announced: Some(end), ..self }
    }

    /// `None` if the file is empty: no record was ever written.
    pub(crate) fn read(file: &File, path: &Path) -> Result<Option<Head>> {
        let malformed = |what: String| RecordError::HeadMalformed { path: path.to_owned(), what };
        let mut block = [0; SIZE + 1];
        let length = read_up_to(file, &mut block).map_err(RecordError::io("read", path))?;
        if length == 0 {
            return Ok(None);
        }
        let block = &block[..length];
        let head: Head =
            serde_json::from_slice(block).map_err(|error| malformed(error.to_string()))?;
        if !VERSIONS.contains(&head.version) {
            let [_, newest] = VERSIONS;
            return Err(malformed(format!("its version is {}, not {newest}", head.version)));
        }
        if head.block()? != block {
            return Err(malformed("it is not written the way this program writes it".to_owned()));
        }
        Ok(Some(head))
    }

    pub(crate) fn write(&self, file: &File, path: &Path) -> Result<()> {
        file.write_all_at(&self.block()?, 0).map_err(RecordError::io("write", path))
    }

    fn block(&self) -> Result<Vec<u8>> {
        let mut block = serde_json::to_vec(self)?;
        block.resize(SIZE - 1, b' ');
        block.push(b'\n');
        Ok(block)
    }
}

fn read_up_to(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Held while the log and its head may disagree. The lock is on the head, which is never replaced.
pub(crate) struct Lock<'f>(&'f File);

impl<'f> Lock<'f> {
    pub(crate) fn exclusive(file: &'f File, path: &Path) -> Result<Lock<'f>> {
        wait_for(file, path, FlockOperation::NonBlockingLockExclusive).map(|()| Lock(file))
    }

    pub(crate) fn shared(file: &'f File, path: &Path) -> Result<Lock<'f>> {
        wait_for(file, path, FlockOperation::NonBlockingLockShared).map(|()| Lock(file))
    }
}

/// Takes a lock that other processes hold for an instant. After [`LOCK_TIMEOUT`] this is an error.
pub(crate) fn wait_for(file: &File, path: &Path, operation: FlockOperation) -> Result<()> {
    match lock_within(LOCK_TIMEOUT, || try_lock_file(file, operation)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(RecordError::Locked { path: path.to_owned(), waited: LOCK_TIMEOUT }),
        Err(errno) => Err(RecordError::io("lock", path)(errno)),
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // The only possible error is a closed descriptor, and closing it released the lock.
        let _ = self.0.unlock();
    }
}
