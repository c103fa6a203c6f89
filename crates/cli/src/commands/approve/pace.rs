//! How a key came: whether it can have been meant for what is on the screen.
//!
//! The list may appear over a shell in which somebody is typing. What was typed there must not answer anything, so
//! an answer stands alone, after a time in which the screen could be read and nothing was typed. The panel in a run's own
//! terminal has the same rule.

use std::time::{Duration, Instant};

/// A person who types is faster, and reading takes longer.
pub(crate) const PAUSE: Duration = Duration::from_millis(600);

/// Keys that were read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Alone,
    WithOthers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tempo {
    /// Alone, after a pause, on a screen that could be read: it may be an answer.
    Deliberate,
    /// Alone, on a screen that could be read, soon after another key: it may only finish what that one began.
    Following,
    /// Before the screen could be read, or with other keys at once.
    TooFast,
}

#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// None while the terminal shows something else.
    readable_since: Option<Instant>,
    last_key: Option<Instant>,
}

impl Pace {
    /// What is on the screen is not what it should show.
    pub(crate) fn changed(&mut self) {
        self.readable_since = None;
    }

    pub(crate) fn drawn(&mut self, now: Instant) {
        self.readable_since.get_or_insert(now);
    }

    /// Every key begins the pause anew, whatever it means.
    pub(crate) fn key(&mut self, arrival: Arrival, now: Instant) -> Tempo {
        let has_passed = |since: &Instant| now.saturating_duration_since(*since) >= PAUSE;
        let is_quiet = self.last_key.as_ref().is_none_or(has_passed);
        self.last_key = Some(now);
        match (arrival, self.readable_since.as_ref().is_some_and(has_passed)) {
            (Arrival::Alone, true) if is_quiet => Tempo::Deliberate,
            (Arrival::Alone, true) => Tempo::Following,
            _ => Tempo::TooFast,
        }
    }
}
