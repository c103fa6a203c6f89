//! The spawner: commands that started, failed and ended.

use super::EventSource;
use crate::control::interface::{Event, Request};
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Control, Supervisor};
use palisade_launch::{CommandId, Spawner as SpawnerProcess, SpawnerEvent};
use std::time::Instant;

/// The clock and signals must not wait for the end of a flood.
const EVENTS_A_TURN: usize = 64;

pub(super) struct Spawner;

impl EventSource for Spawner {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        let watched = supervisor.running.spawner().and_then(SpawnerProcess::watched);
        if let Some((socket, interest)) = watched {
            set.add(0, socket, interest);
        }
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.running.spawner().and_then(SpawnerProcess::next_retry)
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        if let Some(spawner) = supervisor.running.spawner() {
            spawner.flush()?;
        }
        if ready.is_empty() {
            return Ok(());
        }
        for _ in 0..EVENTS_A_TURN {
            let Some(spawner) = supervisor.running.spawner() else { break };
            let Some(event) = spawner.receive()? else { break };
            supervisor.hear_spawner(event)?;
        }
        Ok(())
    }
}

impl Supervisor<'_> {
    fn hear_spawner(&mut self, event: SpawnerEvent) -> Result<()> {
        let Control { commands, outbox, held, .. } = &mut self.control;
        match event {
            SpawnerEvent::Ready(checked) => {
                self.checked = checked;
                return self.begin();
            }
            SpawnerEvent::Failed(error) => return Err(self.launch_failed(error)?),
            SpawnerEvent::Started { command, pid } => {
                if commands.started(command, pid) {
                    outbox.emit(Event::CommandStarted { command, pid: Some(pid) });
                    held.started(command, outbox);
                    self.record_exec(command, pid);
                    for signal in self.control.project_workers.take_signals(command) {
                        self.request(Request::Signal { command, signal })?;
                    }
                }
            }
            SpawnerEvent::NotStarted { command, error } => {
                self.command_failed(command, error.exit_code(), error.to_string());
            }
            SpawnerEvent::Exited { command, cause } => {
                self.record_exec_end(command, Some(cause), None);
                // That of a process which could not become its command was told.
                if self.control.commands.remove(command) {
                    self.tell_end(command, Event::CommandExited { command, cause });
                }
            }
        }
        self.leave_if_idle()
    }

    /// Who is attached to the command is told after the last of its output.
    pub(super) fn tell_end(&mut self, command: CommandId, event: Event) {
        // Its recording ends with it.
        self.mark_events();
        let Control { commands, outbox, held, expiry, .. } = &mut self.control;
        let watchers = held.watchers(command);
        held.ended(command, event.clone());
        outbox.emit_except(event, &watchers);
        if commands.is_empty() {
            expiry.became_idle(Instant::now());
        }
    }
}
