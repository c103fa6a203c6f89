//! Messages about waiting calls. Sending never blocks: what finds no room in the socket is queued, and so bounded by the
//! number of calls that may wait.

use crate::message::BrokerMessage;
use palisade_sys::proc;
use palisade_wire::WireError;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: VecDeque<Vec<u8>>,
    /// Calls that were denied since that was last told.
    unasked: u64,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// None of this may be lost: a call waits for it.
    pub(super) fn post(&mut self, supervisor: &OwnedFd, message: &BrokerMessage) {
        // Its fields are truncated, so it always fits. If it were lost, its call would wait forever; when the
        // broker ends, so do all calls.
        let Ok(packet) = palisade_wire::encode(message) else { proc::exit_now(1) };
        self.packets.push_back(packet);
        self.flush(supervisor);
    }

    /// A call is denied because too many wait. A flood of them must not fill the queue: while there is something in it, they
    /// are added up.
    pub(super) fn count_unasked(&mut self, supervisor: &OwnedFd) {
        self.unasked += 1;
        self.flush(supervisor);
    }

    /// Sends what is queued, as far as there is room.
    pub(super) fn flush(&mut self, supervisor: &OwnedFd) {
        while let Some(packet) = self.packets.front() {
            if palisade_wire::try_send(supervisor, packet) == Err(WireError::NoRoom) {
                return;
            }
            self.packets.pop_front();
        }
        if self.unasked > 0 {
            let count = std::mem::take(&mut self.unasked);
            self.post(supervisor, &BrokerMessage::Unasked { count });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_wire::WireMessage as _;

    /// Proves: GATE-5 denials-told
    #[test]
    fn denied_calls_that_cannot_be_told_one_by_one_are_told_as_a_sum() {
        let (supervisor, broker) = palisade_sys::fdpass::socketpair().unwrap();
        let mut outbox = Outbox::default();
        const CALLS: u64 = 100_000;
        for _ in 0..CALLS {
            outbox.count_unasked(&broker);
            assert!(outbox.packets.len() <= 1, "the queue is bounded");
        }
        assert!(!outbox.is_empty(), "the socket has room for all of them");
        let (mut told, mut messages) = (0, 0);
        let mut buffer = vec![0; BrokerMessage::MAX_BYTES];
        while told < CALLS {
            let received = palisade_wire::receive(&supervisor, &mut buffer).unwrap();
            let BrokerMessage::Unasked { count } = received.message else { panic!("{received:?}") };
            told += count;
            messages += 1;
            outbox.flush(&broker);
        }
        assert_eq!(told, CALLS);
        assert!(messages < CALLS / 2, "{messages}");
    }
}
