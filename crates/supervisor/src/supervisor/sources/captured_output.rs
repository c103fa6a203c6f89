//! Outputs of the command that go through us because a policy caps them.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;

pub(super) struct CapturedOutput;

impl EventSource for CapturedOutput {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        supervisor.display.outputs.register(set);
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        supervisor.display.outputs.handle(ready);
        Ok(())
    }
}
