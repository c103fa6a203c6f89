//! Adds one run's numbers to a file that a scraper reads, such as node_exporter's textfile collector.
//!
//! The file is replaced whole, so that nobody sees half of it, and under a lock on the file itself, so
//! that runs which end at the same time lose no count. What is not ours is never replaced.

use super::Metrics;
use crate::error::RecordError;
use crate::place::Place;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Ours has some ten kilobytes.
const LARGEST: u64 = 1 << 20;
/// Everybody needs the lock for a moment only. Who keeps it for longer is not one of us, and must not
/// keep a run from ending.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);
/// There is nothing secret in it, and a scraper is mostly somebody else.
const READABLE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// A place for metrics, looked at before the command starts.
#[derive(Debug)]
pub struct MetricsFile(Place);

impl MetricsFile {
    /// Fails now if nothing could be added there later.
    pub fn prepare(path: &Path) -> Result<MetricsFile, RecordError> {
        let file = MetricsFile(Place::prepare(path)?);
        file.0.can_be_replaced()?;
        if let Some(mut there) = file.0.open(OFlags::RDONLY, Mode::empty())? {
            file.read(&mut there)?;
        }
        Ok(file)
    }

    /// Adds these to what the file says already.
    pub fn add(&self, metrics: &Metrics) -> Result<(), RecordError> {
        let mut locked = self.lock()?;
        let mut sum = self.read(&mut locked)?;
        sum.add(metrics);
        // Whoever waits for the lock finds that the file is another one now.
        let stat = rustix::fs::fstat(&locked).map_err(RecordError::io("examine", self.0.path()))?;
        let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o666);
        self.0.replace(sum.to_text().as_bytes(), mode)
    }

    /// The file that is there, or an empty one made for this, and nobody else at it.
    fn lock(&self) -> Result<File, RecordError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let opened = self.0.open(OFlags::RDONLY | OFlags::CREATE, READABLE)?;
            if let Some(file) = opened {
                match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    // Who had the lock before may have replaced the file meanwhile.
                    Ok(()) if self.0.holds(&file)? => return Ok(file),
                    Ok(()) => continue,
                    Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                    Err(errno) => return Err(RecordError::io("lock", self.0.path())(errno)),
                }
            }
            if Instant::now() > until {
                return Err(RecordError::MetricsLocked(self.0.path().to_owned()));
            }
            sleep(BETWEEN_TRIES);
        }
    }

    fn read(&self, file: &mut File) -> Result<Metrics, RecordError> {
        let mut text = String::new();
        let io = RecordError::io("read", self.0.path());
        file.take(LARGEST).read_to_string(&mut text).map_err(io)?;
        if text.is_empty() {
            return Ok(Metrics::default());
        }
        Metrics::from_text(&text)
            .map_err(|source| RecordError::NotMetrics { path: self.0.path().to_owned(), source })
    }
}
