//! Removing, and private copies: who is asked for what, and what stays as it is.

use super::*;

fn copy() -> Answer {
    Answer::Allow { scope: Scope::PrivateCopy, lifetime: Lifetime::Session }
}

/// Proves: GATE-10 remove
#[test]
fn a_yes_to_a_removal_lends_the_directory_and_takes_away_what_was_shown() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/sdk/a.h", READ), FileKind::File);
    scene.answer(1, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Grafted { token, graft: 7 });
    scene.actions();
    let token = scene.found(request(2, "/opt/sdk/a.h", Wants::Remove), FileKind::File);
    let question = scene.queue.open().last().unwrap();
    assert_eq!(question.subject.file().unwrap().act, Act::Remove);
    scene.actions();
    scene.answer(2, allow(Lifetime::Once));
    let expected =
        [KeeperRequest::Ungraft { graft: 7 }, KeeperRequest::Lend { token, parent: true }];
    assert_eq!(asks(&scene.actions()), expected);
}

/// Proves: GATE-10 private-copy
#[test]
fn what_is_removed_privately_is_absent_from_then_on() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(1, "/opt/sdk/a.h", Wants::Remove), FileKind::File);
    scene.actions();
    scene.answer(1, copy());
    assert_eq!(replies(&scene.actions()), [AccessReply::Pretend { request: 1 }]);
    scene.request(request(2, "/opt/sdk/a.h", READ));
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 2 }]);
}

/// Proves: GATE-10 private-copy
#[test]
fn a_private_copy_saves_no_rule_and_is_offered_for_changes_alone() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/sdk/a.h", Wants::Write), FileKind::File);
    scene.actions();
    scene.answer(1, copy());
    let asked = asks(&scene.actions());
    assert_eq!(
        asked,
        [KeeperRequest::Graft { token, what: What::Copy, exec: false, write: false }]
    );
    assert!(scene.state.answered.is_empty());
    scene.found(request(2, "/opt/sdk/b.h", READ), FileKind::File);
    assert!(!scene.queue.open().last().unwrap().subject.file().unwrap().may_be_copied);
}
