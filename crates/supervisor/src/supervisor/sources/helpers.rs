//! The helper processes: the death of one, whenever it comes, fails the run (LIFE-4).

use super::EventSource;
use crate::error::{Result, SupervisorError};
use crate::limits::Over;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Killed, Supervisor};
use palisade_launch::{Death, ExitCause, HelperKind};
use palisade_plan::limit::LimitKind;
use rustix::event::PollFlags;

/// Seen by its socket, before it is waited for.
pub(crate) const DEATH_OF_INIT: Death = Death { helper: HelperKind::Init, status: None };

pub(super) struct Helpers;

impl EventSource for Helpers {
    fn prepare(&self, supervisor: &mut Supervisor<'_>) -> Result<()> {
        supervisor.serving = supervisor.running.helpers().serving();
        Ok(())
    }

    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        for (key, helper) in supervisor.serving.iter().enumerate() {
            set.add(key, helper.pidfd(), PollFlags::IN);
        }
    }

    /// Ends the run if a helper died, but for one that is being ended for another reason already.
    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        if supervisor.running.helpers().known_death().is_none() && ready.is_empty() {
            return Ok(());
        }
        if supervisor.killed.is_some() {
            // Still collects the dead: their descriptors would be ready for ever.
            supervisor.running.helpers().death();
            return Ok(());
        }
        let Some(death) = supervisor.running.helpers().death() else { return Ok(()) };
        if is_in_group(death.helper) && supervisor.ran_out_of_memory() {
            return supervisor.end_for_memory();
        }
        supervisor.hear_last_words()?;
        Err(SupervisorError::HelperDied(death))
    }
}

/// Whether what it holds counts for the run, so that the kernel may choose it when memory runs out.
fn is_in_group(helper: HelperKind) -> bool {
    matches!(helper, HelperKind::GateFs | HelperKind::Spawner)
}

impl Supervisor<'_> {
    fn end_for_memory(&mut self) -> Result<()> {
        if !self.is_started() {
            return Err(SupervisorError::OutOfMemory);
        }
        self.clock.limits.exceeded(Over { what: LimitKind::Memory, usage: None });
        self.kill(Killed::Limit(LimitKind::Memory))
    }

    /// To be called when the command has ended and before that is recorded. Everybody is dismissed here, so that one who
    /// was killed while the command still ran is told from one who was no longer needed.
    pub(crate) fn check_that_nobody_died(&mut self, ending: Option<ExitCause>) -> Result<()> {
        let death = self.running.helpers().collect();
        // Pid 1 says how the command ended before it goes.
        let death = death.or(ending.is_none().then_some(DEATH_OF_INIT));
        match death {
            // Who told us to end may have ended pid 1 as well, with everything else of a closed terminal or a stopped service.
            Some(Death { helper: HelperKind::Init, status: None })
                if self.own_client.forwarded.iter().any(|signal| signal.fatal) =>
            {
                self.killed.get_or_insert(Killed::Asked);
                Ok(())
            }
            Some(death) if self.killed.is_none() && !self.ran_out_of_memory() => {
                self.hear_last_words()?;
                Err(SupervisorError::HelperDied(death))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The helper for whose death a launch failed, whatever that looked like from inside.
    pub(crate) fn died_while_starting(&mut self) -> Result<Option<Death>> {
        self.hear_last_words()?;
        Ok(self.running.helpers().collect())
    }

    /// Who fails says why, and that explains more than its exit code.
    fn hear_last_words(&mut self) -> Result<()> {
        self.hear_broker(usize::MAX)?;
        self.hear_gatefs(usize::MAX)?;
        let unlogged = &mut self.unlogged;
        if let Some(egress) = &mut self.egress {
            egress.hear(&mut self.asking, None)?;
            egress.act(&mut self.asking, &mut |kind| unlogged.push(kind))?;
        }
        Ok(())
    }
}
