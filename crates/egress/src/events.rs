//! What the process tells, in order, at a pace the supervisor sets.
//!
//! A workload can make events as fast as it can open connections. So many a second are told one by one, the
//! rest in sums, and nothing new is let in while the queue is full. An event must never be lost: what is not
//! told singly is counted.

use crate::wire::Told;
use palisade_record::network::{Action, ConnectionClosed, NameQueried, NetworkAttempt, Via};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep, sleep_until};

/// So many events are told one by one in a second. A person reads no more, and a build that downloads a few
/// hundred packages stays below it.
const SINGLY_A_SECOND: u32 = 250;
/// From here on, what is new waits until the supervisor has read.
const LONGEST_QUEUE: usize = 1024;
/// Sums are kept apart by host up to here; random names would otherwise fill memory.
const MOST_SUMS: usize = 512;
const SUM_EVERY: Duration = Duration::from_secs(1);
/// Longer than it takes to make a connection, and too short for a person to notice.
const GATHERED_WITHIN: Duration = Duration::from_millis(5);
/// Stands for the hosts that were too many to be kept apart.
const OTHERS: &str = "(others)";

/// Where events go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events {
    shared: Rc<Shared>,
}

/// Where they come out, for whoever passes them on.
#[derive(Debug)]
pub struct Outbox {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: RefCell<VecDeque<Told>>,
    sums: RefCell<BTreeMap<Key, Told>>,
    /// The second that is being counted, and how many were told in it.
    second: Cell<Option<Instant>>,
    singly: Cell<u32>,
    added: Notify,
    taken: Notify,
}

/// What makes two events alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Attempt { action: Action, via: Via, host: String, port: u16, reason: Option<String> },
    Closed { via: Via, host: String, port: u16 },
    Queried { name: String, record: String, answer: String, suspicion: Option<String> },
}

impl Events {
    pub fn new() -> (Self, Outbox) {
        let shared = Rc::new(Shared {
            queue: RefCell::default(),
            sums: RefCell::default(),
            second: Cell::new(None),
            singly: Cell::new(0),
            added: Notify::new(),
            taken: Notify::new(),
        });
        (Self { shared: Rc::clone(&shared) }, Outbox { shared })
    }

    /// Tells it, alone or in a sum. Never waits: see [`Events::room`].
    pub fn tell(&self, told: Told) {
        match Key::of(&told) {
            Some(key) if !self.shared.may_tell_singly() => self.shared.add_up(key, told),
            _ => self.shared.queue.borrow_mut().push_back(told),
        }
        self.shared.added.notify_one();
    }

    /// Returns when there is room for more. Whatever makes an event waits here first.
    pub async fn room(&self) {
        while self.shared.queue.borrow().len() >= LONGEST_QUEUE {
            self.shared.taken.notified().await;
        }
    }
}

impl Shared {
    fn may_tell_singly(&self) -> bool {
        let now = Instant::now();
        if self.second.get().is_none_or(|began| now.duration_since(began) >= SUM_EVERY) {
            self.second.set(Some(now));
            self.singly.set(0);
        }
        let told = self.singly.get();
        self.singly.set(told.saturating_add(1));
        told < SINGLY_A_SECOND && self.queue.borrow().len() < LONGEST_QUEUE
    }

    fn add_up(&self, key: Key, told: Told) {
        let mut sums = self.sums.borrow_mut();
        let (key, told) = if sums.len() >= MOST_SUMS && !sums.contains_key(&key) {
            (key.among_others(), among_others(told))
        } else {
            (key, told)
        };
        match sums.get_mut(&key) {
            Some(sum) => join(sum, told),
            None => drop(sums.insert(key, told)),
        }
    }

    fn flush(&self) {
        let sums = std::mem::take(&mut *self.sums.borrow_mut());
        self.queue.borrow_mut().extend(sums.into_values());
    }
}

impl Outbox {
    /// The next event; sums come once a second.
    pub async fn next(&mut self) -> Told {
        loop {
            self.wait().await;
            if let Some(told) = self.take() {
                return told;
            }
        }
    }

    /// Returns when there is something to tell that can not wait, or some time after there is something: whoever
    /// listens would otherwise be woken in the midst of every connection that is being made.
    pub(crate) async fn gather(&mut self) {
        self.wait().await;
        let is_urgent = self.shared.queue.borrow().iter().any(|told| Key::of(told).is_none());
        if !is_urgent {
            sleep(GATHERED_WITHIN).await;
        }
    }

    /// Hands on what is there, each event taken off only after it was passed on: nothing is lost if this is
    /// dropped meanwhile.
    pub(crate) async fn hand_on<E>(
        &mut self,
        mut pass: impl AsyncFnMut(&Told) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let Some(told) = self.shared.queue.borrow().front().cloned() else { return Ok(()) };
            pass(&told).await?;
            self.take();
        }
    }

    /// Returns when something is in the queue.
    async fn wait(&mut self) {
        while self.shared.queue.borrow().is_empty() {
            let due = if self.shared.sums.borrow().is_empty() {
                None
            } else {
                Some(self.shared.second.get().unwrap_or_else(Instant::now) + SUM_EVERY)
            };
            match due {
                None => self.shared.added.notified().await,
                Some(due) => tokio::select! {
                    () = self.shared.added.notified() => {}
                    () = sleep_until(due) => self.shared.flush(),
                },
            }
        }
    }

    /// What is untold by now, sums included.
    pub fn rest(&mut self) -> Vec<Told> {
        self.shared.flush();
        std::iter::from_fn(|| self.take()).collect()
    }

    fn take(&mut self) -> Option<Told> {
        let told = self.shared.queue.borrow_mut().pop_front();
        if told.is_some() {
            self.shared.taken.notify_waiters();
        }
        told
    }
}

impl Key {
    /// `None` for what is always told alone.
    fn of(told: &Told) -> Option<Self> {
        Some(match told {
            Told::Attempt(attempt) => Self::Attempt {
                action: attempt.action,
                via: attempt.via,
                host: attempt.host.clone(),
                port: attempt.port,
                reason: attempt.reason.clone(),
            },
            Told::Closed(closed) => {
                Self::Closed { via: closed.via, host: closed.host.clone(), port: closed.port }
            }
            Told::Queried(queried) => Self::Queried {
                name: queried.name.clone(),
                record: queried.record.clone(),
                answer: queried.answer.clone(),
                suspicion: queried.suspicion.clone(),
            },
            Told::Ready | Told::Asked { .. } | Told::Withdrawn { .. } | Told::Unable { .. } => {
                return None;
            }
        })
    }

    fn among_others(self) -> Self {
        let host = OTHERS.to_owned();
        match self {
            Self::Attempt { action, via, .. } => {
                Self::Attempt { action, via, host, port: 0, reason: None }
            }
            Self::Closed { via, .. } => Self::Closed { via, host, port: 0 },
            Self::Queried { answer, suspicion, .. } => {
                Self::Queried { name: host, record: String::new(), answer, suspicion }
            }
        }
    }
}

fn among_others(told: Told) -> Told {
    match told {
        Told::Attempt(attempt) => Told::Attempt(NetworkAttempt {
            host: OTHERS.to_owned(),
            address: None,
            port: 0,
            rule: None,
            reason: None,
            allow: None,
            ..attempt
        }),
        Told::Closed(closed) => Told::Closed(ConnectionClosed {
            host: OTHERS.to_owned(),
            address: None,
            port: 0,
            ..closed
        }),
        Told::Queried(queried) => Told::Queried(NameQueried {
            name: OTHERS.to_owned(),
            record: "any".to_owned(),
            rule: None,
            ..queried
        }),
        other => other,
    }
}

/// Adds an event to the sum of those like it.
fn join(sum: &mut Told, told: Told) {
    match (sum, told) {
        (Told::Attempt(sum), Told::Attempt(more)) => {
            sum.count = sum.count.saturating_add(more.count);
        }
        (Told::Closed(sum), Told::Closed(more)) => {
            sum.count = sum.count.saturating_add(more.count);
            sum.sent = sum.sent.saturating_add(more.sent);
            sum.received = sum.received.saturating_add(more.received);
            sum.duration_ms = sum.duration_ms.saturating_add(more.duration_ms);
        }
        (Told::Queried(sum), Told::Queried(more)) => {
            sum.count = sum.count.saturating_add(more.count);
        }
        // Keys of different kinds are never equal.
        _ => {}
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
