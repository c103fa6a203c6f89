//! The end of a sandbox that somebody asked for: commands are asked to end, killed if they do not, and then pid 1 ends
//! everybody else. In a sandbox for one command pid 1 does that by itself.

use crate::control::interface::{Grace, Request};
use crate::error::Result;
use crate::supervisor::{Killed, Phase, Supervisor};
use palisade_launch::TO_END_EVERYBODY;
use rustix::process::Signal;
use std::time::{Duration, Instant};

impl Supervisor<'_> {
    pub(super) fn end(&mut self, signal: i32, grace: Grace) -> Result<()> {
        // Nothing is left to ask: another deadline would only cut short what the ends are told by.
        if self.phase >= Phase::Killing {
            return Ok(());
        }
        let time = match grace {
            Grace::OfSandbox => self.clock.deadlines.after_signal(),
            Grace::Milliseconds(count) => Duration::from_millis(count),
        };
        self.clock.deadlines.asked(Instant::now(), time);
        if self.phase == Phase::Starting {
            // Its time runs from now on.
            self.control.held_back.push(Request::End { signal, grace });
            return Ok(());
        }
        if self.phase < Phase::Ending {
            self.record_ending();
        }
        self.enter(self.phase.max(Phase::Ending));
        self.cancel_starts();
        self.signal_groups(signal)?;
        // A stopped process hears nothing else.
        self.signal_groups(Signal::CONT.as_raw())?;
        self.leave_if_idle()
    }

    /// Commands were asked to end, and have not.
    pub(crate) fn grace_is_over(&mut self) -> Result<()> {
        let outlives_commands = self.running.spawner().is_some();
        if !outlives_commands || self.phase != Phase::Ending {
            return self.kill(Killed::Asked);
        }
        // Each command's own end is still told.
        self.enter(Phase::Killing);
        self.clock.deadlines.insist(Instant::now() + TO_END_EVERYBODY);
        self.signal_groups(Signal::KILL.as_raw())
    }

    /// Lets pid 1 of a sandbox that outlives its commands end what is left, once they have ended.
    pub(crate) fn leave_if_idle(&mut self) -> Result<()> {
        let is_ending = matches!(self.phase, Phase::Ending | Phase::Killing);
        if !is_ending || self.running.spawner().is_none() || !self.control.commands.is_empty() {
            return Ok(());
        }
        self.enter(Phase::Leaving);
        self.clock.deadlines.insist(Instant::now() + TO_END_EVERYBODY);
        Ok(self.running.end()?)
    }

    fn signal_groups(&self, signal: i32) -> Result<()> {
        let Some(spawner) = self.running.spawner() else {
            return Ok(self.running.signal(signal)?);
        };
        // One that is gone is seen by its pidfd. One that has left so many requests unread is killed with the others when
        // the time is over.
        let _ = spawner.signal_all(signal);
        Ok(())
    }
}
