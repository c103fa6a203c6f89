//! What is done about an attempt to break out while the sandbox is there: it is looked at, and ended.

use crate::error::Result;
use crate::escape::{Incident, StartedTool, command_of, descendants};
use crate::supervisor::{Killed, Phase, Supervisor};
use palisade_record::{EscapeReport, SeenProcess};

impl Supervisor<'_> {
    /// Looks through what is new among the events. Everything of the sandbox ends at once if the policy says so: other
    /// commands of a session as well, and what they left in the background.
    pub(crate) fn respond(&mut self) -> Result<()> {
        let is_first = self.escape.look(&mut self.unlogged, self.looked_at);
        self.looked_at = self.unlogged.len();
        if is_first {
            let processes = match self.phase {
                Phase::Gone => Vec::new(),
                _ => descendants(self.running.pid()),
            };
            let tools = self.suspected_tools(&processes);
            self.escape.keep(processes, tools);
        }
        // Before it is known to run, a kill would look like a launch that failed.
        let is_there = self.is_started() && self.phase < Phase::Gone;
        if is_there && self.escape.take_order() {
            return self.kill(Killed::Escape);
        }
        Ok(())
    }

    /// What is known about attempts so far, for a run that ends by an error.
    pub fn take_escape(&mut self) -> (Option<EscapeReport>, Option<Incident>) {
        if self.escape.look(&mut self.unlogged, self.looked_at) {
            let tools = self.suspected_tools(&[]);
            self.escape.keep(Vec::new(), tools);
        }
        self.looked_at = self.unlogged.len();
        self.escape.take()
    }

    /// The commands of a session that may have done it: the one that it was, if that can be told, and otherwise all that run.
    fn suspected_tools(&self, processes: &[SeenProcess]) -> Vec<StartedTool> {
        let commands = &self.control.commands;
        let running: Vec<_> =
            commands.status().iter().map(|status| (status.command, status.pid)).collect();
        let pid = self.escape.attempt_pid();
        commands.tools(pid.and_then(|pid| command_of(pid, processes, &running)))
    }
}
