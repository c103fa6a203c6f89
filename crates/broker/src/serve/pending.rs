//! Calls that wait for the supervisor's answer, and calls that were allowed once and are watched until they
//! return.
//!
//! A waiting call never delays others. What cannot be sent yet is queued; every queue is bounded.

use super::outbox::Outbox;
use super::reading::Reading;
use crate::call::Call;
use crate::caller::Caller;
use crate::message::BrokerMessage;
use crate::path_call::PathCall;
use crate::signals::Signals;
use palisade_gate::{PathAccess, Wants};
use palisade_sys::notify::{Listener, Notification, Response};
use palisade_sys::{Errno, OFlags, Pid};
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The bound for all calls that wait: the supervisor keeps those in line whose questions it cannot show yet. Each costs some
/// hundred bytes here and there, and a thread of the command's; more would be a flood that no person could answer.
const MAX_WAITING: usize = 4096;
/// How often waiting calls are checked, and how many at once.
const ROUND: Duration = Duration::from_millis(50);
const A_ROUND: usize = 256;
/// How soon a call may have returned, and when waiting for it stops.
const FIRST_LOOK: Duration = Duration::from_micros(200);
const LAST_LOOK: Duration = Duration::from_secs(1);
const RUNS: Duration = Duration::from_millis(100);
/// The supervisor ends a grant for one call long before; its message must not be awaited forever.
const ENDS: Duration = Duration::from_secs(3);
/// How long an interrupted call may take to be made again: the question stays open that long.
const COMING_BACK: Duration = Duration::from_millis(500);
/// How long an answer to a withdrawn call may still arrive: an unread one would keep the supervisor from
/// sending others.
const MAIL_COMES: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) caller: Caller,
    /// As it was reported, and as it was written if that was an absolute path, too.
    pub(crate) paths: (Vec<u8>, Option<Vec<u8>>),
    pub(crate) follow: bool,
    pub(crate) wants: Wants,
    pub(crate) then: Then,
    /// Whether it was granted a moment ago, and did not find what was granted.
    pub(crate) is_second_look: bool,
    /// A signal is pending that another thread may take.
    pub(crate) was_signalled: bool,
}

/// What performs the call once it may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Kernel,
    Broker(Call),
    /// The source of the rename is visible; its new name may still be a question.
    BrokerAsksTarget(Call),
    Read(Reading),
    TestWriting(PathCall),
}

#[derive(Debug)]
struct Watched {
    request: u64,
    thread: Pid,
    /// What `/proc` showed of the call while it waited.
    call: Vec<u8>,
    since: Instant,
    next: Instant,
}

#[derive(Debug)]
struct Interrupted {
    request: u64,
    thread: Pid,
    since: Instant,
}

#[derive(Debug)]
pub(crate) struct PendingCalls {
    listener: &'static Listener,
    proc: &'static OwnedFd,
    waiting: HashMap<u64, Waiting>,
    /// In the order in which they are checked; an answered call stays until the next check.
    turn: VecDeque<u64>,
    next_round: Instant,
    watched: Vec<Watched>,
    interrupted: Vec<Interrupted>,
    outbox: Outbox,
    mail_comes_until: Option<Instant>,
    /// What is shown for one call only, by its request, and since when.
    shown: HashMap<u64, Instant>,
    /// Calls that arrived meanwhile.
    held: VecDeque<Notification>,
}

impl PendingCalls {
    pub(crate) fn new(listener: &'static Listener, proc: &'static OwnedFd) -> Self {
        Self {
            listener,
            proc,
            waiting: HashMap::new(),
            turn: VecDeque::new(),
            next_round: Instant::now(),
            watched: Vec::new(),
            interrupted: Vec::new(),
            outbox: Outbox::default(),
            mail_comes_until: None,
            shown: HashMap::new(),
            held: VecDeque::new(),
        }
    }

    /// Whether the only thing to do is to receive calls.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.watched.is_empty()
            && self.interrupted.is_empty()
            && self.outbox.is_empty()
            && self.mail_comes_until.is_none()
            && self.shown.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING
    }

    pub(crate) fn has_mail(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether a call may meet what is shown for another one, or ends what is.
    pub(crate) fn needs_order(&self) -> bool {
        !self.shown.is_empty() || !self.watched.is_empty() || !self.held.is_empty()
    }

    /// When [`Self::tend`] has something to do again.
    pub(crate) fn due(&self) -> Option<Instant> {
        let round = (!self.waiting.is_empty()).then_some(self.next_round);
        let watched = self.watched.iter().map(|watched| watched.next);
        let interrupted = self.interrupted.iter().map(|call| call.since + COMING_BACK);
        let mail = self.mail_comes_until;
        let shown = self.shown.values().map(|since| *since + ENDS);
        let next = round.into_iter().chain(watched).chain(interrupted).chain(mail).chain(shown);
        next.min()
    }

    pub(crate) fn wait_for_answer(
        &mut self,
        supervisor: &OwnedFd,
        request: PathAccess,
        waiting: Waiting,
    ) {
        let (id, thread) = (request.id, waiting.caller.thread);
        if self.waiting.is_empty() {
            self.next_round = Instant::now() + ROUND;
        }
        self.waiting.insert(id, waiting);
        self.turn.push_back(id);
        self.post(supervisor, &BrokerMessage::PathAccess(request));
        // Only now: the question stays if this is the same call, made again.
        self.come_back(supervisor, thread);
    }

    pub(crate) fn take(&mut self, request: u64) -> Option<Waiting> {
        self.waiting.remove(&request)
    }

    /// Something is visible for one call, and soon no longer.
    pub(crate) fn show(&mut self, request: u64) {
        self.shown.insert(request, Instant::now());
    }

    pub(crate) fn hide(&mut self, request: u64) {
        self.shown.remove(&request);
    }

    /// Defers a call until nothing is visible for another call only: it would see that, or see it disappear.
    pub(crate) fn hold(&mut self, notification: &Notification) -> bool {
        let holds = !self.shown.is_empty();
        if holds {
            self.held.push_back(*notification);
        }
        holds
    }

    /// The next deferred call that is due.
    pub(crate) fn take_held(&mut self) -> Option<Notification> {
        if self.shown.is_empty() { self.held.pop_front() } else { None }
    }

    /// A thread that makes a call has returned from the one before.
    pub(crate) fn notice(&mut self, supervisor: &OwnedFd, thread: Pid) {
        if self.watched.is_empty() {
            return;
        }
        let (over, still) = self.watched.drain(..).partition(|watched| watched.thread == thread);
        self.watched = still;
        self.tell_returned(supervisor, over);
    }

    /// Watches a call that will continue, and reports when it has returned.
    pub(crate) fn watch(&mut self, supervisor: &OwnedFd, request: u64, thread: Pid) {
        let Some(call) = self.call_of(thread) else {
            return self.post(supervisor, &BrokerMessage::Returned { request });
        };
        let since = Instant::now();
        let next = since + FIRST_LOOK;
        self.watched.push(Watched { request, thread, call, since, next });
    }

    /// Checks all calls that are due.
    pub(crate) fn tend(&mut self, supervisor: &OwnedFd) {
        let now = Instant::now();
        if !self.waiting.is_empty() && now >= self.next_round {
            self.next_round = now + ROUND;
            self.look_after_waiting(supervisor, now);
        }
        let mut over = Vec::new();
        for mut watched in std::mem::take(&mut self.watched) {
            if now >= watched.next {
                let waited = now.duration_since(watched.since);
                if waited >= LAST_LOOK || self.has_returned(&watched) {
                    over.push(watched);
                    continue;
                }
                watched.next = now + waited.max(FIRST_LOOK);
            }
            self.watched.push(watched);
        }
        self.tell_returned(supervisor, over);
        self.shown.retain(|_, since| now.duration_since(*since) < ENDS);
        self.mail_comes_until = self.mail_comes_until.filter(|until| now < *until);
        let is_late = |call: &Interrupted| now.duration_since(call.since) >= COMING_BACK;
        self.withdraw(supervisor, is_late);
    }

    /// Sends what is queued, as far as there is room.
    pub(crate) fn flush(&mut self, supervisor: &OwnedFd) {
        self.outbox.flush(supervisor);
    }

    pub(crate) fn post(&mut self, supervisor: &OwnedFd, message: &BrokerMessage) {
        self.outbox.post(supervisor, message);
    }

    /// A call is denied because it cannot wait as well.
    pub(crate) fn count_unasked(&mut self, supervisor: &OwnedFd) {
        self.outbox.count_unasked(supervisor);
    }

    fn look_after_waiting(&mut self, supervisor: &OwnedFd, now: Instant) {
        for _ in 0..self.turn.len().min(A_ROUND) {
            let Some(request) = self.turn.pop_front() else { return };
            let Some(waiting) = self.waiting.get_mut(&request) else { continue };
            if !self.listener.is_waiting(request) {
                self.waiting.remove(&request);
                self.tell_withdrawn(supervisor, request);
                continue;
            }
            let thread = waiting.caller.thread;
            let signals = status_of(self.proc, thread).and_then(|text| Signals::of_status(&text));
            let signals = signals.unwrap_or_default();
            let is_sure = signals.errno() != Errno::INTR || waiting.was_signalled;
            waiting.was_signalled = signals.interrupt();
            if signals.interrupt() && is_sure {
                let _ = self.listener.respond(request, Response::Fail(signals.errno()));
                self.waiting.remove(&request);
                self.interrupted.push(Interrupted { request, thread, since: now });
            } else {
                self.turn.push_back(request);
            }
        }
    }

    fn has_returned(&self, watched: &Watched) -> bool {
        match self.call_of(watched.thread) {
            // In the call or after it: that cannot be determined, but no call runs that long without waiting.
            Some(call) if call == b"running\n" => watched.since.elapsed() >= RUNS,
            Some(call) => call != watched.call,
            None => true,
        }
    }

    fn call_of(&self, thread: Pid) -> Option<Vec<u8>> {
        read_small(self.proc, thread, "syscall")
    }

    fn come_back(&mut self, supervisor: &OwnedFd, thread: Pid) {
        self.withdraw(supervisor, |call| call.thread == thread);
    }

    fn withdraw(&mut self, supervisor: &OwnedFd, is_meant: impl Fn(&Interrupted) -> bool) {
        let (meant, rest): (Vec<_>, Vec<_>) = self.interrupted.drain(..).partition(is_meant);
        self.interrupted = rest;
        for Interrupted { request, .. } in meant {
            self.tell_withdrawn(supervisor, request);
        }
    }

    fn tell_withdrawn(&mut self, supervisor: &OwnedFd, request: u64) {
        self.mail_comes_until = Some(Instant::now() + MAIL_COMES);
        self.post(supervisor, &BrokerMessage::Withdrawn { request });
    }

    fn tell_returned(&mut self, supervisor: &OwnedFd, over: Vec<Watched>) {
        for Watched { request, .. } in over {
            self.post(supervisor, &BrokerMessage::Returned { request });
        }
    }
}

fn status_of(proc: &OwnedFd, thread: Pid) -> Option<String> {
    String::from_utf8(read_small(proc, thread, "status")?).ok()
}

fn read_small(proc: &OwnedFd, thread: Pid, name: &str) -> Option<Vec<u8>> {
    let path = format!("{}/{name}", thread.as_raw_pid());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, path, flags, crate::NO_MODE).ok()?;
    let mut text = vec![0; 4096];
    let length = rustix::io::read(&file, &mut text).ok()?;
    text.truncate(length);
    Some(text)
}
