//! Calls that have to wait before anything is found out about them, in order.
//!
//! *In line* are those whose question found no room: people are shown so many questions at once and no more. They are decided
//! anew when it is their turn, because an answer that was given meanwhile may be theirs, too. Whoever comes later and would
//! ask goes behind them. The time to answer a question begins when people can see it. *Unlooked* are those for which the
//! keeper has no room; they need not wait for people.
//!
//! Such a call costs its message and a parked notification, and the keeper holds nothing for it.
//!
//! The message is the one that the call came with, and it may be minutes old at its turn. So may that of a question that
//! stays open for long, and for the same reasons neither grants anything that it should not:
//! - what the host has there is looked at anew, and rules, grants and what was removed are those of now;
//! - whose call it is cannot change: its thread waits in it. If that is interrupted, the broker withdraws it, and the call
//!   that is made again brings a message of its own ([`GateState::takes_old_place`]);
//! - what is old is what the inside had of the path (`existing`, `is_covered`). Directories that the command made in its
//!   private home since are remembered apart from that, so that no grant hides them; elsewhere nothing can be made in what
//!   was not granted. At worst a question is asked about a directory in place of the file in it;
//! - after a yes the kernel resolves the path again, in the view as it is then.

use super::GateState;
use crate::asking::Moment;
use crate::gate::action::Action;
use crate::gate::grants::refusal;
use crate::gate::inquiry::InquiryStage;
use crate::gate::verdict::{Reason, Verdict};
use palisade_gate::PathAccess;
use palisade_keeper::MAX_HELD;

/// As many as the broker lets wait, so that nothing is denied here unless the broker fails to count. A message has a path and
/// two shorter ones: some kilobytes each at most, and mostly a few hundred bytes.
const MAX_IN_LINE: usize = palisade_ask::MAX_WAITING;
/// More than there are questions at once, so that calls which nobody is asked about go on. The rest is for what programs need
/// besides: more than one of them can need, so that each has its turn.
const MAX_TOKENS: usize = MAX_HELD / 4 * 3;

impl GateState<'_> {
    /// Whether the keeper has room for something else.
    pub(super) fn has_free_token(&self) -> bool {
        self.count_tokens() < MAX_TOKENS
    }

    /// Whether the keeper has room for so many files that a program needs.
    pub(super) fn has_room_for_needs(&self, count: usize) -> bool {
        self.count_tokens() + count <= MAX_HELD
    }

    /// What the keeper holds, or will. Tokens that it has been told to forget do not count: it handles requests in order.
    fn count_tokens(&self) -> usize {
        self.inquiries.len() + self.need_of.len() + self.grants.count_tokens()
    }

    /// There is no room at the keeper for what this call touches.
    pub(super) fn look_later(&mut self, request: PathAccess, at: &mut Moment<'_>) {
        if self.unlooked.len() >= MAX_IN_LINE {
            at.queue.count_refused(1, MAX_IN_LINE);
            return self.actions.push_back(Action::Reply(refusal(request.id), None));
        }
        self.unlooked.push_back(request);
    }

    /// There is no room at the keeper for what the program of this inquiry needs: it is looked at again.
    pub(super) fn look_again_later(&mut self, token: u64, at: &mut Moment<'_>) {
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return };
        let requests = std::mem::take(&mut inquiry.requests);
        match inquiry.has_waited {
            true => requests.into_iter().rev().for_each(|first| self.in_line.push_front(first)),
            false => requests.into_iter().for_each(|request| self.look_later(request, at)),
        }
        self.forget(token);
    }

    /// Whether the question of this inquiry has to wait until others have had their turn.
    pub(super) fn is_behind_line(&self, token: u64) -> bool {
        let has_waited = self.inquiries.get(&token).is_some_and(|inquiry| inquiry.has_waited);
        !self.in_line.is_empty() && !has_waited
    }

    /// There is no room for the questions of these calls. Others of the inquiry may have theirs.
    pub(super) fn put_in_line(&mut self, token: u64, calls: &[PathAccess], at: &mut Moment<'_>) {
        let is_full = self.in_line.len() + calls.len() > MAX_IN_LINE;
        if is_full {
            at.queue.count_refused(calls.len() as u64, MAX_IN_LINE);
            self.record(token, &Verdict::denied(Reason::TooManyQuestions), at.now);
        }
        let Some(inquiry) = self.inquiries.get_mut(&token) else { return };
        let is_meant = |request: &mut PathAccess| calls.iter().any(|call| call.id == request.id);
        let calls: Vec<PathAccess> = inquiry.requests.extract_if(.., is_meant).collect();
        let is_over = inquiry.requests.is_empty();
        match inquiry.has_waited {
            _ if is_full => {
                let replies = calls.iter().map(|call| Action::Reply(refusal(call.id), None));
                self.actions.extend(replies);
            }
            // Something else took the room.
            true => calls.into_iter().rev().for_each(|call| self.in_line.push_front(call)),
            false => self.in_line.extend(calls),
        }
        if is_over {
            self.forget(token);
        }
    }

    /// A call that was interrupted and is made again keeps its place: a thread waits in one call at a time. Whether it has one.
    pub(super) fn takes_old_place(&mut self, request: &PathAccess) -> bool {
        let is_same = |waiting: &&mut PathAccess| {
            waiting.pid == request.pid
                && waiting.path == request.path
                && waiting.wants == request.wants
        };
        let old = self.in_line.iter_mut().chain(&mut self.unlooked).find(is_same);
        old.map(|old| old.clone_from(request)).is_some()
    }

    /// Calls whose question is open already as that of another name of the same file wait in one inquiry, so that the keeper
    /// holds the file once. Gives its token.
    pub(super) fn merge(&mut self, token: u64) -> u64 {
        let Some(inquiry) = self.inquiries.get(&token) else { return token };
        let mut asked = self.inquiries.values().filter(|other| other.stage == InquiryStage::Asked);
        let same = asked.find(|other| other.token != token && other.is_same_as(inquiry));
        let Some(merged) = same.map(|same| same.token) else { return token };
        let inquiry = self.inquiries.get_mut(&token);
        let requests = inquiry.map(|inquiry| std::mem::take(&mut inquiry.requests));
        if let Some(inquiry) = self.inquiries.get_mut(&merged) {
            inquiry.requests.extend(requests.into_iter().flatten());
        }
        self.forget(token);
        merged
    }

    /// Nobody waits for this call any more.
    pub(super) fn leave_line(&mut self, request: u64) {
        self.in_line.retain(|waiting| waiting.id != request);
        self.unlooked.retain(|waiting| waiting.id != request);
    }

    /// Whether somebody may have a turn now.
    pub(in crate::gate) fn may_readmit(&self, at: &Moment<'_>) -> bool {
        let may_ask = || !self.in_line.is_empty() && self.free_questions(at) > 0;
        self.has_free_token() && (!self.unlooked.is_empty() || may_ask())
    }

    /// Gives those who wait their turn, as far as there is room for what they need.
    pub(in crate::gate) fn readmit(&mut self, at: &mut Moment<'_>) {
        for _ in 0..self.unlooked.len() {
            if !self.has_free_token() {
                return;
            }
            let Some(request) = self.unlooked.pop_front() else { break };
            self.admit(request, false, at);
        }
        for _ in 0..self.in_line.len() {
            if self.free_questions(at) == 0 || !self.has_free_token() {
                return;
            }
            let Some(request) = self.in_line.pop_front() else { return };
            self.admit(request, true, at);
        }
    }

    /// How many questions could be opened beside those of calls whose turn it is already.
    fn free_questions(&self, at: &Moment<'_>) -> usize {
        let has_turn = self.inquiries.values().filter(|inquiry| inquiry.has_waited);
        let undecided = has_turn.filter(|inquiry| inquiry.stage != InquiryStage::Asked).count();
        at.queue.room().saturating_sub(undecided)
    }
}
