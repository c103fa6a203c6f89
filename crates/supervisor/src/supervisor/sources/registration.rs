//! The run's entry in the list of running sandboxes.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::supervisor::Supervisor;
use std::time::Instant;

pub(super) struct Registration;

impl EventSource for Registration {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.registration.as_ref().and_then(|entry| entry.next_deadline())
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        if let Some(entry) = &mut supervisor.registration {
            entry.act();
        }
        Ok(())
    }
}
