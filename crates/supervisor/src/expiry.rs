//! How long a session may stay: for a time from its start, and for a time without a command. It only says when that is
//! over; nothing is ended here.

use palisade_plan::model::{Plan, SandboxLifetime};
use std::time::{Duration, Instant};

/// Why a session's time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    TimeToLive,
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    started: Instant,
    /// Of the whole session.
    whole: Option<Duration>,
    end: Option<Instant>,
    idle: Option<Duration>,
    /// None while a command runs.
    idle_since: Option<Instant>,
    /// Not before this, however idle it is: somebody asked for more time.
    extended_to: Option<Instant>,
}

impl Expiry {
    pub(crate) fn of(plan: &Plan, now: Instant) -> Self {
        let supervision = &plan.supervision;
        let time = |milliseconds: Option<u64>| milliseconds.map(Duration::from_millis);
        let whole = time(supervision.time_to_live_ms);
        let mut expiry = Self::new(whole, time(supervision.idle_time_to_live_ms), now);
        // It has its command from the beginning.
        if plan.sandbox.lifetime == SandboxLifetime::OneCommand {
            expiry.command_started();
        }
        expiry
    }

    fn new(whole: Option<Duration>, idle: Option<Duration>, now: Instant) -> Self {
        let end = whole.and_then(|whole| now.checked_add(whole));
        Self { started: now, whole, end, idle, idle_since: Some(now), extended_to: None }
    }

    /// Its time has not begun.
    pub(crate) fn pause(&mut self) {
        (self.end, self.idle_since) = (None, None);
    }

    /// Its time begins now.
    pub(crate) fn begin(&mut self, now: Instant) {
        *self = Self::new(self.whole, self.idle, now);
    }

    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// How long no command has run.
    pub(crate) fn idle_for(&self, now: Instant) -> Option<Duration> {
        self.idle_since.map(|since| now.saturating_duration_since(since))
    }

    pub(crate) fn command_started(&mut self) {
        self.idle_since = None;
    }

    /// The last command has ended.
    pub(crate) fn became_idle(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }

    /// It may stay for this time from now on. False if that is too long to count.
    pub(crate) fn extend(&mut self, now: Instant, time: Duration) -> bool {
        let Some(end) = now.checked_add(time) else { return false };
        self.end = self.end.map(|_| end);
        self.extended_to = Some(end);
        true
    }

    pub(crate) fn expires_at(&self) -> Option<Instant> {
        self.end
    }

    pub(crate) fn idle_expires_at(&self) -> Option<Instant> {
        let end = self.idle_since?.checked_add(self.idle?)?;
        Some(self.extended_to.map_or(end, |extended| extended.max(end)))
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        [self.expires_at(), self.idle_expires_at()].into_iter().flatten().min()
    }

    pub(crate) fn due(&self, now: Instant) -> Option<Expired> {
        let is_over = |end: Option<Instant>| end.is_some_and(|end| end <= now);
        match () {
            () if is_over(self.expires_at()) => Some(Expired::TimeToLive),
            () if is_over(self.idle_expires_at()) => Some(Expired::Idle),
            () => None,
        }
    }

    /// It is ending.
    pub(crate) fn forget(&mut self) {
        self.end = None;
        self.idle = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Expired, Expiry, Instant};

    const fn seconds(count: u64) -> Option<Duration> {
        Some(Duration::from_secs(count))
    }

    /// Proves: LIFE-4 ttl
    #[test]
    fn a_session_is_over_after_its_time_or_when_it_was_idle_for_too_long() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut expiry = Expiry::new(seconds(100), seconds(10), start);
        assert_eq!((expiry.due(at(9)), expiry.due(at(10))), (None, Some(Expired::Idle)));
        expiry.command_started();
        assert_eq!((expiry.due(at(99)), expiry.next()), (None, Some(at(100))));
        expiry.became_idle(at(50));
        expiry.became_idle(at(55));
        assert_eq!(expiry.next(), Some(at(60)));
        expiry.command_started();
        assert_eq!(expiry.due(at(100)), Some(Expired::TimeToLive));
    }

    #[test]
    fn the_time_of_a_sandbox_that_was_prepared_begins_when_it_is_claimed() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut expiry = Expiry::new(seconds(100), seconds(10), start);
        expiry.pause();
        assert_eq!((expiry.due(at(9999)), expiry.next()), (None, None));
        expiry.begin(at(5000));
        assert_eq!((expiry.next(), expiry.expires_at()), (Some(at(5010)), Some(at(5100))));
        assert_eq!(expiry.age(at(5001)), Duration::from_secs(1));
    }

    /// Proves: LIFE-4 ttl
    #[test]
    fn somebody_who_asks_for_more_time_gets_it() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut expiry = Expiry::new(seconds(100), seconds(10), start);
        assert!(expiry.extend(at(5), Duration::from_secs(500)));
        assert_eq!((expiry.due(at(504)), expiry.due(at(505))), (None, Some(Expired::TimeToLive)));
        let mut endless = Expiry::new(None, None, start);
        assert!(endless.extend(at(5), Duration::from_secs(1)));
        assert_eq!(endless.due(at(9999)), None, "it has no end that could move");
        assert!(!endless.extend(at(5), Duration::MAX));
    }
}
