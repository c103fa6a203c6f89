//! What a sandbox uses, measured from outside. A measurement must never fail a command.

use palisade_session::AppDirs;
use palisade_session::runs::{self, Meter};
use std::time::Duration;

/// What a sandbox has used, all its processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// CPU time: of the sandbox since its start, or in an [`Output`](crate::Output) while the command ran.
    pub cpu: Duration,
    /// Memory in use now.
    pub memory_bytes: u64,
    /// The highest value that is known of the sandbox.
    pub peak_memory_bytes: u64,
    /// Processes that run now.
    pub processes: u64,
}

/// The meter of one sandbox, made as soon as the sandbox can be found: a moment after its start.
#[derive(Debug, Default)]
pub(crate) struct Meters(Option<Meter>);

impl Meters {
    pub(crate) fn read(&mut self, places: &AppDirs, sandbox: &str) -> Option<Usage> {
        if self.0.is_none() {
            let run = runs::list(places).ok()?.into_iter().find(|run| run.session == sandbox)?;
            self.0 = Meter::of(&run).ok()?;
        }
        let reading = self.0.as_mut()?.read().ok()??;
        Some(Usage {
            cpu: reading.cpu,
            memory_bytes: reading.memory_bytes,
            peak_memory_bytes: reading.peak_memory_bytes,
            processes: reading.processes,
        })
    }
}

impl Usage {
    /// What came after an earlier reading; without one, all of it.
    pub(crate) fn since(self, earlier: Option<Self>) -> Self {
        let before = earlier.map_or(Duration::ZERO, |earlier| earlier.cpu);
        Self { cpu: self.cpu.saturating_sub(before), ..self }
    }
}
