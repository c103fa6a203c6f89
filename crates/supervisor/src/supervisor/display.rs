//! Where the output of a sandbox's one command goes, as far as it goes through us: the caller's terminal, and what is
//! captured. Further commands have terminals of their own, which are their client's.

use crate::output::Outputs;
use crate::relay::{Ends, Relay, Typed};
use crate::terminal::HostTerminal;
use palisade_launch::Running;
use palisade_plan::model::Recording;
use palisade_record::cast::CastWriter;

#[derive(Debug)]
pub(crate) struct Display {
    pub(crate) terminal: Option<HostTerminal>,
    pub(crate) relay: Relay,
    /// Outputs that are capped and no terminal.
    pub(crate) outputs: Outputs,
    /// Whether the terminal went while a question stood in it: nothing more is typed there.
    pub(crate) is_hung_up: bool,
    /// Of the one command.
    pub(crate) recording: Option<CastWriter>,
    /// What went wrong with recordings, for people.
    pub(crate) notes: Vec<String>,
}

impl Display {
    /// `limit` is how many bytes of each output its reader gets.
    pub(crate) fn new(
        terminal: Option<HostTerminal>,
        outputs: Outputs,
        limit: Option<u64>,
        recording: Option<(CastWriter, Recording)>,
    ) -> Self {
        let typed = terminal.as_ref().map_or(Typed::Keys, HostTerminal::typed);
        let size = terminal.as_ref().map_or((0, 0), HostTerminal::size);
        let mut relay = Relay::new(typed, limit, size);
        if let Some((_, plan)) = &recording {
            relay.listen(plan.input);
        }
        let recording = recording.map(|(writer, _)| writer);
        Self { terminal, relay, outputs, is_hung_up: false, recording, notes: Vec::new() }
    }
}

/// What is relayed between the caller's terminal and the command's.
pub(crate) fn ends<'fd>(
    terminal: Option<&'fd HostTerminal>,
    running: &'fd Running,
) -> Option<Ends<'fd>> {
    let terminal = terminal?;
    let pty = running.pty()?;
    let input = terminal.may_read().then(|| terminal.input());
    Some(Ends { input, output: terminal.output(), pty })
}
