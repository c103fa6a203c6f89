//! Which start of the machine this is. What was written and not synced is whole as long as the machine runs, and nobody
//! knows what is left of it after the next start.

use crate::error::{Result, SessionError};
use std::path::Path;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Another one after every start.
pub(crate) fn this_start() -> Result<String> {
    let id = std::fs::read_to_string(BOOT_ID);
    Ok(id.map_err(|source| SessionError::io("read", Path::new(BOOT_ID), source))?.trim().to_owned())
}

/// Whether the machine has been running since. If that cannot be told, it has not.
pub(crate) fn is_this(start: &str) -> bool {
    this_start().is_ok_and(|this| this == start)
}
