//! The gate's keeper, and what the gate does by itself.

use super::EventSource;
use crate::error::Result;
use crate::gate::Gate;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use rustix::event::PollFlags;
use std::time::Instant;

pub(super) struct Keeper;

impl EventSource for Keeper {
    /// Any source may have closed a question. Hosts have their turn before files: they are few at once, and the client of a
    /// connection gives up after a time, which a call does not.
    fn prepare(&self, supervisor: &mut Supervisor<'_>) -> Result<()> {
        supervisor.readmit_hosts()?;
        let Some(gate) = &mut supervisor.gate else { return Ok(()) };
        let (asking, unlogged) = (&mut supervisor.asking, &mut supervisor.unlogged);
        // Each time at least one call is taken off a line.
        while gate.readmit(asking, supervisor.display.terminal.as_ref()) {
            gate.act(&supervisor.running, asking, &mut |kind| unlogged.push(kind))?;
        }
        Ok(())
    }

    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        let Some(gate) = &supervisor.gate else { return };
        let room = if gate.wants_room() { PollFlags::OUT } else { PollFlags::empty() };
        if let Some(keeper) = gate.keeper() {
            set.add(0, keeper, PollFlags::IN | room);
        }
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.gate.as_ref().and_then(Gate::next_deadline)
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        let Some(gate) = &mut supervisor.gate else { return Ok(()) };
        let (asking, unlogged) = (&mut supervisor.asking, &mut supervisor.unlogged);
        if !ready.is_empty() {
            gate.hear_keeper(asking, supervisor.display.terminal.as_ref());
        }
        gate.act(&supervisor.running, asking, &mut |kind| unlogged.push(kind))
    }
}
