//! What the gate's file system says: accesses for the gate.

use super::EventSource;
use crate::error::SupervisorError;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use palisade_gatefs::GateFsMessage;
use rustix::event::PollFlags;

/// The clock and signals must not wait for the end of a flood.
const MESSAGES_A_TURN: usize = 64;

pub(super) struct GateFs;

impl EventSource for GateFs {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        if let Some(socket) = supervisor.running.gatefs() {
            set.add(0, socket, PollFlags::IN);
        }
    }

    fn handle(
        &self,
        supervisor: &mut Supervisor<'_>,
        ready: &Ready,
    ) -> Result<(), SupervisorError> {
        match ready.is_empty() {
            true => Ok(()),
            false => supervisor.hear_gatefs(MESSAGES_A_TURN),
        }
    }
}

impl Supervisor<'_> {
    pub(crate) fn hear_gatefs(&mut self, most: usize) -> Result<(), SupervisorError> {
        for _ in 0..most {
            let Some(message) = self.running.gatefs_message()? else { break };
            let Some(gate) = &mut self.gate else { break };
            match message {
                GateFsMessage::PathAccess(request) => {
                    let terminal = self.display.terminal.as_ref();
                    gate.touched_in_filesystem(request, &mut self.asking, terminal);
                }
                GateFsMessage::Returned { request } => gate.returned(request),
                GateFsMessage::Withdrawn { request } => gate.withdrawn(request, &mut self.asking),
                GateFsMessage::LookAtOwn { path, pid, executable } => {
                    gate.looked_at_own(&path, &executable, pid);
                }
                GateFsMessage::Failed(why) => return Err(SupervisorError::GateFailed(why)),
            }
        }
        Ok(())
    }
}
