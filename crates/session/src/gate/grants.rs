//! Grants under way and grants that end again: what the keeper was asked to do, and for which calls.
//!
//! It decides nothing. A call goes on only when everything it needs is in its place; if one part of it can
//! not be done, the call is refused.

use super::hub::Action;
use palisade_broker::{Reply, Touch, Wants};
use palisade_keeper::{Ask, What};
use palisade_sys::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A short-lived grant goes when its call has returned, and then at the latest.
const SHORT_LIVED: Duration = Duration::from_secs(1);

/// How long a grant lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// For the calls that wait now.
    Once,
    /// Until the run ends.
    Session,
}

/// One part of a grant: a token of the keeper's and what to do with it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) token: u64,
    pub(super) what: What,
    pub(super) is_executable: bool,
}

#[derive(Debug)]
struct Job {
    awaited: usize,
    touches: Vec<Touch>,
    grafts: Vec<u64>,
    lasting: Lasting,
    has_failed: bool,
}

/// A short-lived grant whose calls go on.
#[derive(Debug)]
struct Fleeting {
    grafts: Vec<u64>,
    touches: Vec<u64>,
    going_on: HashSet<u64>,
    until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Grants {
    jobs: HashMap<u64, Job>,
    next_job: u64,
    /// Which jobs wait for a token of the keeper's, in the order they asked.
    awaiting: HashMap<u64, VecDeque<u64>>,
    /// Calls that get a descriptor of their own, in the order they asked; none for one that is gone.
    openings: HashMap<u64, VecDeque<Option<u64>>>,
    fleeting: Vec<Fleeting>,
    /// Those that the keeper takes away now: what is left of each, and whom it was for.
    ending: Vec<(Vec<u64>, Vec<u64>)>,
}

impl Grants {
    /// Puts the parts in their places and lets the calls go on.
    pub(super) fn graft(
        &mut self,
        parts: Vec<Part>,
        touches: Vec<Touch>,
        lasting: Lasting,
        out: &mut VecDeque<Action>,
    ) {
        let job = self.next_job;
        self.next_job += 1;
        let awaited = parts.len();
        self.jobs
            .insert(job, Job { awaited, touches, grafts: Vec::new(), lasting, has_failed: false });
        for Part { token, what, is_executable } in parts {
            self.awaiting.entry(token).or_default().push_back(job);
            out.push_back(Action::Keeper(Ask::Graft { token, what, exec: is_executable }));
        }
    }

    /// Opens the file for each of the calls; nothing becomes visible.
    pub(super) fn open(&mut self, token: u64, touches: &[Touch], out: &mut VecDeque<Action>) {
        for touch in touches {
            self.openings.entry(token).or_default().push_back(Some(touch.touch));
            out.push_back(Action::Keeper(Ask::Open { token, flags: 0 }));
        }
    }

    pub(super) fn grafted(
        &mut self,
        token: u64,
        graft: u64,
        now: Instant,
        out: &mut VecDeque<Action>,
    ) {
        let Some(id) = self.next_awaiting(token) else {
            // Nobody waits for it: it must not stay.
            out.push_back(Action::Keeper(Ask::Ungraft { graft }));
            return;
        };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.grafts.push(graft);
        }
        self.advance(id, now, out);
    }

    pub(super) fn opened(&mut self, token: u64, file: Option<OwnedFd>, out: &mut VecDeque<Action>) {
        let waiting = self.openings.get_mut(&token).and_then(VecDeque::pop_front);
        let Some(Some(touch)) = waiting else { return };
        let reply = if file.is_some() { Reply::File { touch } } else { refusal(touch) };
        out.push_back(Action::Broker(reply, file));
    }

    /// Whether somebody was waiting for the token.
    pub(super) fn failed(&mut self, token: u64, now: Instant, out: &mut VecDeque<Action>) -> bool {
        if self.openings.get(&token).is_some_and(|waiting| !waiting.is_empty()) {
            self.opened(token, None, out);
            return true;
        }
        let Some(id) = self.next_awaiting(token) else { return false };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.has_failed = true;
        }
        self.advance(id, now, out);
        true
    }

    /// Whether the keeper still has something to do with the token.
    pub(super) fn uses(&self, token: u64) -> bool {
        self.awaiting.get(&token).is_some_and(|jobs| !jobs.is_empty())
            || self.openings.get(&token).is_some_and(|waiting| !waiting.is_empty())
    }

    /// A call is back, or gone.
    pub(super) fn returned(&mut self, touch: u64, out: &mut VecDeque<Action>) {
        for job in self.jobs.values_mut() {
            job.touches.retain(|waiting| waiting.touch != touch);
        }
        // The keeper answers all the same: its place in the row stays.
        for waiting in self.openings.values_mut().flatten() {
            if *waiting == Some(touch) {
                *waiting = None;
            }
        }
        for fleeting in &mut self.fleeting {
            fleeting.going_on.remove(&touch);
        }
        self.end_fleeting(|fleeting| fleeting.going_on.is_empty(), out);
    }

    /// Ends what has lasted too long.
    pub(super) fn pass(&mut self, now: Instant, out: &mut VecDeque<Action>) {
        self.end_fleeting(|fleeting| fleeting.until <= now, out);
    }

    /// Whether something is shown that has to be taken away again.
    pub(super) fn has_fleeting(&self) -> bool {
        let is_short = |job: &Job| job.lasting == Lasting::Once && !job.grafts.is_empty();
        !self.fleeting.is_empty() || !self.ending.is_empty() || self.jobs.values().any(is_short)
    }

    pub(super) fn next_end(&self) -> Option<Instant> {
        self.fleeting.iter().map(|fleeting| fleeting.until).min()
    }

    /// Refuses whatever waits for the keeper, which is gone.
    pub(super) fn give_up(&mut self, out: &mut VecDeque<Action>) {
        let granting = self.jobs.drain().flat_map(|(_, job)| job.touches).map(|touch| touch.touch);
        let opening = self.openings.drain().flat_map(|(_, waiting)| waiting).flatten();
        out.extend(granting.chain(opening).map(|touch| Action::Broker(refusal(touch), None)));
        self.awaiting.clear();
        self.fleeting.clear();
        self.ending.clear();
    }

    /// Something was taken away; the broker lets others look once it is all of a grant.
    pub(super) fn ungrafted(&mut self, graft: u64, out: &mut VecDeque<Action>) {
        self.ending.retain_mut(|(grafts, touches)| {
            grafts.retain(|known| *known != graft);
            if grafts.is_empty() {
                let ended = touches.iter().map(|touch| Reply::Ended { touch: *touch });
                out.extend(ended.map(|reply| Action::Broker(reply, None)));
            }
            !grafts.is_empty()
        });
    }

    fn next_awaiting(&mut self, token: u64) -> Option<u64> {
        let jobs = self.awaiting.get_mut(&token)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.awaiting.remove(&token);
        }
        job
    }

    fn advance(&mut self, id: u64, now: Instant, out: &mut VecDeque<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.awaited -= 1;
        if job.awaited > 0 {
            return;
        }
        let Some(job) = self.jobs.remove(&id) else { return };
        let Job { touches, grafts, lasting, has_failed, .. } = job;
        if has_failed {
            out.extend(touches.iter().map(|touch| Action::Broker(refusal(touch.touch), None)));
            out.extend(grafts.into_iter().map(|graft| Action::Keeper(Ask::Ungraft { graft })));
            return;
        }
        match lasting {
            Lasting::Session => {
                let replies = touches.iter().map(|touch| Reply::Continue { touch: touch.touch });
                out.extend(replies.map(|reply| Action::Broker(reply, None)));
            }
            Lasting::Once => {
                let going_on: HashSet<u64> = touches.iter().map(|touch| touch.touch).collect();
                let replies =
                    touches.iter().map(|touch| Reply::ContinueAndWatch { touch: touch.touch });
                out.extend(replies.map(|reply| Action::Broker(reply, None)));
                let touches = touches.iter().map(|touch| touch.touch).collect();
                let until = now + SHORT_LIVED;
                self.fleeting.push(Fleeting { grafts, touches, going_on, until });
                self.end_fleeting(|fleeting| fleeting.going_on.is_empty(), out);
            }
        }
    }

    fn end_fleeting(&mut self, is_over: impl Fn(&Fleeting) -> bool, out: &mut VecDeque<Action>) {
        for Fleeting { grafts, touches, .. } in self.fleeting.extract_if(.., |one| is_over(one)) {
            let ungraft = |graft: &u64| Action::Keeper(Ask::Ungraft { graft: *graft });
            out.extend(grafts.iter().map(ungraft));
            self.ending.push((grafts, touches));
        }
    }
}

/// Whether a call can be given an open file instead of something to see.
pub(super) fn takes_descriptor(touch: &Touch) -> bool {
    matches!(touch.wants, Wants::Open { directory: false, path_only: false })
}

/// `EACCES`: what a denied call gets.
pub(super) fn refusal(touch: u64) -> Reply {
    let errno = u16::try_from(Errno::ACCESS.raw_os_error()).unwrap_or(13);
    Reply::Fail { touch, errno }
}
