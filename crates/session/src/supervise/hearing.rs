//! What the broker tells in a turn: touches for the gate, refusals for the log.

use super::{Killed, Watch};
use crate::error::SessionError;
use crate::incidents::Verdict;
use palisade_broker::Message;
use palisade_launch::News;

impl Watch<'_> {
    /// What the broker has said so far; a part of it, if it says very much: the clock and signals must
    /// not wait for the end of a flood.
    pub(super) fn hear_broker(&mut self, most: usize) -> Result<(), SessionError> {
        for _ in 0..most {
            let message = match self.running.news()? {
                News::Message(message) => message,
                News::None => break,
            };
            let message = match (message, &mut self.gate) {
                (Message::Touch(touch), Some(gate)) => {
                    gate.touched(touch, &mut self.asking, self.terminal.as_ref());
                    continue;
                }
                (Message::Returned { touch }, Some(gate)) => {
                    gate.returned(touch);
                    continue;
                }
                (Message::Withdrawn { touch }, Some(gate)) => {
                    gate.withdrawn(touch, &mut self.asking);
                    continue;
                }
                (message, _) => message,
            };
            match self.incidents.hear(message, &mut |kind| self.unlogged.push(kind)) {
                Verdict::GoOn => {}
                // Before it is known to run, a kill would look like a launch that failed.
                Verdict::TooMany if !self.started => {}
                Verdict::TooMany => self.kill(Killed::Suspicious)?,
                Verdict::Failed(why) => return Err(SessionError::BrokerFailed(why)),
            }
        }
        Ok(())
    }
}
