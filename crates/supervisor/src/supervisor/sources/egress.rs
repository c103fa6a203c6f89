//! The egress process: connections that were made, refused or asked about.

use super::EventSource;
use crate::egress::EgressControl;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use rustix::event::PollFlags;

pub(super) struct Egress;

impl EventSource for Egress {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        if let Some(socket) = supervisor.egress.as_ref().and_then(EgressControl::socket) {
            set.add(0, socket, PollFlags::IN);
        }
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        let Some(egress) = &mut supervisor.egress else { return Ok(()) };
        let (asking, unlogged) = (&mut supervisor.asking, &mut supervisor.unlogged);
        let heard = match ready.is_empty() {
            true => Ok(()),
            false => egress.hear(asking, supervisor.display.terminal.as_ref()),
        };
        // What was told before it went is recorded first.
        egress.act(asking, &mut |kind| unlogged.push(kind))?;
        heard
    }
}

impl Supervisor<'_> {
    /// Questions about hosts that found no room have their turn.
    pub(super) fn readmit_hosts(&mut self) -> Result<()> {
        let Some(egress) = &mut self.egress else { return Ok(()) };
        let unlogged = &mut self.unlogged;
        egress.readmit(&mut self.asking, self.display.terminal.as_ref());
        egress.act(&mut self.asking, &mut |kind| unlogged.push(kind))
    }

    /// The network namespace is made and its listeners have come: they are served from now on.
    pub(crate) fn open_way_out(&mut self) -> Result<()> {
        match (&mut self.egress, self.running.take_network()) {
            (Some(egress), Some(inside)) => egress.start(inside, &self.running),
            _ => Ok(()),
        }
    }

    /// Nobody inside is left: what the egress process has not told yet is heard and recorded.
    pub(crate) fn close_way_out(&mut self) {
        let unlogged = &mut self.unlogged;
        if let Some(egress) = &mut self.egress {
            egress.finish(&mut self.asking, &mut |kind| unlogged.push(kind));
        }
    }
}
