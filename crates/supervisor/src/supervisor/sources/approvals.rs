//! The socket at which questions are answered, and questions that time or nobody answers.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use std::time::Instant;

pub(super) struct Approvals;

impl EventSource for Approvals {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        supervisor.asking.register(set);
    }

    fn next_deadline(&self, supervisor: &Supervisor<'_>) -> Option<Instant> {
        supervisor.asking.next_deadline()
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        supervisor.asking.handle(ready);
        supervisor.asking.pass(supervisor.display.terminal.as_ref());
        // Before anybody joins a question that is answered already.
        supervisor.carry_out_answers();
        supervisor.revoke_grants();
        Ok(())
    }
}

impl Supervisor<'_> {
    /// Clients take back what was granted.
    fn revoke_grants(&mut self) {
        for wish in self.asking.take_revokes() {
            match &mut self.gate {
                Some(gate) => gate.revoke(wish, &self.running, &mut self.asking),
                None => self.asking.revoked(&wish, Err("nothing is granted here".to_owned())),
            }
        }
    }
}
