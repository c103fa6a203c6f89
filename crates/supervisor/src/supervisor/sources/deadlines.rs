//! The time limit of a run, and the grace time of one that was asked to end.

use super::EventSource;
use crate::control::interface::{Grace, Request};
use crate::deadlines::Due;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::supervisor::{Killed, Supervisor};
use rustix::process::Signal;
use std::time::Instant;

pub(super) struct Deadlines;

impl EventSource for Deadlines {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.clock.deadlines.next()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        match supervisor.clock.deadlines.due(Instant::now()) {
            Some(Due::Ask(time)) if supervisor.is_started() => {
                supervisor.killed.get_or_insert(Killed::Timeout);
                supervisor.clock.limits.time_is_over();
                let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let grace = Grace::Milliseconds(time);
                supervisor.request(Request::End { signal: Signal::TERM.as_raw(), grace })
            }
            Some(Due::Ask(_)) => supervisor.kill(Killed::Timeout),
            Some(Due::Kill) => supervisor.grace_is_over(),
            None => Ok(()),
        }
    }
}
