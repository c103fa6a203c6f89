//! The death of a helper in the life of a run: whenever it comes, the run has failed (LIFE-4).

use super::{Killed, Watch};
use crate::error::SessionError;
use palisade_launch::{Death, Ending, HelperKind};
use rustix::event::PollFlags;

/// Seen by its socket, before it is waited for.
pub(super) const DEATH_OF_INIT: Death = Death { helper: HelperKind::Init, status: None };

impl Watch<'_> {
    /// Ends the run if a helper died, but for one that is being ended for another reason already. `ended` is what `poll`
    /// said of their pidfds.
    pub(super) fn check_helpers(&mut self, ended: &[PollFlags]) -> Result<(), SessionError> {
        let helpers = self.running.helpers();
        if helpers.known_death().is_none() && ended.iter().all(|ended| ended.is_empty()) {
            return Ok(());
        }
        if self.killed.is_some() {
            // Still collects the dead: their descriptors would be ready for ever.
            self.running.helpers().death();
            return Ok(());
        }
        let Some(death) = self.running.helpers().death() else { return Ok(()) };
        self.hear_last_words()?;
        Err(SessionError::HelperDied(death))
    }

    /// To be called when the command has ended and before that is recorded. Everybody is dismissed here, so that one who
    /// was killed while the command still ran is told from one who was no longer needed.
    pub(super) fn check_that_nobody_died(
        &mut self,
        ending: Option<Ending>,
    ) -> Result<(), SessionError> {
        let death = self.running.helpers().collect();
        // Pid 1 says how the command ended before it goes.
        let death = death.or(ending.is_none().then_some(DEATH_OF_INIT));
        match death {
            // Who told us to end may have ended pid 1 as well, with everything else of a closed terminal or a stopped service.
            Some(Death { helper: HelperKind::Init, status: None })
                if self.forwarded.iter().any(|signal| signal.fatal) =>
            {
                self.killed.get_or_insert(Killed::Asked);
                Ok(())
            }
            Some(death) if self.killed.is_none() && !self.ran_out_of_memory() => {
                self.hear_last_words()?;
                Err(SessionError::HelperDied(death))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The helper for whose death a launch failed, whatever that looked like from inside.
    pub(super) fn died_while_starting(&mut self) -> Result<Option<Death>, SessionError> {
        self.hear_last_words()?;
        Ok(self.running.helpers().collect())
    }

    /// Who fails says why, and that explains more than its exit code.
    fn hear_last_words(&mut self) -> Result<(), SessionError> {
        self.hear_broker(usize::MAX)?;
        let unlogged = &mut self.unlogged;
        if let Some(way_out) = &mut self.way_out {
            way_out.hear(&mut self.asking, None)?;
            way_out.act(&mut self.asking, &mut |kind| unlogged.push(kind))?;
        }
        Ok(())
    }
}
