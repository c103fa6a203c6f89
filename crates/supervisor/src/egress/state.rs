//! Reacts to the events and questions of the egress process.
//!
//! Does no I/O: messages come in, [`Action`]s go out, so every order of events can be tested. It never allows a
//! host unless a policy or an answer does. Every question of the process gets exactly one answer, unless it is
//! withdrawn first.

use super::tally::Tally;
use crate::answers::HostAnswer;
use crate::asking::{Moment, People, who};
use palisade_ask::{
    Asked, Decided, HostSubject, Lifetime, NewQuestion, Now, Process, QuestionId, Source, Store,
    Subject,
};
use palisade_egress::wire::{EgressEvent, EgressRequest, Holds};
use palisade_gate::Effect;
use palisade_hosts::Host;
use palisade_policy::model::OnAsk;
use palisade_record::network::HostDecided;
use palisade_record::{Decision, EventKind};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The source of a denial of text that is not a valid host.
const NO_HOST: &str = "not-a-host";
/// Limit for the policy's answers that apply to the whole session, because the process remembers each. Beyond
/// it, the process asks every time and gets the same answer.
const MAX_STANDING: usize = 1000;
/// Limit for questions that wait in line. The process asks far fewer at once.
const MAX_IN_LINE: usize = palisade_ask::MAX_WAITING;

/// What the caller must do, in this order.
#[derive(Debug)]
pub(super) enum Action {
    Send(EgressRequest),
    /// For the audit log.
    Record(EventKind),
    /// Show this question to people.
    Opened(QuestionId),
    /// Another request is waiting for this question.
    Joined(QuestionId),
    /// The question no longer needs an answer.
    Closed(Box<Decided>),
    /// A person chose to always allow or deny it.
    Save(Box<HostAnswer>, Store),
    EndRun(String),
}

/// A question of the process that is not answered yet.
#[derive(Debug)]
struct Waiting {
    host: HostSubject,
    question: QuestionId,
    since: Instant,
}

/// A question of the process that people are not shown yet, because there is no room among those that they are shown.
#[derive(Debug)]
struct InLine {
    ask: u64,
    host: HostSubject,
    process: Option<Process>,
    since: Instant,
}

#[derive(Debug)]
pub(super) struct EgressState {
    on_ask: OnAsk,
    patience: Duration,
    /// By the process's ask numbers.
    waiting: HashMap<u64, Waiting>,
    /// In order. The process asks so few questions at once that this is short.
    in_line: VecDeque<InLine>,
    /// How many of the policy's answers apply to the whole session.
    standing: usize,
    /// Answers that people gave for the session.
    pub(super) answered: Vec<HostAnswer>,
    pub(super) actions: VecDeque<Action>,
    pub(super) tally: Tally,
}

impl EgressState {
    pub(super) fn new(on_ask: OnAsk, patience: Duration, tally: Tally) -> Self {
        Self {
            on_ask,
            patience,
            waiting: HashMap::new(),
            in_line: VecDeque::new(),
            standing: 0,
            answered: Vec::new(),
            actions: VecDeque::new(),
            tally,
        }
    }

    pub(super) fn on_ask(&self) -> OnAsk {
        self.on_ask
    }

    /// `asker` finds the program that owns a connection, if a person is to see it.
    pub(super) fn event(
        &mut self,
        event: EgressEvent,
        asker: impl FnOnce(SocketAddr) -> Option<Process>,
        at: &mut Moment<'_>,
    ) {
        match event {
            EgressEvent::Ready => {}
            EgressEvent::Attempt(attempt) => {
                self.tally.attempt(&attempt);
                self.record(EventKind::NetworkAttempt(Box::new(attempt)));
            }
            EgressEvent::Closed(closed) => {
                self.tally.closed(&closed);
                self.record(EventKind::ConnectionClosed(Box::new(closed)));
            }
            EgressEvent::Queried(queried) => {
                self.tally.queried(&queried);
                self.record(EventKind::NameQueried(Box::new(queried)));
            }
            EgressEvent::Asked { ask, host, port, client } => match Host::parse(&host) {
                Ok(host) => {
                    // In our parser's normal form, so that the host that a person reads is the one that is
                    // saved.
                    let host = HostSubject { host: host.to_string(), port };
                    self.asked(ask, host, || client.and_then(asker), at);
                }
                // Not a host, so nobody is asked: a yes could save something else, even a pattern.
                Err(_) => self.decide(ask, &HostSubject { host, port }, Decision::Denied, NO_HOST),
            },
            EgressEvent::Withdrawn { ask } => self.withdrawn(ask, at),
            EgressEvent::Unable { why } => self.actions.push_back(Action::EndRun(why)),
        }
    }

    /// A person answered, or the question timed out.
    pub(super) fn carry_out(&mut self, decided: Decided, now: Now) {
        let Subject::Host(host) = &decided.question.subject else { return };
        let is_allowed = decided.answer.is_allowed();
        let lifetime = decided.answer.lifetime();
        let answer = HostAnswer {
            effect: if is_allowed { Effect::Allow } else { Effect::Deny },
            host: host.to_string(),
            at: decided.at,
            by: who(&decided.source),
        };
        match lifetime {
            Lifetime::Once => {}
            Lifetime::Session => self.answered.push(answer),
            Lifetime::Always(store) => {
                self.actions.push_back(Action::Save(Box::new(answer), store));
            }
        }
        let holds = match lifetime {
            Lifetime::Once => Holds::Once,
            Lifetime::Session | Lifetime::Always(_) => Holds::Session,
        };
        let word = word_of(&decided.source);
        let mut since = None;
        for ask in &decided.question.requests {
            let Some(waiting) = self.waiting.remove(ask) else { continue };
            since = Some(since.map_or(waiting.since, |first: Instant| first.min(waiting.since)));
            self.send(*ask, is_allowed, holds, word);
        }
        let details = match &decided.source {
            Source::Socket { uid, pid, name } => Some(format!("{name} (uid {uid}, pid {pid})")),
            _ => None,
        };
        self.record(EventKind::HostDecided(Box::new(HostDecided {
            host: host.host.clone(),
            port: host.port,
            decision: if is_allowed { Decision::Allowed } else { Decision::Denied },
            lifetime: match lifetime {
                Lifetime::Once => "once".to_owned(),
                Lifetime::Session => "session".to_owned(),
                Lifetime::Always(store) => format!("always, {store}"),
            },
            source: word.to_owned(),
            details,
            question: Some(decided.question.id.0),
            latency_us: micros(since.unwrap_or(now.monotonic), now),
        })));
        self.actions.push_back(Action::Closed(Box::new(decided)));
    }

    /// The process has exited: withdraws all its questions.
    pub(super) fn process_is_gone(&mut self, at: &mut Moment<'_>) {
        let in_line = self.in_line.iter().map(|waiting| waiting.ask);
        let asks: Vec<u64> = self.waiting.keys().copied().chain(in_line).collect();
        asks.into_iter().for_each(|ask| self.withdrawn(ask, at));
    }

    /// Answers by the policy's `onAsk`, or asks a person.
    fn asked(
        &mut self,
        ask: u64,
        host: HostSubject,
        asker: impl FnOnce() -> Option<Process>,
        at: &mut Moment<'_>,
    ) {
        // Each ask number is used once. A repeated one is a fault of the process and gets no second answer.
        let is_in_line = self.in_line.iter().any(|waiting| waiting.ask == ask);
        if is_in_line || self.waiting.contains_key(&ask) {
            return;
        }
        match self.on_ask {
            OnAsk::Allow => return self.decide(ask, &host, Decision::Allowed, "on-ask"),
            OnAsk::Deny => return self.decide(ask, &host, Decision::Denied, "on-ask"),
            OnAsk::Ask if at.people == People::Nobody => {
                return self.decide(ask, &host, Decision::Denied, "nobody-to-ask");
            }
            OnAsk::Ask | OnAsk::Wait => {}
        }
        let since = at.now.monotonic;
        let new = InLine { ask, host, process: asker(), since };
        let is_behind = !self.in_line.is_empty() && !at.queue.is_open(&self.question(&new));
        if let Some(new) = if is_behind { Some(new) } else { self.open(new, at) } {
            self.put_in_line(new, at);
        }
    }

    fn question(&self, asked: &InLine) -> NewQuestion {
        NewQuestion {
            request: asked.ask,
            subject: Subject::Host(asked.host.clone()),
            reason: "no rule names it".to_owned(),
            process: asked.process.clone(),
            is_secret: false,
            patience: Some(self.patience),
        }
    }

    /// Shows a question to people; returns it if there is no room.
    fn open(&mut self, asked: InLine, at: &mut Moment<'_>) -> Option<InLine> {
        let question = match at.queue.ask(self.question(&asked), at.now) {
            Asked::New(id) => {
                self.actions.push_back(Action::Opened(id));
                id
            }
            Asked::Joined(id) => {
                self.actions.push_back(Action::Joined(id));
                id
            }
            Asked::Full => return Some(asked),
        };
        let InLine { ask, host, since, .. } = asked;
        self.waiting.insert(ask, Waiting { host, question, since });
        None
    }

    /// A connection waits for its turn, as a call does that touches a file. Its client may give up; then it leaves the line.
    fn put_in_line(&mut self, asked: InLine, at: &mut Moment<'_>) {
        if self.in_line.len() < MAX_IN_LINE {
            return self.in_line.push_back(asked);
        }
        at.queue.count_refused(1, MAX_IN_LINE);
        self.decide(asked.ask, &asked.host, Decision::Denied, "too-many-questions");
    }

    /// Whether somebody in line may have a turn now.
    pub(super) fn may_readmit(&self, at: &Moment<'_>) -> bool {
        !self.in_line.is_empty() && at.queue.room() > 0
    }

    /// Gives those in line their turn, as far as there is room. The time to answer begins when people can see the question.
    pub(super) fn readmit(&mut self, at: &mut Moment<'_>) {
        while let Some(first) = self.in_line.pop_front() {
            if self.on_ask == OnAsk::Ask && at.people == People::Nobody {
                self.decide(first.ask, &first.host, Decision::Denied, "nobody-to-ask");
            } else if let Some(first) = self.open(first, at) {
                return self.in_line.push_front(first);
            }
        }
    }

    /// Nobody inside is waiting any more. An answer that was already sent is harmless: the process applies it only
    /// if it is valid for the session.
    fn withdrawn(&mut self, ask: u64, at: &mut Moment<'_>) {
        let place = self.in_line.iter().position(|waiting| waiting.ask == ask);
        if let Some(InLine { host, since, .. }) = place.and_then(|at| self.in_line.remove(at)) {
            return self.record_withdrawn(host, None, since, at.now);
        }
        let Some(Waiting { host, question, since }) = self.waiting.remove(&ask) else { return };
        let Some(decided) = at.queue.withdraw_from(question, ask, at.now) else { return };
        self.record_withdrawn(host, Some(question), since, at.now);
        self.actions.push_back(Action::Closed(Box::new(decided)));
    }

    fn record_withdrawn(
        &mut self,
        host: HostSubject,
        question: Option<QuestionId>,
        since: Instant,
        now: Now,
    ) {
        self.record(EventKind::HostDecided(Box::new(HostDecided {
            host: host.host,
            port: host.port,
            decision: Decision::Denied,
            lifetime: "once".to_owned(),
            source: "withdrawn".to_owned(),
            details: None,
            question: question.map(|id| id.0),
            latency_us: micros(since, now),
        })));
    }

    /// Answers without asking a person.
    fn decide(&mut self, ask: u64, host: &HostSubject, decision: Decision, source: &str) {
        // The policy's answer applies to the whole session. A denial because nobody could be asked may change
        // later.
        let holds = if source == "on-ask" && self.standing < MAX_STANDING {
            self.standing += 1;
            Holds::Session
        } else {
            Holds::Once
        };
        self.send(ask, decision == Decision::Allowed, holds, source);
        self.record(EventKind::HostDecided(Box::new(HostDecided {
            host: host.host.clone(),
            port: host.port,
            decision,
            lifetime: if holds == Holds::Session { "session" } else { "once" }.to_owned(),
            source: source.to_owned(),
            details: None,
            question: None,
            latency_us: 0,
        })));
    }

    fn send(&mut self, ask: u64, allowed: bool, holds: Holds, source: &str) {
        let order = EgressRequest::Answer { ask, allowed, holds, source: source.to_owned() };
        self.actions.push_back(Action::Send(order));
    }

    fn record(&mut self, kind: EventKind) {
        self.actions.push_back(Action::Record(kind));
    }
}

fn word_of(source: &Source) -> &'static str {
    match source {
        Source::NobodyToAsk => "nobody-to-ask",
        Source::OnAsk => "on-ask",
        other => other.word(),
    }
}

fn micros(since: Instant, now: Now) -> u64 {
    let waited = now.monotonic.saturating_duration_since(since);
    u64::try_from(waited.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
