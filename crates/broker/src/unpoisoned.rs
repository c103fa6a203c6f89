//! Locks between the broker's threads. A thread that panics ends the broker (`serve/workers.rs`), so nobody ever sees what it
//! left half done.

use std::sync::{LockResult, PoisonError};

pub(crate) trait Unpoisoned<Guard> {
    /// What the lock protects, also after a panic.
    fn held(self) -> Guard;
}

impl<Guard> Unpoisoned<Guard> for LockResult<Guard> {
    fn held(self) -> Guard {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
