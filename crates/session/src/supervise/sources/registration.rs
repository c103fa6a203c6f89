//! The run's entry in the list of running sandboxes.

use super::super::Supervisor;
use super::EventSource;
use crate::error::SessionError;
use crate::poll_set::Ready;
use crate::runs::Herald;
use std::time::Instant;

pub(super) struct Registration;

impl EventSource for Registration {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.herald.as_ref().and_then(Herald::next_deadline)
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<(), SessionError> {
        supervisor.herald.as_mut().map(Herald::act);
        Ok(())
    }
}
