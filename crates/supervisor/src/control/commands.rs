//! The commands of one sandbox that were started and have not ended, by their numbers. Bookkeeping only: nothing is
//! started or signalled here.

use super::interface::CommandStatus;
use crate::escape::StartedTool;
use palisade_launch::CommandId;
use palisade_record::{CommandDigest, SpanContext};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Commands {
    running: BTreeMap<CommandId, Known>,
    next_id: u64,
    /// The last one that was started, whether it runs or not.
    last: Option<StartedTool>,
}

#[derive(Debug)]
struct Known {
    pid: Option<u32>,
    /// Its own end of its terminal, to resize it by. A copy of the client's end would keep the terminal from being hung up
    /// when the client closes it.
    terminal: Option<OwnedFd>,
    /// None of the one command that a launch brings with it.
    digest: Option<CommandDigest>,
    /// The span that its client named.
    caller: Option<SpanContext>,
    since: Instant,
    /// None for the one that the launch brings with it.
    tool: Option<StartedTool>,
}

impl Commands {
    pub(crate) fn new() -> Self {
        Self { running: BTreeMap::new(), next_id: 1, last: None }
    }

    /// The number that [`Self::add`] gives next.
    pub(crate) fn next_id(&self) -> CommandId {
        CommandId(self.next_id)
    }

    pub(crate) fn add(
        &mut self,
        terminal: Option<OwnedFd>,
        digest: Option<CommandDigest>,
    ) -> CommandId {
        let id = self.next_id();
        self.next_id += 1;
        let since = Instant::now();
        self.running
            .insert(id, Known { pid: None, terminal, digest, caller: None, since, tool: None });
        id
    }

    /// What a quarantine would know it by.
    pub(crate) fn set_tool(&mut self, id: CommandId, tool: StartedTool) {
        self.last = Some(tool.clone());
        if let Some(known) = self.running.get_mut(&id) {
            known.tool = Some(tool);
        }
    }

    /// The span that its client named.
    pub(crate) fn set_caller(&mut self, id: CommandId, caller: Option<SpanContext>) {
        if let Some(known) = self.running.get_mut(&id) {
            known.caller = caller;
        }
    }

    pub(crate) fn caller(&self, id: CommandId) -> Option<SpanContext> {
        self.running.get(&id)?.caller
    }

    /// That of one command, or those of all; the last one if none runs.
    pub(crate) fn tools(&self, of: Option<CommandId>) -> Vec<StartedTool> {
        let is_meant = |id: &CommandId| of.is_none_or(|command| command == *id);
        let running = self.running.iter().filter(|(id, _)| is_meant(id));
        let tools: Vec<_> = running.filter_map(|(_, known)| known.tool.clone()).collect();
        if tools.is_empty() { self.last.iter().cloned().collect() } else { tools }
    }

    /// Its exec succeeded. Whether it is one of these.
    pub(crate) fn started(&mut self, id: CommandId, pid: u32) -> bool {
        self.running.get_mut(&id).map(|known| known.pid = Some(pid)).is_some()
    }

    /// It has ended. Whether it was one of these.
    pub(crate) fn remove(&mut self, id: CommandId) -> bool {
        self.running.remove(&id).is_some()
    }

    pub(crate) fn contains(&self, id: CommandId) -> bool {
        self.running.contains_key(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn ids(&self) -> Vec<CommandId> {
        self.running.keys().copied().collect()
    }

    /// A command's own end of its terminal.
    pub(crate) fn terminal(&self, id: CommandId) -> Option<BorrowedFd<'_>> {
        self.running.get(&id)?.terminal.as_ref().map(|terminal| terminal.as_fd())
    }

    /// What the audit log has of its command line.
    pub(crate) fn digest(&self, id: CommandId) -> Option<&CommandDigest> {
        self.running.get(&id)?.digest.as_ref()
    }

    pub(crate) fn running_for(&self, id: CommandId) -> Option<Duration> {
        self.running.get(&id).map(|known| known.since.elapsed())
    }

    /// Each with its command line, and how long it has run.
    pub(crate) fn described(&self) -> impl Iterator<Item = (CommandStatus, &str, Duration)> {
        self.running.iter().map(|(id, known)| {
            let status = CommandStatus { command: *id, pid: known.pid };
            let text = known.digest.as_ref().map_or("", CommandDigest::preview);
            (status, text, known.since.elapsed())
        })
    }

    pub(crate) fn status(&self) -> Vec<CommandStatus> {
        let running = self.running.iter();
        running.map(|(id, known)| CommandStatus { command: *id, pid: known.pid }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandId, CommandStatus, Commands};

    #[test]
    fn a_number_is_given_once_and_known_until_its_command_ends() {
        let mut commands = Commands::new();
        let (first, second) = (commands.add(None, None), commands.add(None, None));
        assert!(commands.started(first, 77) && !commands.started(CommandId(9), 78));
        assert_eq!(
            commands.status(),
            [
                CommandStatus { command: first, pid: Some(77) },
                CommandStatus { command: second, pid: None }
            ]
        );
        assert!(commands.remove(first) && !commands.remove(first));
        assert_eq!(commands.ids(), [second]);
        assert!(commands.add(None, None) > second);
    }
}
