//! The append-only audit log (AUD-1): one JSON object per line, each chained to the one before.
//!
//! A process that can write both the log and its head can rewrite history: keep the head where the log's readers cannot
//! write. This module must never change or remove an acknowledged record.

use crate::chain;
use crate::error::{RecordError, Result};
use crate::event::Event;
use crate::files;
use crate::head::{Head, Lock, Position, wait_for};
use crate::rotation::{self, Rotation};
use crate::verify;
use rustix::fs::{FlockOperation, OFlags};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a writer that died in the middle of a batch left, and how it was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing.
    None,
    /// The whole batch was written; it stays.
    Adopted { records: u64 },
    /// Part of the batch was written and never acknowledged; it was cut off.
    Discarded { bytes: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The number of records in the log now.
    pub records: u64,
    pub recovery: Recovery,
}

#[derive(Debug)]
pub struct AuditLog {
    log: File,
    log_path: PathBuf,
    head: File,
    head_path: PathBuf,
    rotation: Rotation,
    /// The number of the last rotated file when the log was opened.
    put_aside: u64,
}

impl AuditLog {
    /// Opens the log, or creates one if neither file exists.
    pub fn open(log_path: &Path, head_path: &Path) -> Result<AuditLog> {
        let head = files::open_or_create(head_path, OFlags::RDWR)?;
        // Another process may be creating or rotating the same log.
        let lock = Lock::exclusive(&head, head_path)?;
        let known = Head::read(&head, head_path)?;
        let (log, known) = open_current(log_path, known, (&head, head_path))?;
        drop(lock);
        Ok(AuditLog {
            log,
            log_path: log_path.to_owned(),
            head,
            head_path: head_path.to_owned(),
            rotation: Rotation::default(),
            put_aside: last_put_aside(known),
        })
    }

    /// Rotates the log at a size other than the default.
    #[must_use]
    pub fn rotating(mut self, rotation: Rotation) -> AuditLog {
        self.rotation = rotation;
        self
    }

    /// Prevents rotation while this is open, by this or any other process: for a writer that cannot open files later.
    pub fn pinned(mut self) -> Result<AuditLog> {
        let head_file = self.head.try_clone().map_err(RecordError::io("open", &self.head_path))?;
        let _lock = Lock::exclusive(&head_file, &self.head_path)?;
        self.follow()?;
        wait_for(&self.log, &self.log_path, FlockOperation::NonBlockingLockShared)?;
        self.rotation.full_at = u64::MAX;
        Ok(self)
    }

    /// Appends all events with one write; on an error none of them is acknowledged. Refuses to append to a log that
    /// does not end as its head says. Acknowledged records survive a crash of this process; a crash of the machine only
    /// once the kernel has written them back.
    pub fn append_batch(&mut self, events: &[Event]) -> Result<Appended> {
        // Locked through a copy, so that `self` is not borrowed: the log may be replaced below.
        let head_file = self.head.try_clone().map_err(RecordError::io("open", &self.head_path))?;
        let _lock = Lock::exclusive(&head_file, &self.head_path)?;
        self.follow()?;
        let (mut head, recovery) = self.settle()?;
        if events.is_empty() {
            return Ok(Appended { records: head.committed.records, recovery });
        }
        if head.committed.bytes >= self.rotation.full_at {
            head = self.rotate(head)?;
        }
        let start = head.committed;

        let mut lines = Vec::with_capacity(events.len() * 1024);
        let mut end = start;
        for event in events {
            end.records += 1;
            end.hash = chain::seal(&mut lines, event, end.records, end.hash)?;
        }
        end.bytes += lines.len() as u64;

        head.announcing(end).write(&self.head, &self.head_path)?;
        if let Err(source) = (&self.log).write_all(&lines) {
            // Most likely a full disk: remove the partial batch. If that fails too, the next writer does it, since the
            // announcement stays. The first error is the one to report.
            let _ = self.log.set_len(start.bytes);
            return Err(RecordError::io("append to", &self.log_path)(source));
        }
        head.settled(end).write(&self.head, &self.head_path)?;
        Ok(Appended { records: end.records, recovery })
    }

    /// Opens the current file, if another process has rotated the log.
    fn follow(&mut self) -> Result<()> {
        let known = Head::read(&self.head, &self.head_path)?;
        if last_put_aside(known) != self.put_aside {
            let (log, known) = open_current(&self.log_path, known, (&self.head, &self.head_path))?;
            self.log = log;
            self.put_aside = last_put_aside(known);
        }
        Ok(())
    }

    fn rotate(&mut self, head: Head) -> Result<Head> {
        if self.log.try_lock().is_err() {
            // It is pinned: it grows until the last process that pinned it closes it.
            return Ok(head);
        }
        let at = (&self.head, self.head_path.as_path());
        let rotated = rotation::rotate(&self.log_path, head, at, self.rotation);
        if rotated.is_err() {
            // Another process may want to pin the log. The only possible error is a closed descriptor.
            let _ = self.log.unlock();
        }
        let (log, head) = rotated?;
        self.log = log;
        self.put_aside = last_put_aside(Some(head));
        Ok(head)
    }

    /// Makes log and head agree after a writer died, and checks that they do.
    fn settle(&self) -> Result<(Head, Recovery)> {
        files::length_of_only_link(&self.head, &self.head_path)?;
        let length = files::length_of_only_link(&self.log, &self.log_path)?;
        let head = match Head::read(&self.head, &self.head_path)? {
            Some(head) => head,
            None if length == 0 => Head::start(),
            None => {
                return Err(RecordError::HeadMissing {
                    log: self.log_path.clone(),
                    head: self.head_path.clone(),
                });
            }
        };
        let committed = head.committed;
        let (settled, recovery) = match head.announced {
            _ if length == committed.bytes => (committed, Recovery::None),
            Some(end) if length == end.bytes && self.holds_batch(committed, end)? => {
                (end, Recovery::Adopted { records: end.records - committed.records })
            }
            Some(end) if length > committed.bytes && length <= end.bytes => {
                self.log
                    .set_len(committed.bytes)
                    .map_err(RecordError::io("cut the unfinished record off", &self.log_path))?;
                (committed, Recovery::Discarded { bytes: length - committed.bytes })
            }
            _ => {
                return Err(RecordError::LengthDisagrees {
                    log: self.log_path.clone(),
                    expected: committed.bytes,
                    found: length,
                });
            }
        };
        self.check_last_record(settled)?;
        Ok((head.settled(settled), recovery))
    }

    fn holds_batch(&self, from: Position, to: Position) -> Result<bool> {
        match verify::walk(&self.log, &self.log_path, from, to) {
            Ok(()) => Ok(true),
            Err(verify::VerifyError { what: verify::LogFault::Unreadable(error), .. }) => {
                Err(error)
            }
            Err(_) => Ok(false),
        }
    }

    /// The whole chain is checked by `audit verify`; this much is cheap enough for every append.
    fn check_last_record(&self, end: Position) -> Result<()> {
        // The last record is in the previous file.
        if end.bytes == 0 {
            return Ok(());
        }
        let expected = chain::ending(end.hash);
        let mut found = vec![0; expected.len()];
        let start = end.bytes.saturating_sub(found.len() as u64);
        self.log
            .read_exact_at(&mut found, start)
            .map_err(RecordError::io("read", &self.log_path))?;
        if found == expected.as_bytes() {
            Ok(())
        } else {
            Err(RecordError::LastRecordDisagrees(self.log_path.clone()))
        }
    }
}

/// The current file. Must be called under the exclusive lock.
fn open_current(
    log_path: &Path,
    known: Option<Head>,
    head: (&File, &Path),
) -> Result<(File, Option<Head>)> {
    let flags = OFlags::RDWR | OFlags::APPEND;
    let log = files::open_existing(log_path, flags)?;
    match (log, known) {
        (None, None) => Ok((files::open_or_create(log_path, flags)?, None)),
        (Some(log), None) => Ok((log, None)),
        (log, Some(known)) => {
            let (log, known) = rotation::finish_interrupted(log, log_path, known, head)?;
            let (log_path, head) = (log_path.to_owned(), head.1.to_owned());
            let log = log.ok_or(RecordError::LogMissing { log: log_path, head })?;
            Ok((log, Some(known)))
        }
    }
}

fn last_put_aside(head: Option<Head>) -> u64 {
    head.and_then(|head| head.put_aside).map_or(0, |aside| aside.last)
}

#[cfg(test)]
#[path = "audit_tests.rs"]
pub(crate) mod tests;
