//! Adds one run's numbers to a file that a scraper reads, such as node_exporter's textfile collector.
//!
//! The file is replaced whole, so that nobody sees half of it, and under a lock, so that runs which end at
//! the same time lose no count. What is not ours is never replaced.

use super::Metrics;
use crate::error::RecordError;
use crate::place::OutputFile;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Ours has some ten kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Everybody needs the lock for a moment only. Who keeps it for longer must not keep a run from ending:
/// by then nobody listens for signals any more.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than that only if others get it meanwhile, and add to the file.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// A writer that still lives has long renamed what it wrote.
const ABANDONED: Duration = Duration::from_secs(60);
/// There is nothing secret in it, and a scraper is mostly somebody else.
const READABLE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// A process that can open a file can lock it (flock(2)), so the scraper must not be able to open this one.
const OURS_ALONE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A place for metrics, looked at before the command starts.
#[derive(Debug)]
pub struct MetricsFile {
    place: OutputFile,
    /// Beside it, and there for good: were it removed, two could hold a lock at once.
    lock: OutputFile,
}

impl MetricsFile {
    /// Fails now if nothing could be added there later.
    pub fn prepare(path: &Path) -> Result<MetricsFile, RecordError> {
        let place = OutputFile::prepare(path)?;
        place.can_be_replaced()?;
        let lock = place.beside("lock")?;
        let file = MetricsFile { place, lock };
        if let Some(mut there) = file.place.open(OFlags::RDONLY, Mode::empty())? {
            file.read(&mut there)?;
        }
        file.open_lock()?;
        Ok(file)
    }

    /// Adds these to what the file says already.
    pub fn add(&self, metrics: &Metrics) -> Result<(), RecordError> {
        let _locked = self.lock()?;
        let path = self.place.path();
        // Made if it is missing, with the mode that the umask leaves.
        let opened = self.place.open(OFlags::RDONLY | OFlags::CREATE, READABLE)?;
        let mut there = opened.ok_or_else(|| RecordError::io("open", path)(Errno::NOENT))?;
        let mut sum = self.read(&mut there)?;
        sum.add(metrics);
        let stat = rustix::fs::fstat(&there).map_err(RecordError::io("examine", path))?;
        let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o666);
        self.place.replace(sum.to_text().as_bytes(), mode)?;
        self.place.sweep_temporaries(ABANDONED);
        Ok(())
    }

    /// Nobody else adds while it is held.
    fn lock(&self) -> Result<File, RecordError> {
        let end = Instant::now() + MAX_LOCK_WAIT;
        let (mut until, mut seen) = (Instant::now() + LOCK_TIMEOUT, self.version()?);
        let mut waiting = self.queue_up()?;
        loop {
            match waiting.recv_timeout(BETWEEN_LOOKS) {
                // Somebody may have removed it meanwhile, and others lock the next one.
                Ok(Ok(file)) if self.lock.holds(&file)? => return Ok(file),
                Ok(Ok(_)) => waiting = self.queue_up()?,
                Ok(Err(errno)) => return Err(RecordError::io("lock", self.lock.path())(errno)),
                Err(_) => {}
            }
            let now = self.version()?;
            if now != seen {
                (until, seen) = (Instant::now() + LOCK_TIMEOUT, now);
            }
            if Instant::now() > until.min(end) {
                return Err(RecordError::MetricsLocked {
                    path: self.place.path().to_owned(),
                    lock: self.lock.path().to_owned(),
                });
            }
        }
    }

    /// Another one each time that somebody added to the file; inodes are soon used again.
    fn version(&self) -> Result<impl PartialEq + use<>, RecordError> {
        Ok(self.place.stat()?.map(|it| (it.st_ino, it.st_mtime, it.st_mtime_nsec)))
    }

    /// The kernel serves who waits in a call in the order they came, and has no such call with a time limit. A
    /// thread that is no longer waited for lets go of the lock when it gets it.
    fn queue_up(&self) -> Result<Receiver<Result<File, Errno>>, RecordError> {
        let file = self.open_lock()?;
        let (done, waiting) = channel();
        let get = move || {
            let locked = loop {
                match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                    Err(Errno::INTR) => {}
                    locked => break locked,
                }
            };
            let _ = done.send(locked.map(|()| file));
        };
        std::thread::Builder::new()
            .spawn(get)
            .map_err(RecordError::io("wait for", self.lock.path()))?;
        Ok(waiting)
    }

    fn open_lock(&self) -> Result<File, RecordError> {
        let opened = self.lock.open(OFlags::RDWR | OFlags::CREATE, OURS_ALONE)?;
        opened.ok_or_else(|| RecordError::io("open", self.lock.path())(Errno::NOENT))
    }

    fn read(&self, file: &mut File) -> Result<Metrics, RecordError> {
        let mut text = String::new();
        let io = RecordError::io("read", self.place.path());
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(io)?;
        if text.is_empty() {
            return Ok(Metrics::default());
        }
        Metrics::from_text(&text).map_err(|source| RecordError::NotMetrics {
            path: self.place.path().to_owned(),
            source,
        })
    }
}
