//! What the process tells, in order, at a pace the supervisor sets.
//!
//! A workload can make events as fast as it can open connections, and each ends up on the host's disk. The first
//! thousand are told one by one, later ones as far as so many a second allow, the rest in sums, which come the more
//! seldom the longer that lasts: an hour of it in a run makes a few megabytes. Nothing new is let in while the queue is full.
//! An event must never be lost: what is not told singly is counted.

use crate::rate::Bucket;
use crate::wire::Told;
use palisade_record::network::{Action, ConnectionClosed, NameQueried, NetworkAttempt, Via};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep, sleep_until};

/// So many events are told one by one, at first or after a quiet time. A build that downloads a few hundred packages
/// stays below it.
const SINGLY_AT_ONCE: u32 = 1000;
/// And so many in every second of a run.
const SINGLY_A_SECOND: u32 = 1;
/// The same for a proxy that runs alone, for many and for long.
pub(crate) const SINGLY_A_SECOND_ALONE: u32 = 20;
/// From here on, what is new waits until the supervisor has read.
const LONGEST_QUEUE: usize = 1024;
/// Sums are kept apart by host up to here; random names would otherwise fill memory and disk.
const MOST_SUMS: usize = 32;
/// After the first event of a sum it is told.
const SUM_AFTER: Duration = Duration::from_secs(1);
/// Each time later, up to this, as long as events come too fast.
const SUM_AFTER_AT_MOST: Duration = Duration::from_secs(60);
/// Of a host, a rule or a query that is told. Names have up to 253 characters, and those of real hosts far fewer.
const LONGEST_NAME: usize = 100;
/// Of a reason, which may hold two of them and words, or of an option.
const LONGEST_TEXT: usize = 300;
/// Longer than it takes to make a connection, and too short for a person to notice.
const GATHERED_WITHIN: Duration = Duration::from_millis(5);
/// Stands for the hosts that were too many to be kept apart.
pub(crate) const OTHERS: &str = "(others)";
/// Stands for what was said of each of them.
const SUSPICIOUS: &str = "data in names";

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
    /// When the sums are told, if there are any.
    due: Cell<Option<Instant>>,
    /// How long those took that were told last, and when that was.
    sum_after: Cell<Duration>,
    flushed: Cell<Option<Instant>>,
    singly: RefCell<Bucket>,
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
    /// For one run.
    pub fn new() -> (Self, Outbox) {
        Self::with_pace(SINGLY_A_SECOND)
    }

    /// With another number of events that are told one by one in every second.
    pub(crate) fn with_pace(singly_a_second: u32) -> (Self, Outbox) {
        let shared = Rc::new(Shared {
            queue: RefCell::default(),
            sums: RefCell::default(),
            due: Cell::new(None),
            sum_after: Cell::new(SUM_AFTER),
            flushed: Cell::new(None),
            singly: RefCell::new(Bucket::with_burst(
                singly_a_second,
                SINGLY_AT_ONCE,
                Instant::now().into_std(),
            )),
            added: Notify::new(),
            taken: Notify::new(),
        });
        (Self { shared: Rc::clone(&shared) }, Outbox { shared })
    }

    /// Tells it, alone or in a sum. Never waits: see [`Events::room`].
    pub fn tell(&self, told: Told) {
        let told = shortened(told);
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
        self.queue.borrow().len() < LONGEST_QUEUE
            && self.singly.borrow_mut().take(Instant::now().into_std())
    }

    fn add_up(&self, key: Key, told: Told) {
        if self.due.get().is_none() {
            self.due.set(Some(self.next_due(Instant::now())));
        }
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

    /// When sums are told that begin now.
    fn next_due(&self, now: Instant) -> Instant {
        let before = self.sum_after.get();
        let goes_on = self.flushed.get().is_some_and(|flushed| now < flushed + before);
        let sum_after = if goes_on { (before * 2).min(SUM_AFTER_AT_MOST) } else { SUM_AFTER };
        self.sum_after.set(sum_after);
        now + sum_after
    }

    fn flush(&self) {
        let sums = std::mem::take(&mut *self.sums.borrow_mut());
        self.due.set(None);
        self.flushed.set(Some(Instant::now()));
        self.queue.borrow_mut().extend(sums.into_values());
    }
}

impl Outbox {
    /// The next event, or sum.
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
            match self.shared.due.get() {
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
            Self::Queried { answer, suspicion, .. } => Self::Queried {
                name: host,
                record: String::new(),
                answer,
                suspicion: suspicion.map(|_| SUSPICIOUS.to_owned()),
            },
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
            reason: None,
            suspicion: queried.suspicion.map(|_| SUSPICIOUS.to_owned()),
            ..queried
        }),
        other => other,
    }
}

/// Without more of what is chosen inside than a person reads.
fn shortened(mut told: Told) -> Told {
    match &mut told {
        Told::Attempt(attempt) => {
            shorten(&mut attempt.host, LONGEST_NAME);
            attempt.reason.iter_mut().for_each(|reason| shorten(reason, LONGEST_TEXT));
            // A part of an option would allow something else.
            attempt.allow.take_if(|option| option.len() > LONGEST_TEXT);
        }
        Told::Closed(closed) => shorten(&mut closed.host, LONGEST_NAME),
        Told::Queried(queried) => {
            shorten(&mut queried.name, LONGEST_NAME);
            let texts = [&mut queried.reason, &mut queried.suspicion];
            texts.into_iter().flatten().for_each(|text| shorten(text, LONGEST_TEXT));
        }
        Told::Ready | Told::Asked { .. } | Told::Withdrawn { .. } | Told::Unable { .. } => {}
    }
    told
}

fn shorten(text: &mut String, longest: usize) {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
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
