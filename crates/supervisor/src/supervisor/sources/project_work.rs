//! The processes that work on the changes of the project, and commands that wait for one of them.

use super::EventSource;
use crate::control::interface::Event;
use crate::error::{OWN_FAILURE, Result};
use crate::poll_set::{PollSet, Ready};
use crate::project_work::WaitingCommand;
use crate::supervisor::{Phase, Supervisor};
use palisade_launch::CommandId;
use std::time::Instant;

pub(super) struct ProjectWork;

impl EventSource for ProjectWork {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        supervisor.control.project_workers.register(set);
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        let is_running = supervisor.phase == Phase::Running;
        supervisor.control.project_workers.next_deadline().filter(|_| is_running)
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        let workers = &mut supervisor.control.project_workers;
        if supervisor.phase == Phase::Running {
            supervisor.display.notes.extend(workers.write_records_if_due(&supervisor.running));
        }
        if ready.is_empty() {
            return Ok(());
        }
        supervisor.display.notes.extend(workers.handle_recording(ready));
        supervisor.display.notes.extend(workers.handle_writing(ready, &supervisor.running));
        for (command, kept) in workers.handle_keeping(ready, &supervisor.running) {
            supervisor.start_waiting(command, kept);
        }
        supervisor.leave_if_idle()
    }
}

impl Supervisor<'_> {
    fn start_waiting(&mut self, waiting: WaitingCommand, kept: Result<(), String>) {
        let WaitingCommand { start, streams } = waiting;
        let command = start.id;
        let started = kept
            .map_err(|why| format!("the state of the project before it could not be kept: {why}"))
            .and_then(|()| match self.running.spawner() {
                Some(spawner) if self.phase == Phase::Running => {
                    spawner.start_command(start, streams).map_err(|error| error.to_string())
                }
                _ => Err("the sandbox is ending".to_owned()),
            });
        if let Err(message) = started {
            self.command_failed(command, i32::from(OWN_FAILURE), message);
        }
    }

    /// None of those that wait starts any more.
    pub(crate) fn cancel_starts(&mut self) {
        for command in self.control.project_workers.cancel_starts() {
            let message = "the sandbox is ending".to_owned();
            self.command_failed(command, i32::from(OWN_FAILURE), message);
        }
    }

    /// Nothing of it ran.
    pub(super) fn command_failed(&mut self, command: CommandId, exit_code: i32, message: String) {
        self.control.project_workers.take_signals(command);
        self.record_exec_end(command, None, Some(message.clone()));
        self.control.commands.remove(command);
        self.tell_end(command, Event::CommandFailed { command, exit_code, message });
    }
}
