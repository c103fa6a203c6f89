//! The processes that work on the changes of the project.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;

pub(super) struct ProjectWork;

impl EventSource for ProjectWork {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        supervisor.control.project_workers.register(set);
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        let note = supervisor.control.project_workers.handle(ready, &supervisor.running);
        supervisor.display.notes.extend(note);
        Ok(())
    }
}
