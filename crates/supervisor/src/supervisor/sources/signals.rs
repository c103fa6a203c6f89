//! Signals that come from outside.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use rustix::event::PollFlags;

pub(super) struct Signals;

impl EventSource for Signals {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        set.add(0, supervisor.own_client.signals.waiting(), PollFlags::IN);
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        while !ready.is_empty()
            && let Some(wish) = supervisor.own_client.signals.next()?
        {
            supervisor.obey(wish)?;
        }
        Ok(())
    }
}
