//! Measures what a running sandbox uses, from outside: by reading `/proc` as the same user or as root, where no control
//! group counts (RES-3), and by walking what it may write to (FS-6).
//!
//! Everything here is a sample: what happened between two looks is known only as far as parents collected it. Must
//! never wait for the processes it measures, nor do unbounded work because they are many.

#![forbid(unsafe_code)]

mod collected;
mod decide;
mod disk_use;
mod disk_watch;
mod effort;
mod error;
mod exact;
mod ledger;
mod mapped;
mod memory;
mod process;
mod procfs;
mod space;
mod tree;
mod walk;
mod watchdog;

#[cfg(test)]
mod stage;

pub use collected::Collected;
pub use decide::{Bounds, Exceeded, Observation, UsageVerdict, decide};
pub use disk_use::{DiskUse, FileId, HeldFiles};
pub use disk_watch::{DiskWatch, Unseen};
pub use effort::Effort;
pub use error::UsageError;
pub use exact::Exact;
pub use ledger::Io;
pub use tree::{Peaks, Sample, Tree};
pub use watchdog::{Looked, Watchdog};
