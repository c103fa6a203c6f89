//! The client that starts commands, in a sandbox that outlives them.

use super::EventSource;
use crate::control::commands::Outcome;
use crate::error::SupervisorError;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use rustix::process::Signal;
use std::time::Instant;

pub(super) struct Control;

impl EventSource for Control {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        // Requests wait until commands can be started.
        let commands = supervisor.commands.as_ref().filter(|_| supervisor.started);
        if let Some((socket, interest)) = commands.and_then(|commands| commands.watched()) {
            set.add(0, socket, interest);
        }
    }

    fn handle(
        &self,
        supervisor: &mut Supervisor<'_>,
        ready: &Ready,
    ) -> Result<(), SupervisorError> {
        let (false, Some(commands), Some(spawner)) =
            (ready.is_empty(), &mut supervisor.commands, supervisor.running.spawner())
        else {
            return Ok(());
        };
        let outcome = commands.hear_client(spawner);
        supervisor.follow(outcome)
    }
}

impl Supervisor<'_> {
    /// Does what the client wants of the sandbox as a whole.
    pub(crate) fn follow(&mut self, outcome: Outcome) -> Result<(), SupervisorError> {
        match outcome {
            Outcome::GoOn => Ok(()),
            Outcome::End => self.end_sandbox(),
        }
    }

    /// Everything inside, once; pid 1 says when it is done.
    pub(crate) fn end_sandbox(&mut self) -> Result<(), SupervisorError> {
        if std::mem::replace(&mut self.is_ending, true) {
            return Ok(());
        }
        // Who does not end in time is killed with everything inside.
        self.deadlines.asked(Instant::now());
        Ok(self.running.end()?)
    }

    /// A signal for every command.
    pub(crate) fn signal_commands(&self, signal: Signal) {
        let (Some(commands), Some(spawner)) = (&self.commands, self.running.spawner()) else {
            return;
        };
        for command in commands.running() {
            // A spawner that is gone is seen by its pidfd.
            let _ = spawner.signal(command, signal.as_raw());
        }
    }
}
