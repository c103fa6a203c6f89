//! How long to wait and how often to try: both depend on who runs the tests, not on the test.
//! An emulated machine is slower by an order of magnitude; a long run tries races a million times.

use std::time::Duration;

/// A factor on every deadline, for slow machines.
pub(crate) const PATIENCE_VARIABLE: &str = "PALISADE_TEST_PATIENCE";
/// Set for a long run.
const LONG: &str = "PALISADE_LONG_RACES";
/// How often a race is tried in a long run.
const LONG_TRIES: u32 = 1_000_000;
/// What a long run adds to a deadline.
const LONG_FACTOR: u32 = 40;

/// A deadline, longer where this machine is known to be slow.
#[must_use]
pub fn patiently(deadline: Duration) -> Duration {
    let factor =
        std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let long = if is_long_run() { LONG_FACTOR } else { 1 };
    deadline.saturating_mul(factor).saturating_mul(long)
}

/// How often to try a race: as often as said, and a million times in a long run.
#[must_use]
pub fn tries(short: u32) -> u32 {
    if is_long_run() { LONG_TRIES } else { short }
}

fn is_long_run() -> bool {
    std::env::var_os(LONG).is_some()
}
