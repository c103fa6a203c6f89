//! The cost of a look: CPU time of this thread. Must never be wall-clock time: that grows while other processes have
//! the CPU, and a command could use it to lengthen the pause before the next look.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A piece of work in progress.
#[derive(Clone, Copy, Debug)]
pub struct Effort(Duration);

impl Effort {
    /// Begins now.
    pub fn begin() -> Self {
        Self(of_this_thread())
    }

    /// Its cost so far.
    pub fn spent(self) -> Duration {
        of_this_thread().saturating_sub(self.0)
    }
}

fn of_this_thread() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{Duration, Effort};
    use std::time::Instant;

    /// Proves: RES-1 overshoot
    #[test]
    fn waiting_costs_nothing_and_work_does() {
        let waited = Effort::begin();
        std::thread::sleep(Duration::from_millis(200));
        assert!(waited.spent() < Duration::from_millis(100), "{:?}", waited.spent());
        let (worked, clock) = (Effort::begin(), Instant::now());
        while worked.spent() < Duration::from_millis(20) {
            assert!(clock.elapsed() < Duration::from_secs(60));
        }
    }
}
