//! The clock of a run: its time limit, and how long the command may take to end once it was asked to.
//! It only says what is due; nothing is ended here.

use palisade_plan::model::Plan;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// When the time limit is over, while somebody is to be asked to end then.
    limit: Option<Instant>,
    /// The same, for as long as the run has anything to do.
    whole: Option<Instant>,
    /// How long that is.
    time: Option<Duration>,
    /// When the grace time is over.
    grace: Option<Instant>,
    after_signal: Duration,
    after_timeout: Duration,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The time limit is over: commands are to end in this time.
    Ask(Duration),
    /// It was asked, and did not.
    Kill,
}

impl Deadlines {
    pub(crate) fn of(plan: &Plan, now: Instant) -> Self {
        let time = plan.supervision.timeout_ms.map(Duration::from_millis);
        let limit = time.map(|time| now + time);
        Self {
            limit,
            whole: limit,
            time,
            grace: None,
            after_signal: Duration::from_millis(plan.supervision.grace.after_signal_ms),
            after_timeout: Duration::from_millis(plan.supervision.grace.after_timeout_ms),
        }
    }

    /// The time limit has not begun.
    pub(crate) fn pause(&mut self) {
        (self.limit, self.whole) = (None, None);
    }

    /// The time limit begins now.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.limit = self.time.map(|time| now + time);
        self.whole = self.limit;
    }

    /// The time that a command has to end after a signal.
    pub(crate) fn after_signal(&self) -> Duration {
        self.after_signal
    }

    /// It was asked to end in this time; asking again gives no more.
    pub(crate) fn asked(&mut self, now: Instant, time: Duration) {
        let end = now + time;
        self.grace = Some(self.grace.map_or(end, |grace| grace.min(end)));
    }

    /// Says each thing once.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        let over = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if over(self.grace) {
            self.forget();
            return Some(Due::Kill);
        }
        if over(self.limit) {
            self.limit = None;
            return Some(Due::Ask(self.after_timeout));
        }
        None
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.limit, self.grace].into_iter().flatten().min()
    }

    /// When everything is to be over, what is still to be shown of a command that has ended included.
    pub(crate) fn whole(&self) -> Option<Instant> {
        self.whole
    }

    /// It is being killed; if it is still there after this time, once more.
    pub(crate) fn insist(&mut self, end: Instant) {
        self.limit = None;
        self.grace = Some(end);
    }

    /// The command ended.
    pub(crate) fn forget(&mut self) {
        self.limit = None;
        self.grace = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Deadlines, Due, Duration, Instant};

    fn deadlines(limit: Option<Instant>) -> Deadlines {
        let (after_signal, after_timeout) = (Duration::from_secs(10), Duration::from_secs(2));
        let time = None;
        Deadlines { limit, whole: limit, time, grace: None, after_signal, after_timeout }
    }

    /// Proves: PROC-3 grace, RES-2 wall-time
    #[test]
    fn at_its_limit_a_command_is_asked_first_and_killed_when_the_grace_time_is_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = deadlines(Some(at(5)));
        assert_eq!(clock.due(at(4)), None);
        let time = Duration::from_secs(2);
        assert_eq!(clock.due(at(5)), Some(Due::Ask(time)));
        clock.asked(at(5), time);
        assert_eq!((clock.due(at(6)), clock.next()), (None, Some(at(7))));
        assert_eq!(clock.due(at(7)), Some(Due::Kill));
        assert_eq!((clock.due(at(99)), clock.next()), (None, None));
        assert_eq!(clock.whole(), Some(at(5)), "what is still shown has no time of its own");
    }

    /// Proves: PROC-3 grace
    #[test]
    fn asking_again_gives_no_more_time_and_the_limit_may_give_less() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = deadlines(Some(at(4)));
        let (long, short) = (clock.after_signal(), Duration::from_secs(2));
        clock.asked(at(1), long);
        clock.asked(at(3), long);
        assert_eq!(clock.due(at(4)), Some(Due::Ask(short)));
        clock.asked(at(4), short);
        assert_eq!(clock.due(at(6)), Some(Due::Kill));
        let mut clock = deadlines(None);
        clock.asked(at(1), long);
        clock.asked(at(3), long);
        assert_eq!(clock.next(), Some(at(11)));
    }
}
