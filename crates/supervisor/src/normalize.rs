//! Makes a run take a multiple of some step of time, so that how long it took tells less (RES-5).
//!
//! What it is worth is said in SECURITY.md. It must never keep somebody waiting who insists on an end.

use crate::error::Result;
use crate::signals::Signals;
use palisade_record::ReportedUsage;
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// The next multiple of `step`, and at least one: nothing is told by taking no time at all.
pub fn rounded_up(duration: Duration, step: Duration) -> Duration {
    let (taken, step) = (duration.as_nanos(), step.as_nanos());
    if step == 0 {
        return duration;
    }
    let nanos = taken.div_ceil(step).max(1).saturating_mul(step);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// CPU time tells of a run's duration too.
pub fn round_cpu_time(usage: &mut ReportedUsage, step: Duration) {
    for time in [&mut usage.cpu_user_us, &mut usage.cpu_system_us] {
        let rounded = rounded_up(Duration::from_micros(*time), step);
        *time = u64::try_from(rounded.as_micros()).unwrap_or(u64::MAX);
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Fully,
    /// Somebody insisted on an end.
    CutShort,
}

/// Waits until what began at `start` has taken as long as it is said to have. A first Ctrl-C is for the run,
/// which has ended by now; a second one ends the wait, as does whatever else asks for an end, or asked for it
/// while the run was still ending.
pub fn wait_out(start: Instant, whole: Duration, signals: &mut Signals) -> Result<Waited> {
    loop {
        let left = whole.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(Waited::Fully);
        }
        if signals.is_end_asked() {
            return Ok(Waited::CutShort);
        }
        let mut set = [PollFd::from_borrowed_fd(signals.waiting(), PollFlags::IN)];
        palisade_sys::proc::poll(&mut set, Some(left))?;
        while signals.next()?.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, ReportedUsage, Waited, round_cpu_time, rounded_up, wait_out};
    use crate::signals::Signals;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Proves: RES-5 time
    #[test]
    fn a_duration_is_rounded_up_to_the_step() {
        let rounded = [0, 1, 99, 100, 101, 1000].map(|ms| rounded_up(MS(ms), MS(100)));
        assert_eq!(rounded, [100, 100, 100, 100, 200, 1000].map(MS));
        assert_eq!(rounded_up(MS(7), Duration::ZERO), MS(7));
    }

    /// Proves: RES-5 time
    #[test]
    fn cpu_time_is_rounded_as_well() {
        let mut usage =
            ReportedUsage { cpu_user_us: 1, cpu_system_us: 250_000, ..ReportedUsage::default() };
        round_cpu_time(&mut usage, MS(100));
        assert_eq!((usage.cpu_user_us, usage.cpu_system_us), (100_000, 300_000));
    }

    proptest! {
        /// Proves: RES-5 time
        #[test]
        fn it_is_a_multiple_and_never_less(nanos in 0..u64::MAX / 4, step in 1..u64::MAX / 4) {
            let (taken, step) = (Duration::from_nanos(nanos), Duration::from_nanos(step));
            let rounded = rounded_up(taken, step);
            prop_assert_eq!(rounded.as_nanos() % step.as_nanos(), 0);
            prop_assert!(rounded >= taken && (rounded - taken < step || rounded == step));
        }
    }

    /// Proves: RES-5 time
    #[test]
    fn the_wait_lasts_as_long_as_it_should() {
        let mut signals = Signals::take().unwrap();
        let start = Instant::now();
        assert_eq!(wait_out(start, MS(150), &mut signals).unwrap(), Waited::Fully);
        assert!(start.elapsed() >= MS(150));
        // What is over is not waited for.
        assert_eq!(wait_out(start, MS(100), &mut signals).unwrap(), Waited::Fully);
    }
}
