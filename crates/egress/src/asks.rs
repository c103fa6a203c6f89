//! Questions about hosts that no rule names. Connections to the same host and port share one question.
//!
//! A question is withdrawn when no connection waits for it any more. A missing answer must never count as a
//! yes. A connection whose question finds no room waits in line, as a call does that touches a file: what is
//! denied because others asked first looks like a broken network.

use crate::events::Events;
use crate::rate::Bucket;
use crate::wire::{EgressEvent, Holds};
use palisade_hosts::Host;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::sync::{Notify, watch};
use tokio::task::futures::TaskLocalFuture;

/// Limit for open questions: a person would not answer more, and random names would fill memory.
const MAX_OPEN: usize = 32;
/// Limit for connections whose questions find no room yet.
const MAX_IN_LINE: usize = 4096;
/// New questions allowed per second, with a burst of twice as many. A client that hangs up before the answer
/// keeps no question open, but each one is shown to people and logged.
const NEW_A_SECOND: u32 = 16;
/// How many questions of a run may come at that rate. After that, one per second is allowed, and unused seconds
/// accumulate. Otherwise log and terminal output would grow for as long as the run lasts.
const NEW_AT_FIRST: u32 = 200;
const NEW_A_SECOND_LATER: u32 = 1;
/// How many withdrawn questions are remembered: an answer for the session may have crossed the withdrawal.
const REMEMBERED: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    /// Who decided.
    pub(crate) source: String,
}

/// Why no question can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("too many questions are open")]
    Open,
    #[error("too many questions came in a short time")]
    New,
}

/// An answer that applies from now on, with its host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastingAnswer {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) allowed: bool,
    pub(crate) source: String,
}

#[derive(Debug)]
pub(crate) struct Asks {
    events: Events,
    state: RefCell<State>,
    /// Wakes those in line when a question was closed.
    has_room: Notify,
}

#[derive(Debug)]
struct State {
    asked: u64,
    open: BTreeMap<u64, Open>,
    in_line: usize,
    withdrawn: VecDeque<(u64, Host, u16)>,
    pace: Pace,
}

/// The rate limit for new questions.
#[derive(Debug)]
struct Pace {
    at_first: Bucket,
    in_the_long_run: Bucket,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self {
            at_first: Bucket::new(NEW_A_SECOND, now),
            in_the_long_run: Bucket::with_burst(NEW_A_SECOND_LATER, NEW_AT_FIRST, now),
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        self.at_first.take(now) && self.in_the_long_run.take(now)
    }
}

#[derive(Debug)]
struct Open {
    host: Host,
    port: u16,
    waiting: usize,
    answer: watch::Sender<Option<Answer>>,
}

type Answered = watch::Receiver<Option<Answer>>;

/// A connection that waits for an answer. Dropping it stops the wait.
struct Waiting<'a> {
    asks: &'a Asks,
    ask: u64,
}

tokio::task_local! {
    /// The client whose connection this task serves, by its address inside.
    static CLIENT: SocketAddr;
}

/// Questions asked by `serving` name this client. Not an `async fn`, which would store its argument twice.
pub(crate) fn on_behalf_of<F: Future>(
    client: SocketAddr,
    serving: F,
) -> TaskLocalFuture<SocketAddr, F> {
    CLIENT.scope(client, serving)
}

impl Asks {
    pub(crate) fn new(events: Events) -> Self {
        let state = State {
            asked: 0,
            open: BTreeMap::new(),
            in_line: 0,
            withdrawn: VecDeque::new(),
            pace: Pace::new(Instant::now()),
        };
        Self { events, state: RefCell::new(state), has_room: Notify::new() }
    }

    /// Waits for an answer. Dropping the future stops the wait.
    pub(crate) async fn ask(&self, host: &Host, port: u16) -> Result<Answer, TooMany> {
        let (ask, mut answered) = match self.join(host, port) {
            Err(TooMany::Open) => self.join_in_turn(host, port).await?,
            joined => joined?,
        };
        let _waiting = Waiting { asks: self, ask };
        let answer = answered.wait_for(Option::is_some).await;
        // Unreachable: a question is not removed while a connection waits for it, except with an answer.
        answer.ok().and_then(|answer| answer.clone()).ok_or(TooMany::Open)
    }

    /// Waits in line for a question. All who wait look when one was closed, in order: who opens the next may do so for
    /// others behind it, too.
    async fn join_in_turn(&self, host: &Host, port: u16) -> Result<(u64, Answered), TooMany> {
        let _place = Place::take(self)?;
        loop {
            // Made before looking, so that what is closed in between wakes it.
            let woken = self.has_room.notified();
            match self.join(host, port) {
                Err(TooMany::Open) => woken.await,
                joined => return joined,
            }
        }
    }

    fn join(&self, host: &Host, port: u16) -> Result<(u64, Answered), TooMany> {
        let mut state = self.state.borrow_mut();
        if let Some((ask, open)) =
            state.open.iter_mut().find(|(_, open)| open.host == *host && open.port == port)
        {
            open.waiting += 1;
            return Ok((*ask, open.answer.subscribe()));
        }
        if state.open.len() >= MAX_OPEN {
            return Err(TooMany::Open);
        }
        if !state.pace.take(Instant::now()) {
            return Err(TooMany::New);
        }
        state.asked += 1;
        let ask = state.asked;
        let (answer, answered) = watch::channel(None);
        state.open.insert(ask, Open { host: host.clone(), port, waiting: 1, answer });
        let client = CLIENT.try_with(|client| *client).ok();
        self.events.tell(EgressEvent::Asked { ask, host: host.to_string(), port, client });
        Ok((ask, answered))
    }

    /// Passes an answer to the waiting connections. Returns it if it applies to the whole session.
    pub(crate) fn answer(&self, ask: u64, answer: Answer, holds: Holds) -> Option<LastingAnswer> {
        let mut state = self.state.borrow_mut();
        let (host, port) = match state.open.remove(&ask) {
            Some(open) => {
                self.has_room.notify_waiters();
                open.answer.send_replace(Some(answer.clone()));
                (open.host, open.port)
            }
            None => {
                let at = state.withdrawn.iter().position(|(withdrawn, ..)| *withdrawn == ask)?;
                let (_, host, port) = state.withdrawn.remove(at)?;
                (host, port)
            }
        };
        let Answer { allowed, source } = answer;
        (holds == Holds::Session).then_some(LastingAnswer { host, port, allowed, source })
    }

    fn leave(&self, ask: u64) {
        let mut state = self.state.borrow_mut();
        let Some(open) = state.open.get_mut(&ask) else { return };
        open.waiting -= 1;
        if open.waiting > 0 {
            return;
        }
        if let Some(open) = state.open.remove(&ask) {
            self.has_room.notify_waiters();
            if state.withdrawn.len() >= REMEMBERED {
                state.withdrawn.pop_front();
            }
            state.withdrawn.push_back((ask, open.host, open.port));
            self.events.tell(EgressEvent::Withdrawn { ask });
        }
    }
}

/// A place in line. Dropping it leaves the line.
struct Place<'a>(&'a Asks);

impl<'a> Place<'a> {
    fn take(asks: &'a Asks) -> Result<Self, TooMany> {
        let mut state = asks.state.borrow_mut();
        if state.in_line >= MAX_IN_LINE {
            return Err(TooMany::Open);
        }
        state.in_line += 1;
        Ok(Self(asks))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state.borrow_mut().in_line -= 1;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.asks.leave(self.ask);
    }
}

#[cfg(test)]
#[path = "asks_tests.rs"]
mod tests;
