//! The run's entry in the list of running sandboxes.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::Ready;
use crate::supervisor::Supervisor;
use std::time::Instant;

pub(super) struct Registration;

impl EventSource for Registration {
    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        let registration = supervisor.registration.as_ref().filter(|_| !supervisor.is_prepared());
        registration.and_then(|entry| entry.next_deadline())
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, _: &Ready) -> Result<()> {
        // A sandbox that nobody has claimed is none that others find.
        if !supervisor.is_prepared()
            && let Some(entry) = &mut supervisor.registration
        {
            entry.act();
        }
        Ok(())
    }
}
