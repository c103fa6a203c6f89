//! More questions than people are shown at once: the calls wait in line.

use super::*;

fn few_questions() -> Gate {
    Gate { most_questions: 4, ..facts(OnAsk::Ask) }
}

impl Scene<'_> {
    /// What the supervisor does before every turn.
    fn readmit(&mut self) {
        let (queue, people) = (&mut self.queue, self.people);
        let mut at = Moment { queue, people, now: Now::read() };
        if self.state.may_readmit(&at) {
            self.state.readmit(&mut at);
        }
    }

    /// The host has a file wherever it is looked for.
    fn find_all(&mut self) -> Vec<AccessReply> {
        let actions = self.actions();
        for ask in asks(&actions) {
            if let KeeperRequest::Look { token, path, .. } = ask {
                let path = PathBuf::from(String::from_utf8(path).unwrap());
                self.tell(found(token, path, FileKind::File));
            }
        }
        replies(&actions)
    }

    fn flood(&mut self, count: u64) {
        for id in 1..=count {
            self.request(request(id, &format!("/srv/{id}/file"), READ));
        }
        assert_eq!(self.find_all(), []);
    }

    fn open_requests(&self) -> Vec<u64> {
        self.queue.open().flat_map(|question| question.requests.clone()).collect()
    }
}

/// Proves: GATE-5 bounded
#[test]
fn a_call_whose_question_finds_no_room_waits_for_its_turn() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(6);
    assert_eq!(scene.open_requests(), [1, 2, 3, 4]);
    let actions = scene.actions();
    assert_eq!(replies(&actions), [], "nobody is denied");
    let forgotten = |ask: &&KeeperRequest| matches!(ask, KeeperRequest::Forget { .. });
    assert_eq!(
        asks(&actions).iter().filter(forgotten).count(),
        2,
        "the keeper holds nothing for them"
    );
    scene.readmit();
    assert_eq!(asks(&scene.actions()), [], "there is no room");
    scene.answer(2, Answer::Deny { lifetime: Lifetime::Once });
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [1, 3, 4, 5]);
    assert_eq!(scene.queue.refused().0, 0);
}

/// Proves: GATE-5 bounded
#[test]
fn an_answer_that_was_given_meanwhile_holds_for_those_in_line() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(12);
    scene.state.decider.add(rule(Effect::Deny, Pattern::Tree("/srv".into())));
    scene.answer(1, Answer::Deny { lifetime: Lifetime::Once });
    let mut refused = replies(&scene.actions()).len();
    while refused < 9 {
        scene.readmit();
        let before = refused;
        refused += scene.find_all().len();
        refused += replies(&scene.actions()).len();
        assert!(refused > before, "{refused} have been answered");
    }
    assert_eq!(scene.open_requests(), [2, 3, 4]);
}

/// Proves: GATE-5 bounded
#[test]
fn who_leaves_the_line_is_not_asked_about() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(6);
    scene.withdraw(5);
    scene.withdraw(1);
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [2, 3, 4, 6]);
}

/// More than the keeper can hold, and nobody has to be asked about any of it.
///
/// Proves: GATE-5 bounded
#[test]
fn the_keeper_is_not_asked_to_hold_more_than_it_can() {
    let gate = facts(OnAsk::Allow);
    let mut scene = Scene::new(&gate);
    let count = 3 * palisade_keeper::MAX_HELD as u64;
    for id in 1..=count {
        scene.request(request(id, &format!("/srv/{id}/file"), READ));
    }
    let mut held = HashSet::new();
    let (mut granted, mut grafts) = (0, 0);
    let mut requests = VecDeque::from(scene.actions());
    while granted < count {
        let Some(action) = requests.pop_front() else { panic!("only {granted} were granted") };
        match action {
            Action::Keeper(KeeperRequest::Look { token, path, .. }) => {
                held.insert(token);
                assert!(held.len() <= palisade_keeper::MAX_HELD);
                let path = PathBuf::from(String::from_utf8(path).unwrap());
                scene.tell(found(token, path, FileKind::File));
            }
            Action::Keeper(KeeperRequest::Graft { token, .. }) => {
                assert!(held.contains(&token));
                grafts += 1;
                scene.tell(KeeperEvent::Grafted { token, graft: grafts });
            }
            Action::Keeper(KeeperRequest::Forget { token }) => {
                held.remove(&token);
            }
            Action::Reply(AccessReply::Continue { .. }, _) => granted += 1,
            _ => {}
        }
        scene.readmit();
        requests.extend(scene.actions());
    }
}

/// Proves: GATE-5 bounded
#[test]
fn a_call_that_leaves_while_its_file_is_opened_takes_no_room_at_the_keeper() {
    for wants in [READ, Wants::Remove] {
        let gate = facts(OnAsk::Ask);
        let mut scene = Scene::new(&gate);
        let token = scene.found(request(1, "/srv/data/file", wants), FileKind::File);
        scene.answer(1, allow(Lifetime::Once));
        scene.withdraw(1);
        scene.actions();
        let file = std::fs::File::open("/dev/null").unwrap().into();
        scene.tell_with(KeeperEvent::Opened { token }, Some(file));
        assert_eq!(asks(&scene.actions()), [KeeperRequest::Forget { token }]);
        assert_eq!(scene.state.grants.count_tokens(), 0, "{wants:?}");
    }
}

/// Proves: GATE-1 own-directories
#[test]
fn a_call_in_line_does_not_say_that_what_was_created_since_is_missing() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(4);
    let existing = "/home/u".len();
    scene.request(PathAccess { existing, ..request(5, "/home/u/work/file", READ) });
    scene.find_all();
    scene.request(PathAccess { existing, ..mkdir(6, "/home/u/work") });
    let token = scene.look();
    scene.tell(KeeperEvent::Absent { token });
    scene.withdraw(1);
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [2, 3, 4, 5]);
    let file = scene.queue.open().last().unwrap().subject.file().unwrap().clone();
    assert_eq!(file.directory, None, "a yes would hide the new directory");
}

/// Programs that are signalled again and again have their turn, too.
///
/// Proves: GATE-5 bounded
#[test]
fn a_call_that_is_made_again_keeps_its_place_in_line() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(7);
    let again = PathAccess { is_covered: true, ..request(50, "/srv/5/file", READ) };
    scene.request(again);
    scene.withdraw(5);
    scene.withdraw(1);
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [2, 3, 4, 50]);
    scene.withdraw(2);
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [3, 4, 50, 6]);
}

/// Proves: GATE-5 bounded
#[test]
fn who_comes_later_goes_behind_those_in_line_unless_the_same_is_asked() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(6);
    scene.withdraw(1);
    scene.actions();
    // There is room for one, and nobody in line has had a turn yet.
    scene.request(request(7, "/srv/7/file", READ));
    scene.request(request(8, "/srv/x/../2/file", READ));
    for (ask, path) in asks(&scene.actions()).iter().zip(["/srv/7/file", "/srv/2/file"]) {
        let KeeperRequest::Look { token, .. } = ask else { panic!("{ask:?}") };
        scene.tell(found(*token, path.into(), FileKind::File));
    }
    assert_eq!(scene.open_requests(), [2, 8, 3, 4]);
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [2, 8, 3, 4, 5]);
    scene.withdraw(3);
    scene.actions();
    scene.readmit();
    // It would not be asked about twice as many as there is room for.
    assert_eq!(asks(&scene.actions()).len(), 1);
}

/// What newcomers look for may need no question at all.
///
/// Proves: GATE-5 bounded
#[test]
fn those_in_line_do_not_wait_for_what_newcomers_look_for() {
    let gate = few_questions();
    let mut scene = Scene::new(&gate);
    scene.flood(5);
    scene.withdraw(1);
    scene.actions();
    scene.request(request(6, "/srv/6/file", READ));
    scene.actions();
    scene.readmit();
    scene.find_all();
    assert_eq!(scene.open_requests(), [2, 3, 4, 5]);
}

/// Proves: GATE-5 bounded
#[test]
fn many_names_of_one_file_are_held_once() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let first = scene.found(request(1, "/srv/x/f", READ), FileKind::File);
    scene.actions();
    for id in 2..=600 {
        let alias = format!("/srv/x/{}f", "./".repeat(id));
        scene.request(request(id as u64, &alias, READ));
        let token = scene.look();
        scene.tell(found(token, "/srv/x/f".into(), FileKind::File));
        assert!(asks(&scene.actions()).contains(&KeeperRequest::Forget { token }));
    }
    assert_eq!(scene.open_requests().len(), 600);
    assert_eq!(scene.state.inquiries.len(), 1);
    scene.answer(1, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Grafted { token: first, graft: 1 });
    assert_eq!(replies(&scene.actions()).len(), 600);
}

/// A rename to another name is another question about the same file.
///
/// Proves: GATE-5 bounded
#[test]
fn a_question_that_is_open_stays_open_when_another_call_finds_no_room() {
    let gate = Gate { most_questions: 1, ..facts(OnAsk::Ask) };
    let mut scene = Scene::new(&gate);
    let existing = "/srv".len();
    let rename = |id, new: &[u8]| {
        let old = request(id, "/srv/data/file", Wants::Rename);
        PathAccess { existing, new_path: new.to_vec(), ..old }
    };
    scene.request(rename(1, b"/srv/data/a"));
    scene.request(rename(2, b"/srv/data/b"));
    for real in [("/srv/data/file", FileKind::File), ("/srv/data", FileKind::Directory)] {
        let token = scene.look();
        scene.tell(found(token, real.0.into(), real.1));
    }
    assert_eq!(scene.open_requests(), [1]);
    let actions = scene.actions();
    assert!(actions.iter().all(|action| !matches!(action, Action::Closed(_))), "{actions:?}");
    scene.answer(1, allow(Lifetime::Session));
    let actions = scene.actions();
    assert!(matches!(asks(&actions)[..], [KeeperRequest::Graft { .. }]), "{actions:?}");
    scene.readmit();
    assert_eq!(asks(&scene.actions()).len(), 1, "the other has its turn");
}

/// Proves: GATE-5 bounded
#[test]
fn what_programs_need_is_not_more_than_the_keeper_can_hold() {
    let gate = Gate { most_questions: 10_000, ..facts(OnAsk::Ask) };
    let mut scene = Scene::new(&gate);
    for id in 1..=300 {
        scene.request(request(id, &format!("/srv/{id}/tool"), Wants::Execute));
    }
    let mut held = HashSet::new();
    let mut todo = VecDeque::from(scene.actions());
    for _ in 0..100_000 {
        let Some(action) = todo.pop_front() else { break };
        match action {
            Action::Keeper(KeeperRequest::Look { token, path, .. }) => {
                held.insert(token);
                assert!(held.len() <= palisade_keeper::MAX_HELD);
                let path = String::from_utf8(path).unwrap();
                let told = match path.ends_with("/tool") {
                    true => found_program(token, &path, &["/opt/shell", "/opt/loader"]),
                    false => found(token, path.into(), FileKind::File),
                };
                scene.tell(told);
            }
            Action::Keeper(KeeperRequest::Forget { token }) => {
                held.remove(&token);
            }
            _ => {}
        }
        if todo.is_empty() {
            scene.readmit();
        }
        todo.extend(scene.actions());
        if todo.is_empty() {
            // Somebody answers.
            let first = scene.queue.open().next().map(|question| question.id.0);
            let Some(first) = first else { break };
            scene.answer(first, Answer::Deny { lifetime: Lifetime::Once });
            scene.readmit();
            todo.extend(scene.actions());
        }
    }
    assert_eq!((scene.open_requests().len(), scene.state.unlooked.len()), (0, 0));
}
