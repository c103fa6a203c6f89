//! The gate's keeper, and what the gate does by itself.

use super::EventSource;
use crate::error::SupervisorError;
use crate::gate::Gate;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use rustix::event::PollFlags;
use std::time::Instant;

pub(super) struct Keeper;

impl EventSource for Keeper {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        if let Some(keeper) = supervisor.gate.as_ref().and_then(Gate::keeper) {
            set.add(0, keeper, PollFlags::IN);
        }
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.gate.as_ref().and_then(Gate::next_deadline)
    }

    fn handle(
        &self,
        supervisor: &mut Supervisor<'_>,
        ready: &Ready,
    ) -> Result<(), SupervisorError> {
        let Some(gate) = &mut supervisor.gate else { return Ok(()) };
        let (asking, unlogged) = (&mut supervisor.asking, &mut supervisor.unlogged);
        if !ready.is_empty() {
            gate.hear_keeper(asking, supervisor.display.terminal.as_ref());
        }
        gate.act(&supervisor.running, asking, &mut |kind| unlogged.push(kind))
    }
}
