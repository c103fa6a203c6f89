//! What is counted, and comes into the log as a sum when it is due.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::supervisor::Supervisor;
use std::time::Instant;

pub(super) struct Sums;

impl EventSource for Sums {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.incidents.next_due()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        supervisor.unlogged.extend(supervisor.incidents.take_due(Instant::now()));
        Ok(())
    }
}
