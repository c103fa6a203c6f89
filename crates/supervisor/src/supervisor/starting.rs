//! From the launch to the first command's exec, or to the spawner that can start one.

use crate::control::interface::Event;
use crate::error::{Result, SupervisorError};
use crate::supervisor::sources::DEATH_OF_INIT;
use crate::supervisor::{Killed, Phase, Supervisor};
use palisade_launch::LaunchError;
use palisade_plan::limit::LimitKind;

impl Supervisor<'_> {
    /// Commands run from here on, or can be started.
    pub(crate) fn begin(&mut self) -> Result<()> {
        // Killed already, and faster than that.
        if self.killed.is_some() {
            return Err(self.why_not_started());
        }
        self.enter(Phase::Running);
        self.clock.limits.started(&self.running);
        self.control.outbox.created(&self.control.session);
        if self.running.spawner().is_none() {
            for command in self.control.commands.ids() {
                self.control.outbox.emit(Event::CommandStarted { command, pid: None });
            }
        }
        for request in std::mem::take(&mut self.control.held_back) {
            self.request(request)?;
        }
        // What came before the start.
        self.respond()
    }

    /// Why, in the words of who knows most.
    pub(crate) fn launch_failed(&mut self, error: LaunchError) -> Result<SupervisorError> {
        if self.ran_out_of_memory() {
            return Ok(SupervisorError::OutOfMemory);
        }
        let death = self.died_while_starting()?;
        Ok(death.map_or_else(|| error.into(), SupervisorError::HelperDied))
    }

    pub(crate) fn why_not_started(&mut self) -> SupervisorError {
        let asked = self.own_client.forwarded.iter().find(|signal| signal.fatal);
        match (self.killed, asked) {
            (Some(Killed::Timeout), _) => SupervisorError::TimedOut,
            (Some(Killed::Asked), Some(asked)) => {
                SupervisorError::Cancelled { number: asked.signal, name: asked.name.clone() }
            }
            // Nobody else can ask for the end of what has not begun.
            (Some(Killed::Asked), None) => SupervisorError::ClientGone,
            _ if self.ran_out_of_memory() => SupervisorError::OutOfMemory,
            _ => match self.died_while_starting() {
                Ok(death) => SupervisorError::HelperDied(death.unwrap_or(DEATH_OF_INIT)),
                Err(error) => error,
            },
        }
    }

    /// What some process holds in the kernel shows in none, and then any may be the one to go.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.limits_so_far().has_reached(LimitKind::Memory)
    }
}
