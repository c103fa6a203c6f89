use super::*;
use crate::asking::People;
use palisade_ask::Scope;
use palisade_gate::{Effect, Origin, Pattern, Store, Wants};
use palisade_keeper::{FileKind, What};
use palisade_policy::model::OnAsk;
use std::time::Duration;

fn facts(on_ask: OnAsk) -> Gate {
    Gate {
        grounds: vec!["/".into(), "/home/u".into()],
        never: vec!["/proc".into(), "/etc/palisade".into()],
        secrets: vec!["/home/u/.ssh".into()],
        homes: vec!["/home/u".into()],
        mounted: vec!["/usr".into(), "/home/u/project".into(), "/home/u".into()],
        executes: true,
        answers: Answers::OnAsk(on_ask),
        ask_timeout_ms: 60_000,
        most_questions: 256,
        above_project: vec!["/home/u".into(), "/home".into(), "/".into()],
        left_by_tools: vec!["/home/u/.npm".into()],
        private_home: Some("/home/u".into()),
        directories: Vec::new(),
        executes_written: true,
        known_callers: true,
        own: Vec::new(),
        trigger: palisade_plan::model::Trigger::Notify,
        trigger_reason: "",
    }
}

fn request(id: u64, path: &str, wants: Wants) -> PathAccess {
    PathAccess {
        id,
        call: "openat".to_owned(),
        wants,
        path: path.into(),
        existing: 0,
        is_covered: false,
        is_read_only: false,
        new_path: Vec::new(),
        follow: true,
        may_be_served: false,
        pid: u32::MAX,
        executable: b"/usr/bin/cat".to_vec(),
        cwd: b"/home/u/project".to_vec(),
    }
}

fn mkdir(id: u64, path: &str) -> PathAccess {
    PathAccess { call: "mkdir".to_owned(), ..request(id, path, Wants::Make) }
}

const READ: Wants = Wants::Open { directory: false, path_only: false };

struct Scene<'g> {
    state: GateState<'g>,
    queue: Queue,
    people: People,
}

impl<'g> Scene<'g> {
    fn new(gate: &'g Gate) -> Self {
        Self::with_rules(gate, Vec::new())
    }

    fn with_rules(gate: &'g Gate, rules: Vec<Rule>) -> Self {
        let home = Some("/home/u".into());
        let queue = Queue::new("s", gate.most_questions);
        Self {
            state: GateState::new(gate, home, rules, Excess::Summed, None),
            queue,
            people: People::Present,
        }
    }

    fn request(&mut self, request: PathAccess) {
        let (queue, people) = (&mut self.queue, self.people);
        self.state.touched(request, &mut Moment { queue, people, now: Now::read() });
    }

    fn tell(&mut self, told: KeeperEvent) {
        self.tell_with(told, None);
    }

    fn tell_with(&mut self, told: KeeperEvent, file: Option<OwnedFd>) {
        let (queue, people) = (&mut self.queue, self.people);
        self.state.told(told, file, &mut Moment { queue, people, now: Now::read() });
        self.survey();
    }

    /// The keeper finds every directory harmless, but for those that are named so.
    fn survey(&mut self) {
        let asked = self
            .state
            .actions
            .iter()
            .position(|action| matches!(action, Action::Keeper(KeeperRequest::Survey { .. })));
        let Some(asked) = asked else { return };
        if let Some(Action::Keeper(KeeperRequest::Survey { token, directory })) =
            self.state.actions.remove(asked)
        {
            let is_whole = !directory.ends_with("with-dotenv");
            self.tell(KeeperEvent::Surveyed { token, is_whole });
        }
    }

    fn withdraw(&mut self, request: u64) {
        self.state.withdrawn(request, &mut self.queue, Now::read());
    }

    fn lose_keeper(&mut self) {
        self.state.keeper_is_gone("killed", &mut self.queue, Now::read());
    }

    /// What the supervisor does in every turn.
    fn pass(&mut self, now: Now) {
        for decided in self.queue.expire(now) {
            self.state.carry_out(decided, now);
        }
        self.state.pass(now);
    }

    fn actions(&mut self) -> Vec<Action> {
        self.state.actions.drain(..).collect()
    }

    /// The token of the only look in what is to be done.
    fn look(&mut self) -> u64 {
        let tokens: Vec<u64> = self
            .actions()
            .iter()
            .filter_map(|action| match action {
                Action::Keeper(KeeperRequest::Look { token, .. }) => Some(*token),
                _ => None,
            })
            .collect();
        assert_eq!(tokens.len(), 1);
        tokens[0]
    }

    /// A touch that the host has something for; gives the token.
    fn found(&mut self, request: PathAccess, kind: FileKind) -> u64 {
        let path = PathBuf::from(String::from_utf8(request.path.clone()).unwrap());
        self.request(request);
        let token = self.look();
        self.tell(found(token, path, kind));
        token
    }

    fn answer(&mut self, id: u64, answer: Answer) {
        let now = Now::read();
        let decided = self.queue.answer(QuestionId(id), answer, &Source::Terminal, now).unwrap();
        decided.into_iter().for_each(|decided| self.state.carry_out(decided, now));
    }
}

fn found(token: u64, path: PathBuf, kind: FileKind) -> KeeperEvent {
    let (links, needs) = (Vec::new(), Vec::new());
    let (unwritable, identity) = (None, None);
    let found = palisade_keeper::Found { token, path, kind, links, needs, unwritable, identity };
    KeeperEvent::Found(found)
}

/// A program, and what it cannot be executed without.
fn found_program(token: u64, path: &str, needs: &[&str]) -> KeeperEvent {
    let KeeperEvent::Found(program) = found(token, path.into(), FileKind::File) else {
        unreachable!()
    };
    let needs = needs.iter().map(PathBuf::from).collect();
    KeeperEvent::Found(palisade_keeper::Found { needs, ..program })
}

fn allow(lifetime: Lifetime) -> Answer {
    Answer::Allow { scope: Scope::File, lifetime }
}

fn replies(actions: &[Action]) -> Vec<AccessReply> {
    let reply = |action: &Action| match action {
        Action::Reply(reply, _) => Some(reply.clone()),
        _ => None,
    };
    actions.iter().filter_map(reply).collect()
}

fn asks(actions: &[Action]) -> Vec<KeeperRequest> {
    let ask = |action: &Action| match action {
        Action::Keeper(ask) => Some(ask.clone()),
        _ => None,
    };
    actions.iter().filter_map(ask).collect()
}

fn rule(effect: Effect, pattern: Pattern) -> Rule {
    let origin = Origin { by: None, at: None, place: "policy.yaml:3".to_owned() };
    let access = if effect == Effect::Allow { Access::Execute } else { Access::Read };
    Rule { effect, pattern, access, store: Store::User, until: None, origin }
}

/// Proves: GATE-1 missing-unasked
#[test]
fn what_the_host_has_not_either_is_left_to_the_kernel() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.request(request(7, "/opt/nothing", READ));
    let token = scene.look();
    scene.tell(KeeperEvent::Absent { token });
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 7 }]);
}

/// Proves: GATE-1 approve-continues
#[test]
fn a_yes_for_the_session_shows_the_file_and_lets_the_call_go_on() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(7, "/opt/sdk/header.h", READ), FileKind::File);
    let actions = scene.actions();
    assert!(matches!(actions[..], [Action::Opened(QuestionId(1))]), "{actions:?}");
    scene.answer(1, allow(Lifetime::Session));
    let actions = scene.actions();
    let graft = KeeperRequest::Graft { token, what: What::Found, exec: false, write: false };
    assert_eq!(asks(&actions), [graft]);
    assert!(replies(&actions).is_empty(), "not before it can be seen");
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    assert_eq!(replies(&scene.actions()), [AccessReply::Continue { request: 7 }]);
}

/// Proves: GATE-4 once
#[test]
fn a_yes_for_once_opens_the_file_and_shows_nothing() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let mine =
        |id| PathAccess { pid: std::process::id(), ..request(id, "/opt/sdk/header.h", READ) };
    let token = scene.found(mine(7), FileKind::File);
    scene.answer(1, allow(Lifetime::Once));
    assert_eq!(asks(&scene.actions()), [KeeperRequest::Open { token, flags: 0 }]);
    let file = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    scene.tell_with(KeeperEvent::Opened { token }, file.ok());
    let actions = scene.actions();
    assert!(
        matches!(actions[0], Action::Reply(AccessReply::File { request: 7 }, Some(_))),
        "{actions:?}"
    );
    // The same process has it a moment longer, and another one is asked about.
    let token = scene.found(mine(8), FileKind::File);
    assert_eq!(asks(&scene.actions()), [KeeperRequest::Open { token, flags: 0 }]);
    scene.found(request(9, "/opt/sdk/header.h", READ), FileKind::File);
    assert_eq!(scene.queue.open().count(), 1);
}

/// Proves: GATE-4 short-lived
#[test]
fn a_yes_for_one_look_ends_when_the_call_has_returned() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(7, "/opt/sdk", Wants::Look), FileKind::Directory);
    scene.answer(1, allow(Lifetime::Once));
    scene.actions();
    scene.tell(KeeperEvent::Grafted { token, graft: 5 });
    assert_eq!(replies(&scene.actions()), [AccessReply::ContinueAndWatch { request: 7 }]);
    scene.state.returned(7);
    assert_eq!(asks(&scene.actions()), [KeeperRequest::Ungraft { graft: 5 }]);
    scene.tell(KeeperEvent::Ungrafted { graft: 5 });
    assert_eq!(replies(&scene.actions()), [AccessReply::Ended { request: 7 }]);
}

/// Proves: GATE-5 dead-keeper
#[test]
fn a_keeper_that_dies_before_it_has_taken_something_away_ends_the_run() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(7, "/opt/sdk", Wants::Look), FileKind::Directory);
    scene.answer(1, allow(Lifetime::Once));
    scene.tell(KeeperEvent::Grafted { token, graft: 5 });
    scene.state.returned(7);
    scene.actions();
    scene.lose_keeper();
    assert!(scene.actions().iter().any(|action| matches!(action, Action::EndRun(_))));
}

/// Proves: GATE-4 short-lived
#[test]
fn a_short_lived_grant_ends_in_a_second_even_if_nobody_says_so() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(7, "/opt/tool", Wants::Look), FileKind::File);
    scene.answer(1, allow(Lifetime::Once));
    scene.tell(KeeperEvent::Grafted { token, graft: 5 });
    scene.actions();
    let mut later = Now::read();
    later.monotonic += Duration::from_millis(1001);
    scene.pass(later);
    assert_eq!(asks(&scene.actions()), [KeeperRequest::Ungraft { graft: 5 }]);
}

/// Proves: GATE-1 deny-eacces
#[test]
fn a_no_is_eacces_and_holds_for_the_session() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(7, "/opt/sdk/header.h", READ), FileKind::File);
    scene.answer(1, Answer::Deny { lifetime: Lifetime::Session });
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 7, errno: 13 }]);
    scene.found(request(8, "/opt/sdk/header.h", READ), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 8, errno: 13 }]);
    assert!(scene.queue.is_empty());
}

/// Proves: GATE-5 asked-once
#[test]
fn many_threads_and_one_path_are_one_question() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    for id in 1..=50 {
        scene.request(request(id, "/opt/sdk/header.h", READ));
    }
    let token = scene.look();
    scene.tell(found(token, "/opt/sdk/header.h".into(), FileKind::File));
    for id in 51..=60 {
        scene.request(request(id, "/opt/sdk/header.h", READ));
    }
    let open: Vec<_> = scene.queue.open().collect();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].requests, (1..=60).collect::<Vec<u64>>());
    scene.answer(1, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    assert_eq!(replies(&scene.actions()).len(), 60);
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_secret_is_asked_about_alone_whatever_is_allowed_around_it() {
    let gate = facts(OnAsk::Allow);
    let tree = rule(Effect::Allow, Pattern::Tree("/home/u".into()));
    let mut scene = Scene::with_rules(&gate, vec![tree]);
    scene.found(request(1, "/home/u/.ssh/id_ed25519", READ), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 1, errno: 13 }]);
    let asking = facts(OnAsk::Ask);
    let mut scene = Scene::new(&asking);
    scene.found(request(1, "/home/u/.ssh/id_ed25519", READ), FileKind::File);
    let question = scene.queue.open().next().unwrap();
    let file = question.subject.file().unwrap();
    assert!(question.is_secret && file.directory.is_none());
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_directory_that_holds_a_secret_shows_its_name_alone() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let mut look = request(1, "/home/u/.ssh/..", Wants::Look);
    look.path = b"/srv".to_vec();
    let token = scene.found(look, FileKind::Directory);
    scene.answer(1, allow(Lifetime::Session));
    let name = KeeperRequest::Graft { token, what: What::Name, exec: false, write: false };
    assert_eq!(asks(&scene.actions()), [name]);
    // What is in it is asked about on its own.
    scene.found(request(2, "/srv/data", READ), FileKind::File);
    assert_eq!(scene.queue.open().count(), 1);
}

/// Proves: GATE-4 denied-within
#[test]
fn a_tree_is_not_shown_whole_if_a_rule_denies_something_in_it() {
    let gate = facts(OnAsk::Ask);
    let rules = vec![
        rule(Effect::Allow, Pattern::Tree("/opt/sdk".into())),
        rule(Effect::Deny, Pattern::Exact("/opt/sdk/key".into())),
    ];
    let mut scene = Scene::with_rules(&gate, rules);
    let token = scene.found(request(1, "/opt/sdk/a", READ), FileKind::File);
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what: What::Found, exec: true, write: false }]
    );
    let token = scene.found(request(2, "/opt/sdk", Wants::Look), FileKind::Directory);
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what: What::Name, exec: false, write: false }]
    );
}

/// Proves: GATE-5 nobody-to-ask
#[test]
fn with_nobody_to_ask_it_is_decided_at_once_unless_somebody_is_waited_for() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.people = People::Nobody;
    scene.found(request(1, "/opt/x", READ), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 1 }]);
    let waiting = facts(OnAsk::Wait);
    let mut scene = Scene::new(&waiting);
    scene.people = People::Nobody;
    scene.found(request(1, "/opt/x", READ), FileKind::File);
    assert_eq!(scene.queue.open().count(), 1);
}

/// Proves: GATE-5 timeout
#[test]
fn a_question_that_nobody_answers_is_a_no() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(1, "/opt/x", READ), FileKind::File);
    scene.actions();
    let mut later = Now::read();
    later.monotonic += Duration::from_secs(61);
    scene.pass(later);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 1, errno: 13 }]);
}

/// Proves: GATE-4 rules-in-policy
#[test]
fn rules_answer_without_a_question() {
    let gate = facts(OnAsk::Ask);
    let rules = vec![
        rule(Effect::Allow, Pattern::Tree("/opt/sdk".into())),
        rule(Effect::Deny, Pattern::Exact("/opt/no".into())),
    ];
    let mut scene = Scene::with_rules(&gate, rules);
    let token = scene.found(request(1, "/opt/sdk/bin/cc", Wants::Look), FileKind::File);
    let graft = KeeperRequest::Graft {
        token,
        what: What::Directory("/opt/sdk".into()),
        exec: true,
        write: false,
    };
    assert_eq!(asks(&scene.actions()), [graft]);
    scene.found(request(2, "/opt/no", READ), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 2, errno: 13 }]);
    assert!(scene.queue.is_empty());
}

#[test]
fn what_is_never_asked_about_looks_absent_and_what_is_visible_needs_no_question() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(1, "/etc/palisade/policy.yaml", READ), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 1 }]);
    // A link of the host's that leads to what is shown already.
    scene.request(request(2, "/opt/java/bin/java", READ));
    let token = scene.look();
    scene.tell(found(token, "/usr/lib/jvm/bin/java".into(), FileKind::File));
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what: What::Links, exec: false, write: false }]
    );
}

/// Proves: GATE-2 exec
#[test]
fn a_program_is_asked_about_together_with_what_it_needs() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.request(request(1, "/opt/tool/run", Wants::Execute));
    let token = scene.look();
    scene.tell(found_program(token, "/opt/tool/run", &["/opt/lib/ld.so", "/usr/lib/ld.so"]));
    let need = scene.look();
    scene.tell(found(need, "/opt/lib/ld.so".into(), FileKind::File));
    let question = scene.queue.open().next().unwrap();
    let file = question.subject.file().unwrap();
    assert_eq!(file.also, [PathBuf::from("/opt/lib/ld.so")]);
    scene.answer(1, allow(Lifetime::Session));
    let program = KeeperRequest::Graft { token, what: What::Found, exec: true, write: false };
    assert_eq!(asks(&scene.actions()), [program], "first what was asked about");
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let actions = scene.actions();
    assert!(asks(&actions).contains(&KeeperRequest::Graft {
        token: need,
        what: What::Found,
        exec: true,
        write: false
    }));
    assert!(replies(&actions).is_empty());
    scene.tell(KeeperEvent::Grafted { token: need, graft: 2 });
    assert_eq!(replies(&scene.actions()), [AccessReply::Continue { request: 1 }]);
}

/// Proves: GATE-5 dead-keeper
#[test]
fn when_the_keeper_dies_everybody_who_waits_is_refused() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.request(request(1, "/opt/a", READ));
    scene.found_after_look(2);
    scene.actions();
    scene.lose_keeper();
    let mut refused: Vec<u64> =
        replies(&scene.actions()).iter().map(|reply| reply.request()).collect();
    refused.sort_unstable();
    assert_eq!(refused, [1, 2]);
    assert!(scene.queue.is_empty());
}

impl Scene<'_> {
    fn found_after_look(&mut self, id: u64) {
        self.actions();
        self.found(request(id, "/opt/b", READ), FileKind::File);
    }
}

/// Proves: GATE-5 dead-keeper
#[test]
fn when_the_keeper_dies_nothing_stays_that_was_shown_for_a_moment() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(7, "/opt/sdk", Wants::Look), FileKind::Directory);
    scene.answer(1, allow(Lifetime::Once));
    scene.tell(KeeperEvent::Grafted { token, graft: 5 });
    scene.actions();
    scene.lose_keeper();
    assert!(scene.actions().iter().any(|action| matches!(action, Action::EndRun(_))));
}

/// Proves: GATE-5 killed-while-waiting
#[test]
fn a_question_goes_with_the_last_call_that_waits_for_it() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(1, "/opt/x", READ), FileKind::File);
    scene.request(request(2, "/opt/x", READ));
    scene.withdraw(1);
    assert_eq!(scene.queue.open().count(), 1);
    scene.withdraw(2);
    assert!(scene.queue.is_empty());
    assert!(scene.actions().iter().any(|action| matches!(action, Action::Closed(_))));
}

#[test]
fn devices_and_sockets_do_not_exist_and_nobody_is_asked() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(1, "/opt/socket", READ), FileKind::Special);
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 1 }]);
    scene.found(request(2, "/home/u/.ssh/agent", READ), FileKind::Special);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 2, errno: 13 }]);
}

/// Proves: GATE-5 failed-grant
#[test]
fn a_grant_that_cannot_be_carried_out_is_a_refusal() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/x", Wants::Look), FileKind::File);
    scene.answer(1, allow(Lifetime::Session));
    scene.actions();
    scene.tell(KeeperEvent::Failed { token, step: "move_mount".to_owned(), errno: 28 });
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 1, errno: 13 }]);
}

/// Proves: GATE-4 access
#[test]
fn a_rule_for_reading_gives_nothing_to_execute() {
    let gate = facts(OnAsk::Ask);
    let mut reading = rule(Effect::Allow, Pattern::Tree("/opt/sdk".into()));
    reading.access = Access::Read;
    let mut scene = Scene::with_rules(&gate, vec![reading]);
    let token = scene.found(request(1, "/opt/sdk/a", READ), FileKind::File);
    let tree = KeeperRequest::Graft {
        token,
        what: What::Directory("/opt/sdk".into()),
        exec: false,
        write: false,
    };
    assert_eq!(asks(&scene.actions()), [tree]);
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    scene.actions();
    scene.found(request(2, "/opt/sdk/tool", Wants::Execute), FileKind::File);
    assert_eq!(scene.queue.open().count(), 1);
}

#[path = "state_change_tests.rs"]
mod state_change_tests;
#[path = "state_directory_tests.rs"]
mod state_directory_tests;
#[path = "state_home_tests.rs"]
mod state_home_tests;
#[path = "state_line_tests.rs"]
mod state_line_tests;
#[path = "state_link_tests.rs"]
mod state_link_tests;
#[path = "state_made_tests.rs"]
mod state_made_tests;
#[path = "state_program_tests.rs"]
mod state_program_tests;
#[path = "state_revoke_tests.rs"]
mod state_revoke_tests;
#[path = "state_static_tests.rs"]
mod state_static_tests;
