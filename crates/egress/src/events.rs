//! Reports events to the supervisor, in order, at the supervisor's pace.
//!
//! A workload can cause events as fast as it can open connections, and each is written to the host's disk. The
//! first thousand are reported one by one, later ones up to a rate, the rest as sums at growing intervals: an
//! hour of this produces a few megabytes. New connections wait while the queue is full. An event must never be
//! lost: what is not reported singly is counted. Denied attempts must never hide what was reached, so each of
//! the two has its own budget.

mod account;
mod sum;

use crate::wire::EgressEvent;
use account::Account;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use sum::Key;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep, sleep_until};

/// How many events of each account are reported singly in every second of a run.
const SINGLY_A_SECOND: u32 = 1;
/// The same for a standalone proxy, which serves many clients for a long time.
pub(crate) const SINGLY_A_SECOND_ALONE: u32 = 20;
/// From this length on, new connections wait until the supervisor has read.
const MAX_QUEUE_LEN: usize = 1024;
/// Limit for a reported host or query name. Names have up to 253 characters, and those of real hosts far fewer.
const MAX_NAME_LEN: usize = 100;
/// Limit for a reason, which may contain two names and other text, or for an option.
const MAX_TEXT_LEN: usize = 300;
/// Longer than it takes to establish a connection, and too short for a person to notice.
const GATHERED_WITHIN: Duration = Duration::from_millis(5);

/// Where events go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events {
    shared: Rc<Shared>,
}

/// The receiving end, for the code that passes events on.
#[derive(Debug)]
pub struct Outbox {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: RefCell<VecDeque<EgressEvent>>,
    /// Hosts that were reached, and the bytes carried.
    reached: RefCell<Account>,
    /// Refused connections, name queries, and connections from outside.
    rest: RefCell<Account>,
    added: Notify,
    taken: Notify,
}

impl Events {
    /// For one run.
    pub fn new() -> (Self, Outbox) {
        Self::with_pace(SINGLY_A_SECOND)
    }

    /// With another number of events reported singly per second.
    pub(crate) fn with_pace(singly_a_second: u32) -> (Self, Outbox) {
        let shared = Rc::new(Shared {
            queue: RefCell::default(),
            reached: RefCell::new(Account::new(singly_a_second)),
            rest: RefCell::new(Account::new(singly_a_second)),
            added: Notify::new(),
            taken: Notify::new(),
        });
        (Self { shared: Rc::clone(&shared) }, Outbox { shared })
    }

    /// Reports the event, singly or in a sum. Never waits: see [`Events::room`].
    pub fn tell(&self, event: EgressEvent) {
        let event = shortened(event);
        match Key::of(&event) {
            Some(key) => self.shared.account_for(key, event),
            None => self.shared.queue.borrow_mut().push_back(event),
        }
        self.shared.added.notify_one();
    }

    /// Returns when the queue has room. Code that produces events waits here first.
    pub async fn room(&self) {
        while self.shared.queue.borrow().len() >= MAX_QUEUE_LEN {
            self.shared.taken.notified().await;
        }
    }
}

impl Shared {
    /// Reports the event singly if the budget of its account allows it, and otherwise adds it to a sum.
    fn account_for(&self, key: Key, event: EgressEvent) {
        let account = if key.is_of_way_out() { &self.reached } else { &self.rest };
        let (mut account, mut queue) = (account.borrow_mut(), self.queue.borrow_mut());
        let now = Instant::now();
        let is_within = queue.len() < MAX_QUEUE_LEN && account.take(now);
        if account.is_new_place(&key) || is_within {
            queue.push_back(event);
        } else {
            account.add_up(key, event, now);
        }
    }

    /// When the next sums are to be reported.
    fn due(&self) -> Option<Instant> {
        [&self.reached, &self.rest].into_iter().filter_map(|account| account.borrow().due()).min()
    }

    fn flush(&self) {
        let now = Instant::now();
        for account in [&self.reached, &self.rest] {
            self.queue.borrow_mut().extend(account.borrow_mut().flush(now));
        }
    }
}

impl Outbox {
    /// The next event or sum.
    pub async fn next(&mut self) -> EgressEvent {
        loop {
            self.wait().await;
            if let Some(event) = self.take() {
                return event;
            }
        }
    }

    /// Returns at once if an urgent event is in the queue, and otherwise some time after the first event
    /// arrives. Without the delay, the reader would be woken in the middle of every new connection.
    pub(crate) async fn gather(&mut self) {
        self.wait().await;
        let is_urgent = self.shared.queue.borrow().iter().any(|event| Key::of(event).is_none());
        if !is_urgent {
            sleep(GATHERED_WITHIN).await;
        }
    }

    /// Passes the queued events on. Each is removed only after `pass` has succeeded, so none is lost if the
    /// future is dropped.
    pub(crate) async fn hand_on<E>(
        &mut self,
        mut pass: impl AsyncFnMut(&EgressEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let Some(event) = self.shared.queue.borrow().front().cloned() else { return Ok(()) };
            pass(&event).await?;
            self.take();
        }
    }

    /// Returns when the queue is not empty.
    async fn wait(&mut self) {
        while self.shared.queue.borrow().is_empty() {
            match self.shared.due() {
                None => self.shared.added.notified().await,
                Some(due) => tokio::select! {
                    () = self.shared.added.notified() => {}
                    () = sleep_until(due) => self.shared.flush(),
                },
            }
        }
    }

    /// All events not yet reported, including sums.
    pub fn rest(&mut self) -> Vec<EgressEvent> {
        let event = std::iter::from_fn(|| self.take()).collect::<Vec<_>>();
        let [reached, rest] = [&self.shared.reached, &self.shared.rest];
        let sums = [reached, rest].into_iter().flat_map(|account| account.borrow_mut().rest());
        event.into_iter().chain(sums).collect()
    }

    fn take(&mut self) -> Option<EgressEvent> {
        let event = self.shared.queue.borrow_mut().pop_front();
        if event.is_some() {
            self.shared.taken.notify_waiters();
        }
        event
    }
}

/// Limits the text that programs inside control to what a person would read.
fn shortened(mut event: EgressEvent) -> EgressEvent {
    match &mut event {
        EgressEvent::Attempt(attempt) => {
            shorten_name(&mut attempt.host);
            attempt.reason.iter_mut().for_each(shorten_text);
            // A truncated option would allow something else.
            attempt.allow.take_if(|option| option.len() > MAX_TEXT_LEN);
        }
        EgressEvent::Closed(closed) => shorten_name(&mut closed.host),
        EgressEvent::Queried(queried) => {
            shorten_name(&mut queried.name);
            [&mut queried.reason, &mut queried.suspicion]
                .into_iter()
                .flatten()
                .for_each(shorten_text);
        }
        EgressEvent::Ready
        | EgressEvent::Asked { .. }
        | EgressEvent::Withdrawn { .. }
        | EgressEvent::Unable { .. } => {}
    }
    event
}

/// Keeps the end of a name, which identifies its owner; the part before it may be arbitrary.
fn shorten_name(name: &mut String) {
    if let Some((last, _)) = name.char_indices().rev().nth(MAX_NAME_LEN) {
        let first_kept = name.ceil_char_boundary(last + 1);
        name.replace_range(..first_kept, "…");
    }
}

fn shorten_text(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT_LEN) {
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
