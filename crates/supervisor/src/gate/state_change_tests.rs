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

/// Proves: GATE-10 no-execution, CARGO-1 no-executables
#[test]
fn what_is_granted_for_writing_is_executed_only_where_the_policy_lets_it() {
    for executes_written in [true, false] {
        let gate = Gate { executes_written, ..facts(OnAsk::Ask) };
        let mut scene = Scene::new(&gate);
        let token = scene.found(request(1, "/opt/sdk/liba.so", Wants::Write), FileKind::File);
        scene.actions();
        scene.answer(1, allow(Lifetime::Session));
        let (what, exec) = (What::Found, executes_written);
        let expected = [KeeperRequest::Graft { token, what, exec, write: true }];
        assert_eq!(asks(&scene.actions()), expected);
    }
}

/// A call of a process that is there.
fn ours(id: u64, wants: Wants) -> PathAccess {
    let pid = std::process::id();
    PathAccess { pid, ..request(id, "/srv/data/file", wants) }
}

/// A tool that may not change a file looks at it to find out what is wrong.
///
/// Proves: GATE-10 refused-look
#[test]
fn who_was_refused_a_change_is_refused_a_look_without_a_question() {
    let refused = |request| AccessReply::Fail { request, errno: 13 };
    for wants in [Wants::Rename, Wants::Remove, Wants::Change, Wants::Source] {
        for (wants_then, pid, path, is_asked) in [
            (Wants::Look, std::process::id(), "/srv/data/file", false),
            (READ, std::process::id(), "/srv/data/file", true),
            (Wants::Look, std::process::id(), "/srv/data/other", true),
            (Wants::Look, u32::MAX, "/srv/data/file", true),
        ] {
            let gate = facts(OnAsk::Ask);
            let mut scene = Scene::new(&gate);
            let existing = "/srv".len();
            let ours = std::process::id();
            let change = PathAccess { pid: ours, existing, ..request(1, "/srv/data/file", wants) };
            scene.found(change, FileKind::File);
            if wants == Wants::Rename {
                let token = scene.look();
                scene.tell(found(token, "/srv/data".into(), FileKind::Directory));
            }
            scene.actions();
            scene.answer(1, Answer::Deny { lifetime: Lifetime::Once });
            assert_eq!(replies(&scene.actions()), [refused(1)], "{wants:?}");
            let then = PathAccess { pid, existing, ..request(2, path, wants_then) };
            scene.found(then, FileKind::File);
            let (asked, replied) = (scene.queue.open().count(), replies(&scene.actions()));
            match is_asked {
                true => assert_eq!((asked, &replied[..]), (1, &[][..]), "{wants:?} {path}"),
                false => assert_eq!((asked, &replied[..]), (0, &[refused(2)][..]), "{wants:?}"),
            }
        }
    }
}

/// Proves: GATE-10 refused-look
#[test]
fn a_refused_look_does_not_join_the_question_of_another_process() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(ours(1, Wants::Remove), FileKind::File);
    scene.answer(1, Answer::Deny { lifetime: Lifetime::Once });
    scene.actions();
    // Both are looked up together.
    scene.request(request(2, "/srv/data/file", Wants::Look));
    scene.request(ours(3, Wants::Look));
    let token = scene.look();
    scene.tell(found(token, "/srv/data/file".into(), FileKind::File));
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 3, errno: 13 }]);
    assert_eq!(scene.queue.open().next().unwrap().requests, [2]);
    // The question is open.
    scene.request(ours(4, Wants::Look));
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 4, errno: 13 }]);
    assert_eq!(scene.queue.open().next().unwrap().requests, [2]);
}

/// Proves: GATE-10 refused-look
#[test]
fn what_was_allowed_to_be_read_is_looked_at_after_a_refused_change() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(ours(1, Wants::Remove), FileKind::File);
    scene.answer(1, Answer::Deny { lifetime: Lifetime::Once });
    scene.found(ours(2, READ), FileKind::File);
    scene.answer(2, allow(Lifetime::Once));
    scene.actions();
    scene.found(ours(3, Wants::Look), FileKind::File);
    let actions = scene.actions();
    assert_eq!(replies(&actions), []);
    assert!(matches!(asks(&actions)[..], [KeeperRequest::Graft { .. }]), "{actions:?}");
}

/// Proves: GATE-10 refused-look
#[test]
fn a_refused_change_does_not_keep_the_policy_from_granting_a_look() {
    let gate = facts(OnAsk::Allow);
    let unwritten = Rule {
        access: Access::Write,
        ..rule(Effect::Deny, Pattern::Exact("/srv/data/file".into()))
    };
    let mut scene = Scene::with_rules(&gate, vec![unwritten]);
    scene.found(ours(1, Wants::Remove), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 1, errno: 13 }]);
    scene.found(ours(2, Wants::Look), FileKind::File);
    let actions = scene.actions();
    assert!(matches!(asks(&actions)[..], [KeeperRequest::Graft { .. }]), "{actions:?}");
}

/// Proves: GATE-10 refused-look
#[test]
fn a_change_that_nobody_answered_says_nothing_about_a_look() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(ours(1, Wants::Remove), FileKind::File);
    let mut later = Now::read();
    later.monotonic += Duration::from_secs(61);
    scene.pass(later);
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 1, errno: 13 }]);
    scene.found(ours(2, Wants::Look), FileKind::File);
    assert_eq!(scene.queue.open().next().unwrap().requests, [2]);
}

/// Proves: GATE-10 refused-look
#[test]
fn a_refused_rename_counts_by_the_real_path() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let existing = "/srv".len();
    let by_link =
        |id, wants| PathAccess { existing, path: b"/srv/link/file".into(), ..ours(id, wants) };
    scene.request(by_link(1, Wants::Rename));
    for real in [("/srv/data/file", FileKind::File), ("/srv/data", FileKind::Directory)] {
        let token = scene.look();
        scene.tell(found(token, real.0.into(), real.1));
    }
    scene.answer(1, Answer::Deny { lifetime: Lifetime::Once });
    scene.actions();
    scene.request(by_link(2, Wants::Look));
    let token = scene.look();
    scene.tell(found(token, "/srv/data/file".into(), FileKind::File));
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 2, errno: 13 }]);
}
