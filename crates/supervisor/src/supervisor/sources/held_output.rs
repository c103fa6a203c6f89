//! The terminals and pipes of commands whose streams we hold: what they write goes to who is attached.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Control, Supervisor};
use std::time::Instant;

pub(super) struct HeldOutput;

impl EventSource for HeldOutput {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        supervisor.control.held.register(set);
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.control.held.next_deadline()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        let Control { held, outbox, .. } = &mut supervisor.control;
        held.handle(ready, outbox);
        supervisor.display.notes.extend(held.take_notes());
        Ok(())
    }
}
