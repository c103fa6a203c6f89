//! Adds one run's metrics to a file that a scraper reads, such as node_exporter's textfile collector.
//!
//! The file is replaced atomically, so that no reader sees a part of it, and under a lock, so that runs which end at
//! the same time lose no count. Must never replace a file that is not ours.

use super::Metrics;
use crate::error::{RecordError, Result};
use crate::place::OutputFile;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Our file has about ten kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The lock is normally held for an instant. A process that holds it longer must not keep a run from ending: at this
/// point no signal is handled any more.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum if others take the lock in turn, and add to the file.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// A live writer renames its file long before this.
const ABANDONED: Duration = Duration::from_secs(60);
/// The file contains no secrets, and a scraper usually runs as another user.
const READABLE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// A process that can open a file can also lock it (flock(2)), so the scraper must not be able to open this one.
const OURS_ALONE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An output file for metrics, checked before the command starts.
#[derive(Debug)]
pub struct MetricsFile {
    place: OutputFile,
    /// Next to it, and never removed: otherwise two processes could hold a lock at the same time.
    lock: OutputFile,
}

impl MetricsFile {
    /// Fails now if nothing could be added later.
    pub fn prepare(path: &Path) -> Result<MetricsFile> {
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

    /// Adds these to the present content of the file.
    pub fn add(&self, metrics: &Metrics) -> Result<()> {
        let _locked = self.lock()?;
        let path = self.place.path();
        // Creates the file if it is missing, with the mode that the umask leaves.
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

    /// While it is held, no other process adds to the file.
    fn lock(&self) -> Result<File> {
        let end = Instant::now() + MAX_LOCK_WAIT;
        let (mut until, mut seen) = (Instant::now() + LOCK_TIMEOUT, self.version()?);
        let mut waiting = self.queue_up()?;
        loop {
            match waiting.recv_timeout(BETWEEN_LOOKS) {
                // It may have been removed meanwhile, so that others lock a new file.
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

    /// Changes each time a process adds to the file. The inode alone is not enough, since numbers are reused.
    fn version(&self) -> Result<impl PartialEq + use<>> {
        Ok(self.place.stat()?.map(|it| (it.st_ino, it.st_mtime, it.st_mtime_nsec)))
    }

    /// flock(2) serves waiting callers in order but has no time limit, so a thread waits. If the caller has given up,
    /// the thread releases the lock as soon as it gets it.
    fn queue_up(&self) -> Result<Receiver<Result<File, Errno>>> {
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

    fn open_lock(&self) -> Result<File> {
        let opened = self.lock.open(OFlags::RDWR | OFlags::CREATE, OURS_ALONE)?;
        opened.ok_or_else(|| RecordError::io("open", self.lock.path())(Errno::NOENT))
    }

    fn read(&self, file: &mut File) -> Result<Metrics> {
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
