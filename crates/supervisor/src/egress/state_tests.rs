use super::{Action, EgressState, MAX_IN_LINE, MAX_STANDING};
use crate::asking::{Moment, People};
use crate::egress::tally::Tally;
use palisade_ask::{Answer, AnswerError, Lifetime, Now, QuestionId, Queue, Scope, Source, Store};
use palisade_egress::wire::{EgressEvent, EgressRequest, Holds};
use palisade_gate::Effect;
use palisade_policy::model::OnAsk;
use palisade_record::network::{NetworkAction as Verdict, NetworkAttempt, Via};
use palisade_record::{Decision, EventKind};
use std::net::SocketAddr;
use std::time::Duration;

const YES: Answer = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
const NO: Answer = Answer::Deny { lifetime: Lifetime::Session };

struct Scene {
    state: EgressState,
    queue: Queue,
    people: People,
}

impl Scene {
    fn new(on_ask: OnAsk) -> Self {
        Self::with_room(on_ask, 16)
    }

    fn with_room(on_ask: OnAsk, most: usize) -> Self {
        let state = EgressState::new(on_ask, Duration::from_secs(60), Tally::new("proxy"));
        Self { state, queue: Queue::new("s", most), people: People::Present }
    }

    fn tell(&mut self, event: EgressEvent) {
        let (queue, people) = (&mut self.queue, self.people);
        self.state.event(event, |_| None, &mut Moment { queue, people, now: Now::read() });
    }

    /// What the supervisor does before every turn.
    fn readmit(&mut self) {
        let (queue, people) = (&mut self.queue, self.people);
        let mut at = Moment { queue, people, now: Now::read() };
        if self.state.may_readmit(&at) {
            self.state.readmit(&mut at);
        }
    }

    /// Whether the program was looked for that asks.
    fn looks_for_the_asker(&mut self, ask: u64, host: &str) -> bool {
        let (queue, people) = (&mut self.queue, self.people);
        let client = Some(SocketAddr::from(([198, 18, 0, 1], 4001)));
        let event = EgressEvent::Asked { ask, host: host.to_owned(), port: 443, client };
        let mut looked = false;
        let asker = |_| {
            looked = true;
            None
        };
        self.state.event(event, asker, &mut Moment { queue, people, now: Now::read() });
        looked
    }

    fn ask(&mut self, ask: u64, host: &str) {
        self.tell(EgressEvent::Asked { ask, host: host.to_owned(), port: 443, client: None });
    }

    fn answer(&mut self, id: u64, answer: Answer) -> Result<(), AnswerError> {
        let now = Now::read();
        let decided = self.queue.answer(QuestionId(id), answer, &Source::Terminal, now)?;
        decided.into_iter().for_each(|decided| self.state.carry_out(decided, now));
        Ok(())
    }

    fn done(&mut self) -> Done {
        let mut done = Done::default();
        for action in self.state.actions.drain(..) {
            match action {
                Action::Send(EgressRequest::Answer { ask, allowed, holds, source }) => {
                    done.sent.push((ask, allowed, holds, source));
                }
                Action::Send(EgressRequest::End) => panic!("nobody asked for that"),
                Action::Record(EventKind::HostDecided(decided)) => {
                    done.decided.push((decided.decision, decided.source));
                }
                Action::Record(kind) => done.recorded.push(kind),
                Action::Opened(id) | Action::Joined(id) => done.shown.push(id.0),
                Action::Closed(decided) => done.closed.push(decided.question.id.0),
                Action::Save(answer, store) => done.saved.push((answer.effect, answer.host, store)),
                Action::EndRun(why) => done.ended.push(why),
            }
        }
        done
    }
}

#[derive(Debug, Default)]
struct Done {
    sent: Vec<(u64, bool, Holds, String)>,
    decided: Vec<(Decision, String)>,
    recorded: Vec<EventKind>,
    shown: Vec<u64>,
    closed: Vec<u64>,
    saved: Vec<(Effect, String, Store)>,
    ended: Vec<String>,
}

fn sent(ask: u64, allowed: bool, holds: Holds, source: &str) -> (u64, bool, Holds, String) {
    (ask, allowed, holds, source.to_owned())
}

/// Proves: NET-8 asked
#[test]
fn a_question_waits_and_its_answer_goes_back() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(7, "a.example");
    let asked = scene.done();
    assert_eq!((asked.shown, asked.sent), (vec![1], vec![]));
    scene.answer(1, YES).unwrap();
    let answered = scene.done();
    assert_eq!(answered.sent, [sent(7, true, Holds::Once, "terminal")]);
    assert_eq!(answered.decided, [(Decision::Allowed, "terminal".to_owned())]);
    assert_eq!((answered.closed, answered.saved), (vec![1], vec![]));
    assert!(scene.state.answered.is_empty(), "once is not for the session");
}

/// Proves: NET-8 asked
#[test]
fn a_no_for_the_session_is_kept_with_the_sessions_answers() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(1, "a.example");
    scene.answer(1, NO).unwrap();
    let answered = scene.done();
    assert_eq!(answered.sent, [sent(1, false, Holds::Session, "terminal")]);
    let kept = &scene.state.answered[0];
    assert_eq!((kept.effect, kept.host.as_str()), (Effect::Deny, "a.example:443"));
}

/// The process talks to strangers: what it asks for is a host as our own parser has it, or nobody is asked.
///
/// Proves: NET-8 asked
#[test]
fn what_is_no_host_is_asked_nobody_and_saved_nowhere() {
    for on_ask in [OnAsk::Ask, OnAsk::Wait, OnAsk::Allow] {
        let mut scene = Scene::new(on_ask);
        for (ask, host) in (1..).zip(["*", "*.example", "**.example", "a.example:1,2", "a b", ""]) {
            scene.ask(ask, host);
            let done = scene.done();
            assert_eq!(done.sent, [sent(ask, false, Holds::Once, "not-a-host")], "{host}");
            assert_eq!((done.shown, done.saved), (vec![], vec![]), "{host}");
        }
    }
    let mut scene = Scene::new(OnAsk::Wait);
    scene.ask(1, "A.Example.");
    let lifetime = Lifetime::Always(Store::User);
    scene.answer(1, Answer::Allow { scope: Scope::File, lifetime }).unwrap();
    let saved = (Effect::Allow, "a.example:443".to_owned(), Store::User);
    assert_eq!(scene.done().saved, [saved]);
}

/// Proves: NET-8 asked
#[test]
fn always_is_saved_and_holds_for_the_session_too() {
    let mut scene = Scene::new(OnAsk::Wait);
    scene.ask(1, "2001:db8::7");
    let lifetime = Lifetime::Always(Store::Project);
    scene.answer(1, Answer::Allow { scope: Scope::File, lifetime }).unwrap();
    let answered = scene.done();
    assert_eq!(answered.sent, [sent(1, true, Holds::Session, "terminal")]);
    let host = "[2001:db8::7]:443".to_owned();
    assert_eq!(answered.saved, [(Effect::Allow, host, Store::Project)]);
    assert!(scene.state.answered.is_empty(), "it is saved already");
}

/// Proves: NET-8 asked
#[test]
fn the_policy_answers_where_it_says_so_and_nobody_is_asked() {
    for (on_ask, allowed) in [(OnAsk::Allow, true), (OnAsk::Deny, false)] {
        let mut scene = Scene::new(on_ask);
        scene.ask(1, "a.example");
        let done = scene.done();
        assert_eq!(done.sent, [sent(1, allowed, Holds::Session, "on-ask")]);
        assert!(done.shown.is_empty() && scene.queue.is_empty());
    }
}

/// Proves: NET-8 asked
#[test]
fn without_anybody_to_ask_it_is_a_no_unless_the_policy_says_wait() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.people = People::Nobody;
    scene.ask(1, "a.example");
    let done = scene.done();
    assert_eq!(done.sent, [sent(1, false, Holds::Once, "nobody-to-ask")]);
    assert_eq!(done.decided, [(Decision::Denied, "nobody-to-ask".to_owned())]);
    let mut scene = Scene::new(OnAsk::Wait);
    scene.people = People::Nobody;
    scene.ask(1, "a.example");
    assert_eq!((scene.done().sent, scene.queue.open().count()), (vec![], 1));
}

/// Proves: NET-8 asked
#[test]
fn silence_becomes_a_no() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(1, "a.example");
    let now = Now::read();
    let later = Now { monotonic: now.monotonic + Duration::from_secs(61), ..now };
    for decided in scene.queue.expire(later) {
        scene.state.carry_out(decided, later);
    }
    let done = scene.done();
    assert_eq!(done.sent, [sent(1, false, Holds::Once, "timeout")]);
    assert_eq!(done.closed, [1]);
}

/// Proves: NET-8 asked
#[test]
fn a_withdrawn_question_is_closed_and_an_answer_after_that_is_not_taken() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(1, "a.example");
    scene.done();
    scene.tell(EgressEvent::Withdrawn { ask: 1 });
    let done = scene.done();
    assert_eq!((done.closed, done.sent), (vec![1], vec![]));
    assert_eq!(done.decided, [(Decision::Denied, "withdrawn".to_owned())]);
    assert_eq!(scene.answer(1, YES), Err(AnswerError::NotOpen(QuestionId(1))));
    assert!(scene.done().sent.is_empty());
    // And once more, as if messages had crossed.
    scene.tell(EgressEvent::Withdrawn { ask: 1 });
    assert!(scene.done().decided.is_empty());
}

#[test]
fn a_withdrawal_that_crosses_an_answer_changes_nothing() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(1, "a.example");
    scene.answer(1, NO).unwrap();
    scene.done();
    scene.tell(EgressEvent::Withdrawn { ask: 1 });
    let done = scene.done();
    assert!(done.sent.is_empty() && done.closed.is_empty() && done.decided.is_empty());
}

#[test]
fn the_same_host_asked_anew_is_one_question_for_both() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(1, "a.example");
    scene.ask(2, "a.example");
    scene.ask(2, "a.example");
    assert_eq!(scene.done().shown, [1, 1]);
    scene.tell(EgressEvent::Withdrawn { ask: 1 });
    assert!(scene.done().closed.is_empty(), "another still waits");
    scene.answer(1, YES).unwrap();
    assert_eq!(scene.done().sent, [sent(2, true, Holds::Once, "terminal")]);
}

/// Proves: NET-8 asked, GATE-5 bounded
#[test]
fn what_finds_no_room_in_the_queue_waits_for_its_turn() {
    let mut scene = Scene::with_room(OnAsk::Ask, 1);
    for (ask, host) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "a")] {
        scene.ask(ask, &format!("{host}.example"));
    }
    let done = scene.done();
    assert_eq!(
        (done.sent, done.shown),
        (vec![], vec![1, 1]),
        "nobody is denied, the same host joins"
    );
    scene.readmit();
    assert!(scene.done().shown.is_empty(), "there is no room");
    scene.tell(EgressEvent::Withdrawn { ask: 3 });
    let withdrawn = (Decision::Denied, "withdrawn".to_owned());
    assert_eq!(scene.done().decided, [withdrawn]);
    scene.answer(1, NO).unwrap();
    scene.done();
    scene.ask(6, "e.example");
    assert!(scene.done().shown.is_empty(), "who comes later goes behind those in line");
    scene.readmit();
    assert_eq!(scene.done().shown, [2]);
    scene.answer(2, YES).unwrap();
    assert_eq!(scene.done().sent, [sent(2, true, Holds::Once, "terminal")]);
    scene.people = People::Nobody;
    scene.readmit();
    let nobody = |ask| sent(ask, false, Holds::Once, "nobody-to-ask");
    assert_eq!(scene.done().sent, [nobody(4), nobody(6)]);
    assert_eq!(scene.queue.refused().0, 0);
}

#[test]
fn the_line_is_bounded_and_ends_with_the_process() {
    let mut scene = Scene::with_room(OnAsk::Ask, 1);
    for ask in 1..=MAX_IN_LINE as u64 + 2 {
        scene.ask(ask, &format!("h{ask}.example"));
    }
    let last = MAX_IN_LINE as u64 + 2;
    assert_eq!(scene.done().sent, [sent(last, false, Holds::Once, "too-many-questions")]);
    let (queue, people) = (&mut scene.queue, scene.people);
    scene.state.process_is_gone(&mut Moment { queue, people, now: Now::read() });
    assert_eq!(scene.done().decided.len(), MAX_IN_LINE + 1);
    scene.readmit();
    assert!(scene.queue.is_empty());
}

#[test]
fn a_process_that_dies_while_it_asks_leaves_no_question() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.ask(1, "a.example");
    scene.ask(2, "b.example");
    let (queue, people) = (&mut scene.queue, scene.people);
    scene.state.process_is_gone(&mut Moment { queue, people, now: Now::read() });
    let mut done = scene.done();
    done.closed.sort_unstable();
    assert_eq!((done.closed, done.sent), (vec![1, 2], vec![]));
    assert!(scene.queue.is_empty());
}

#[test]
fn a_process_that_cannot_go_on_ends_the_run() {
    let mut scene = Scene::new(OnAsk::Ask);
    scene.tell(EgressEvent::Unable { why: "no listener".to_owned() });
    assert_eq!(scene.done().ended, ["no listener"]);
}

/// Proves: NET-7 logged, AUD-2 proxy-events
#[test]
fn every_attempt_is_recorded_as_it_was_told() {
    let mut scene = Scene::new(OnAsk::Deny);
    let attempt = NetworkAttempt {
        action: Verdict::ProxyDenied,
        via: Via::Connect,
        host: "a.example".to_owned(),
        address: None,
        port: 443,
        rule: None,
        reason: Some("no rule allows it".to_owned()),
        allow: Some("--allow-host a.example".to_owned()),
        count: 3,
    };
    scene.tell(EgressEvent::Attempt(attempt.clone()));
    let recorded = scene.done().recorded;
    assert_eq!(recorded, [EventKind::NetworkAttempt(Box::new(attempt))]);
}

/// Proves: NET-8 asked
#[test]
fn the_program_is_looked_for_only_if_somebody_will_read_it() {
    let mut scene = Scene::new(OnAsk::Ask);
    assert!(scene.looks_for_the_asker(1, "a.example"));
    assert!(!scene.looks_for_the_asker(2, "no host"));
    scene.people = People::Nobody;
    assert!(!scene.looks_for_the_asker(3, "b.example"));
    assert!(!Scene::new(OnAsk::Allow).looks_for_the_asker(1, "a.example"));
}

/// Proves: NET-8 asked
#[test]
fn only_so_many_answers_of_the_policy_are_remembered_and_all_are_given() {
    let mut scene = Scene::new(OnAsk::Allow);
    for ask in 0..MAX_STANDING as u64 + 7 {
        scene.ask(ask, &format!("h{ask}.example"));
    }
    let sent = scene.done().sent;
    assert!(sent.iter().all(|(_, allowed, ..)| *allowed));
    let standing = sent.iter().filter(|(_, _, holds, _)| *holds == Holds::Session).count();
    assert_eq!((sent.len(), standing), (MAX_STANDING + 7, MAX_STANDING));
}
