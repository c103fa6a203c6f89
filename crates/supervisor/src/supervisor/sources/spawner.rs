//! The spawner: commands that started, failed and ended.

use super::EventSource;
use crate::error::SupervisorError;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use palisade_launch::Spawner as SpawnerProcess;
use rustix::event::PollFlags;

/// The clock and signals must not wait for the end of a flood.
const EVENTS_A_TURN: usize = 64;

pub(super) struct Spawner;

impl EventSource for Spawner {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        if let Some(control) = supervisor.running.spawner().and_then(SpawnerProcess::control) {
            set.add(0, control, PollFlags::IN);
        }
    }

    fn handle(
        &self,
        supervisor: &mut Supervisor<'_>,
        ready: &Ready,
    ) -> Result<(), SupervisorError> {
        if ready.is_empty() {
            return Ok(());
        }
        for _ in 0..EVENTS_A_TURN {
            let Some(spawner) = supervisor.running.spawner() else { break };
            let Some(event) = spawner.receive()? else { break };
            let Some(commands) = &mut supervisor.commands else { break };
            let outcome = commands.hear_spawner(event);
            supervisor.follow(outcome)?;
        }
        Ok(())
    }
}
