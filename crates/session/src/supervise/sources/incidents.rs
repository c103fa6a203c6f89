//! What is counted, and comes into the log as a sum when it is due.

use super::super::Supervisor;
use super::EventSource;
use crate::error::SessionError;
use crate::poll_set::Ready;
use std::time::Instant;

pub(super) struct Sums;

impl EventSource for Sums {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.incidents.next_due()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<(), SessionError> {
        supervisor.unlogged.extend(supervisor.incidents.take_due(Instant::now()));
        Ok(())
    }
}
