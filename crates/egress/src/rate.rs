//! A rate limit: a token bucket.

use std::time::Instant;

/// The burst allowed after a quiet time, in seconds of the rate: installers resolve all their hosts at once,
/// with two queries each.
const BURST: u32 = 2;

#[derive(Debug)]
pub(crate) struct Bucket {
    a_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(crate) fn new(a_second: u32, now: Instant) -> Self {
        Self::with_burst(a_second, a_second.saturating_mul(BURST), now)
    }

    /// With another burst size.
    pub(crate) fn with_burst(a_second: u32, burst: u32, now: Instant) -> Self {
        let (a_second, burst) = (f64::from(a_second), f64::from(burst));
        Self { a_second, burst, tokens: burst, filled: now }
    }

    /// Whether one more is within the rate.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + passed * self.a_second).min(self.burst);
        let within = self.tokens >= 1.0;
        if within {
            self.tokens -= 1.0;
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn taken(bucket: &mut Bucket, tries: u32, now: Instant) -> usize {
        (0..tries).filter(|_| bucket.take(now)).count()
    }

    /// Proves: NET-6 rate
    #[test]
    fn a_burst_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, start);
        assert_eq!(taken(&mut bucket, 1000, start), 20);
        assert_eq!(taken(&mut bucket, 1000, start + Duration::from_secs(1)), 10);
        assert_eq!(taken(&mut bucket, 1000, start + Duration::from_secs(100)), 20);
    }

    #[test]
    fn a_clock_that_stands_still_gives_nothing() {
        let start = Instant::now();
        let mut bucket = Bucket::new(1, start + Duration::from_secs(9));
        assert_eq!(taken(&mut bucket, 9, start), 2);
        assert_eq!(taken(&mut bucket, 9, start + Duration::from_secs(9)), 0);
    }
}
