//! Limits that the kernel tells of, or that are looked at from time to time.

use super::EventSource;
use crate::control::interface::Event;
use crate::error::Result;
use crate::limits;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Clock, Killed, Supervisor};
use palisade_plan::limit::LimitKind;
use palisade_record::EventKind;
use palisade_record::indicators::PROCESS_LIMIT;
use std::time::Instant;

pub(super) struct Limits;

impl EventSource for Limits {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        limits::Limits::register(&supervisor.running, set);
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.clock.limits.next_deadline()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        let Clock { limits, .. } = &mut supervisor.clock;
        let has_commands = !supervisor.control.commands.is_empty();
        let over = limits.look(&supervisor.running, ready, has_commands)?;
        // Before it is known to run, a kill would look like a launch that failed.
        if let Some(over) = over.filter(|_| supervisor.is_started()) {
            supervisor.clock.limits.exceeded(over);
            supervisor.kill(Killed::Limit(over.what))?;
        }
        tell_reached(supervisor);
        Ok(())
    }
}

/// The limits that were reached since the last time.
pub(in crate::supervisor) fn tell_reached(supervisor: &mut Supervisor<'_>) {
    for event in supervisor.clock.limits.take_untold() {
        if let Event::LimitReached { limit } = &event
            && [LimitKind::Processes, LimitKind::Threads].iter().any(|it| it.name() == limit)
        {
            let attempt = PROCESS_LIMIT.attempt(limit, None);
            supervisor.unlogged.push(EventKind::EscapeAttempt(attempt));
        }
        supervisor.control.outbox.emit(event);
    }
}
