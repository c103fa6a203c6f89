//! The sources of events. Each registers its descriptors, says when it has to act next, and handles what happened.
//!
//! A new source is a file here and a line in [`SOURCES`]. None of them waits for anything itself.

mod approvals;
mod broker;
mod captured_output;
mod control;
mod deadlines;
mod egress;
mod gate;
mod gatefs;
mod held_output;
mod helpers;
mod incidents;
mod init;
mod limits;
mod panel;
mod project_work;
mod recorder;
mod registration;
mod signals;
mod spawner;
mod terminal;

pub(crate) use helpers::DEATH_OF_INIT;
pub(super) use limits::tell_reached;

use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use std::time::Instant;

/// Something that events come from.
pub(crate) trait EventSource: Sync {
    /// What has to be done before anything is waited for.
    fn prepare(&self, _supervisor: &mut Supervisor<'_>) -> Result<()> {
        Ok(())
    }

    /// Adds the descriptors that are worth waiting for now.
    fn register<'fd>(&self, _supervisor: &'fd Supervisor<'_>, _set: &mut PollSet<'fd>) {}

    /// When time alone gives it something to do.
    fn next_deadline(&self, _supervisor: &Supervisor<'_>) -> Option<Instant> {
        None
    }

    /// After every wait, whether something came or not.
    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()>;
}

/// In the order in which they handle what came in one turn: output before what ends it, answers before what waits for
/// them, pid 1 last.
const SOURCES: [&dyn EventSource; 20] = [
    &deadlines::Deadlines,
    &incidents::Sums,
    &captured_output::CapturedOutput,
    &terminal::Terminal,
    &limits::Limits,
    &registration::Registration,
    &signals::Signals,
    &broker::Broker,
    &gatefs::GateFs,
    &approvals::Approvals,
    &gate::Keeper,
    &egress::Egress,
    &panel::Panel,
    &control::Control,
    &project_work::ProjectWork,
    &spawner::Spawner,
    &held_output::HeldOutput,
    &recorder::Recorder,
    &helpers::Helpers,
    &init::Init,
];

/// Waits once, and lets every source handle what came.
pub(crate) fn turn(supervisor: &mut Supervisor<'_>) -> Result<()> {
    for source in SOURCES {
        source.prepare(supervisor)?;
    }
    let mut set = PollSet::new();
    for (number, source) in SOURCES.iter().enumerate() {
        set.begin_source(number);
        source.register(supervisor, &mut set);
    }
    let deadlines = SOURCES.iter().filter_map(|source| source.next_deadline(supervisor));
    let timeout = deadlines.min().map(|next| next.saturating_duration_since(Instant::now()));
    let events = set.wait(timeout)?;
    for (number, source) in SOURCES.iter().enumerate() {
        source.handle(supervisor, &events.of_source(number))?;
    }
    supervisor.respond()
}
