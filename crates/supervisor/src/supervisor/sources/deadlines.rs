//! The time limit of a run, and the grace time of one that was asked to end.

use super::EventSource;
use crate::control::interface::{Grace, Request};
use crate::deadlines::Due;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::supervisor::{Killed, Phase, Supervisor};
use rustix::process::Signal;
use std::time::Instant;

pub(super) struct Deadlines;

impl EventSource for Deadlines {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        let expiry = supervisor.control.expiry.next().filter(|_| supervisor.is_started());
        [supervisor.clock.deadlines.next(), expiry].into_iter().flatten().min()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        supervisor.end_if_expired()?;
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

impl Supervisor<'_> {
    /// A session ends when its time is over, as it does when somebody stops it. One that somebody has stopped already does not
    /// expire while its commands end: what expires may lose its changes.
    fn end_if_expired(&mut self) -> Result<()> {
        let due = self.control.expiry.due(Instant::now()).filter(|_| self.is_started());
        let Some(expired) = due else { return Ok(()) };
        self.control.expiry.forget();
        if self.phase >= Phase::Ending {
            return Ok(());
        }
        self.killed.get_or_insert(Killed::Expired(expired));
        self.request(Request::End { signal: Signal::TERM.as_raw(), grace: Grace::OfSandbox })
    }
}
