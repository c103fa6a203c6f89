//! Processors, for races: who changes and who uses must run at the same time.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins this thread, and what it starts from now on, to the first or second processor it may use.
/// With one processor only there is nothing to choose.
pub fn pin(which: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    if let Some(processor) = processors.nth(which) {
        let mut one = CpuSet::new();
        one.set(processor);
        sched_setaffinity(None, &one)?;
    }
    Ok(())
}
