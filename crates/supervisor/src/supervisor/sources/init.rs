//! Pid 1 of the sandbox: what it says, and that it is gone.

use super::EventSource;
use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::{Supervisor, Turn};
use rustix::event::PollFlags;

pub(super) struct Init;

impl EventSource for Init {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        set.add(0, supervisor.running.init_socket(), PollFlags::IN);
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        supervisor.turn = match ready.is_empty() {
            true => Turn::Nothing,
            false => supervisor.running.receive()?.map_or(Turn::Gone, Turn::Message),
        };
        Ok(())
    }
}
