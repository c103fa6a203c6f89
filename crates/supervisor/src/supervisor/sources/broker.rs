//! What the broker says: accesses for the gate, refusals for the log.

use super::EventSource;
use crate::error::{Result, SupervisorError};
use crate::incidents::Verdict;
use crate::poll_set::{PollSet, Ready};
use crate::supervisor::Supervisor;
use palisade_broker::BrokerMessage;
use rustix::event::PollFlags;

/// The clock and signals must not wait for the end of a flood.
const MESSAGES_A_TURN: usize = 64;

pub(super) struct Broker;

impl EventSource for Broker {
    fn register<'fd>(&self, supervisor: &'fd Supervisor<'_>, set: &mut PollSet<'fd>) {
        if let Some(news) = supervisor.running.broker() {
            set.add(0, news, PollFlags::IN);
        }
    }

    fn handle(&self, supervisor: &mut Supervisor<'_>, ready: &Ready) -> Result<()> {
        match ready.is_empty() {
            true => Ok(()),
            false => supervisor.hear_broker(MESSAGES_A_TURN),
        }
    }
}

impl Supervisor<'_> {
    /// What the broker has said so far; a part of it, if it says very much: the clock and signals must
    /// not wait for the end of a flood.
    pub(crate) fn hear_broker(&mut self, most: usize) -> Result<()> {
        for _ in 0..most {
            let Some(message) = self.running.news()? else { break };
            let message = match (message, &mut self.gate) {
                (BrokerMessage::PathAccess(request), Some(gate)) => {
                    gate.touched(request, &mut self.asking, self.display.terminal.as_ref());
                    continue;
                }
                (BrokerMessage::Returned { request }, Some(gate)) => {
                    gate.returned(request);
                    continue;
                }
                (BrokerMessage::Made { request, file }, Some(gate)) => {
                    gate.made(request, file);
                    continue;
                }
                (BrokerMessage::Withdrawn { request }, Some(gate)) => {
                    gate.withdrawn(request, &mut self.asking);
                    continue;
                }
                (BrokerMessage::Unasked { count }, _) => {
                    self.asking.count_unasked(count);
                    continue;
                }
                (message, _) => message,
            };
            match self.incidents.hear(message, &mut |kind| self.unlogged.push(kind)) {
                Verdict::GoOn => {}
                Verdict::Failed(why) => return Err(SupervisorError::BrokerFailed(why)),
            }
        }
        Ok(())
    }
}
