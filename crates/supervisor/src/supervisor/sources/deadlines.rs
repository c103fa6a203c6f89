//! The time limit of a run, and the grace time of one that was asked to end.

use super::EventSource;
use crate::deadlines::Due;
use crate::error::SupervisorError;
use crate::poll_set::Ready;
use crate::supervisor::{Killed, Supervisor};
use rustix::process::Signal;
use std::time::Instant;

pub(super) struct Deadlines;

impl EventSource for Deadlines {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.deadlines.next()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<(), SupervisorError> {
        match supervisor.deadlines.due(Instant::now()) {
            Some(Due::Ask) if supervisor.started => {
                supervisor.killed.get_or_insert(Killed::Timeout);
                supervisor.limits.time_is_over();
                supervisor.running.signal(Signal::TERM.as_raw())?;
                // A stopped process hears nothing else.
                Ok(supervisor.running.signal(Signal::CONT.as_raw())?)
            }
            Some(Due::Ask) => supervisor.kill(Killed::Timeout),
            Some(Due::Kill) => supervisor.kill(Killed::Asked),
            None => Ok(()),
        }
    }
}
