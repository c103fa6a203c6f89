//! Clock offsets of a time namespace. See time_namespaces(7).
//! Must be written between `unshare(NEWTIME)` and the fork of the first process that enters.

use crate::creds::write_proc;
use crate::error::Result;

/// Sets the offsets of both clocks of the time namespace our next child will enter. `EACCES` if a process is already in
/// it.
pub fn write_timens_offsets(monotonic_secs: i64, boottime_secs: i64) -> Result<()> {
    let text = format!("monotonic {monotonic_secs} 0\nboottime {boottime_secs} 0\n");
    write_proc(None, "timens_offsets", text.as_bytes())
}

#[cfg(test)]
#[path = "timens_tests.rs"]
mod tests;
