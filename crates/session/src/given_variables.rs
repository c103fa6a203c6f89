//! The values for `--env NAME` where another program of ours chose them: kept apart, under names that nothing else reads.
//!
//! A program that forwards variables which somebody else chose must not set them in our own environment, where `SANDBOX_RW` or
//! `HOME` would be an option of ours.

use std::ffi::{OsStr, OsString};

/// `PALISADE_ENV_NAME` has the value for `--env NAME`.
const PREFIX: &str = "PALISADE_ENV_";

/// The variable of our own program that carries the value.
pub fn carrier(name: &OsStr) -> OsString {
    let mut carrier = OsString::from(PREFIX);
    carrier.push(name);
    carrier
}

/// The value for `--env NAME` in an environment: the one that was kept apart, or else the caller's own.
pub fn value<T>(name: &str, look_up: impl Fn(&OsStr) -> Option<T>) -> Option<T> {
    let name = OsStr::new(name);
    look_up(&carrier(name)).or_else(|| look_up(name))
}
