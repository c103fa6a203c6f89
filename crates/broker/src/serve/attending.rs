//! What has to be attended to beside the calls that arrive: answers of the supervisor, calls that wait for them, and git
//! configuration that is closed.

use super::gate::Gate;
use super::pending::PendingCalls;
use crate::serve::BrokerServer;
use palisade_gate::AccessReply;
use palisade_sys::notify::Notification;
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::time::{Duration, Instant};

/// What a thread waits for that attends to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attention {
    /// To messages of the supervisor.
    pub(super) hears: bool,
    /// To room for messages to it.
    pub(super) has_mail: bool,
    /// To the closing of git configuration.
    pub(super) sees_closing: bool,
    pub(super) due: Option<Instant>,
}

impl Attention {
    /// Whether a thread that waits for this waits for all of that.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_due = match (self.due, other.due) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(due)) => own <= due,
        };
        is_due
            && self.hears >= other.hears
            && self.has_mail >= other.has_mail
            && self.sees_closing >= other.sees_closing
    }

    pub(super) fn patience(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// What to poll the supervisor's socket for.
    pub(super) fn of_supervisor(&self) -> PollFlags {
        let room = if self.has_mail { PollFlags::OUT } else { PollFlags::empty() };
        let mail = if self.hears { PollFlags::IN } else { PollFlags::empty() };
        mail | room
    }
}

impl BrokerServer<'_> {
    /// Whether the only thing to do is to receive calls.
    pub(super) fn is_idle(&self) -> bool {
        self.gate.as_ref().is_none_or(Gate::is_idle) && self.executor.staged.is_empty()
    }

    pub(super) fn attention(&self) -> Attention {
        let pending = self.gate.as_ref().map(|gate| &gate.pending);
        Attention {
            hears: !self.is_idle(),
            has_mail: pending.is_some_and(PendingCalls::has_mail),
            sees_closing: self.executor.staged.events().is_some(),
            due: pending.and_then(PendingCalls::due),
        }
    }

    /// Until there is a call to receive, or no process is left that could make one. Receiving would wait as well, but
    /// without an end after which memory is given back.
    pub(super) fn wait_for_call(&mut self) {
        let mut set = [PollFd::new(self.listener, PollFlags::IN)];
        let polled = proc::poll_for_work(&mut set, None);
        if polled.is_ok() && set[0].revents().contains(PollFlags::HUP) {
            self.leave();
        }
    }

    /// While calls wait, or git configuration is written: blocks until a call arrives, or something is due for
    /// those. True if a call can be received.
    pub(super) fn attend(&mut self) -> bool {
        let attention = self.attention();
        let mut set = vec![
            PollFd::new(self.listener, PollFlags::IN),
            PollFd::new(&self.events.supervisor, attention.of_supervisor()),
        ];
        let closed = self.executor.staged.events();
        set.extend(closed.map(|events| PollFd::from_borrowed_fd(events, PollFlags::IN)));
        if proc::poll_for_work(&mut set, attention.patience()).is_err() {
            return true;
        }
        let (calls, mail) = (set[0].revents(), set[1].revents());
        self.attend_to(calls, mail);
        !calls.is_empty()
    }

    /// Whatever of it is due. `calls` and `mail` are what was found about the listener and the supervisor's socket.
    pub(super) fn attend_to(&mut self, calls: PollFlags, mail: PollFlags) {
        if calls.contains(PollFlags::HUP) {
            // Before 6.11 the kernel would block forever after the last process that could make a call has
            // ended.
            self.leave();
        }
        self.settle();
        if let Some(gate) = &mut self.gate {
            gate.pending.tend(&self.events.supervisor);
            if mail.contains(PollFlags::OUT) {
                gate.pending.flush(&self.events.supervisor);
            }
        }
        if mail.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            // Another thread may have received what was announced: waiting for it would hold the server for ever.
            self.hear_waiting();
        }
    }

    /// A deferred call that can continue.
    pub(super) fn take_held(&mut self) -> Option<Notification> {
        self.gate.as_mut()?.pending.take_held()
    }

    /// All messages that have arrived. Whether there were any.
    pub(super) fn hear_waiting(&mut self) -> bool {
        let mut has_heard = false;
        loop {
            let mut set = [PollFd::new(&self.events.supervisor, PollFlags::IN)];
            let polled = proc::poll(&mut set, Some(Duration::ZERO));
            if polled.is_err() || set[0].revents().is_empty() {
                return has_heard;
            }
            self.hear();
            has_heard = true;
        }
    }

    fn hear(&mut self) {
        let mut buffer = vec![0; AccessReply::MAX_BYTES];
        match palisade_wire::receive(&self.events.supervisor, &mut buffer) {
            Ok(Received { message, descriptors }) => self.obey(message, descriptors),
            Err(WireError::Closed) => self.leave(),
            // An answer is lost; when the broker ends, so do all calls.
            Err(_) => proc::exit_now(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_too_long_does_not_cover_what_is_due() {
        let now = Instant::now();
        let due = |due| Attention { due, ..Attention::default() };
        let later = now + Duration::from_millis(1);
        assert!(due(Some(now)).covers(&due(Some(later))));
        assert!(due(Some(now)).covers(&due(None)));
        assert!(!due(Some(later)).covers(&due(Some(now))));
        assert!(!due(None).covers(&due(Some(now))));
        let mail = Attention { has_mail: true, hears: true, ..Attention::default() };
        assert!(mail.covers(&Attention::default()));
        assert!(!Attention::default().covers(&mail));
    }
}
