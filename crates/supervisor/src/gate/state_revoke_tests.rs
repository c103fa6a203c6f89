//! Grants that end before the run does: taken back, or never carried out.

use super::*;
use crate::gate::state::revoking::NotRevoked;

/// A directory that somebody allowed for the session, as graft 1.
fn granted<'g>(gate: &'g Gate, path: &str) -> Scene<'g> {
    let mut scene = Scene::new(gate);
    let token = scene.found(request(1, path, READ), FileKind::Directory);
    scene.answer(1, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    scene.actions();
    scene
}

fn revoked(actions: &[Action]) -> Vec<u64> {
    let id = |action: &Action| match action {
        Action::Revoked(id) => Some(*id),
        _ => None,
    };
    actions.iter().filter_map(id).collect()
}

/// What the gate's file system is told: paths, and whether their names are kept.
fn hidden(actions: &[Action]) -> Vec<(PathBuf, bool)> {
    let one = |action: &Action| match action {
        Action::Hidden { path, is_name_kept } => Some((path.clone(), *is_name_kept)),
        _ => None,
    };
    actions.iter().filter_map(one).collect()
}

/// Whatever order they were granted in: the gate's file system serves each until it is told of it.
///
/// Proves: GATE-4 revoked
#[test]
fn every_grant_below_is_told_to_the_gates_file_system() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    for (id, (path, kind)) in
        (1..).zip([("/opt/d/sub/x", FileKind::File), ("/opt/d", FileKind::Directory)])
    {
        let token = scene.found(request(id, path, READ), kind);
        scene.answer(id, allow(Lifetime::Session));
        scene.tell(KeeperEvent::Grafted { token, graft: id });
    }
    scene.actions();
    let revocation = scene.state.revoke(Path::new("/opt/d")).unwrap();
    scene.tell(KeeperEvent::Revoked { token: revocation.id });
    let mut told: Vec<PathBuf> =
        hidden(&scene.actions()).into_iter().map(|(path, _)| path).collect();
    told.sort_unstable();
    assert_eq!(told, [Path::new("/opt/d"), Path::new("/opt/d/sub/x")]);
}

/// Proves: GATE-4 revoked
#[test]
fn what_a_lost_keeper_shows_is_not_said_to_be_gone() {
    let gate = facts(OnAsk::Ask);
    let mut scene = granted(&gate, "/opt/d/sub");
    scene.lose_keeper();
    scene.actions();
    let token = scene.found(request(2, "/opt/d", READ), FileKind::Directory);
    scene.answer(2, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let why = scene.state.revoke(Path::new("/opt/d")).unwrap_err();
    assert!(matches!(why, NotRevoked::Unreachable(_)), "{why}");
}

/// Proves: GATE-4 revoked
#[test]
fn an_interpreter_that_was_taken_back_is_not_given_to_another_script() {
    let gate = facts(OnAsk::Allow);
    let mut scene = Scene::new(&gate);
    scene.request(request(1, "/opt/bb", READ));
    let token = scene.look();
    scene.tell(found(token, "/opt/bb".into(), FileKind::File));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let token = scene.state.revoke(Path::new("/opt/bb")).unwrap().id;
    scene.tell(KeeperEvent::Revoked { token });
    scene.actions();
    scene.request(request(2, "/opt/script", Wants::Execute));
    let token = scene.look();
    scene.tell(found_program(token, "/opt/script", &["/opt/bb"]));
    let need = scene.look();
    scene.tell(found(need, "/opt/bb".into(), FileKind::File));
    let grafts = asks(&scene.actions());
    assert!(!grafts.iter().any(|ask| matches!(ask, KeeperRequest::Graft { .. })), "{grafts:?}");
}

/// Proves: GATE-4 revoked
#[test]
fn what_is_taken_back_is_gone_when_the_keeper_says_so_and_is_asked_about_again() {
    let gate = facts(OnAsk::Ask);
    let mut scene = granted(&gate, "/opt/sdk");
    let revocation = scene.state.revoke(Path::new("/opt/sdk")).unwrap();
    assert_eq!(revocation.paths, [Path::new("/opt/sdk")]);
    assert!(scene.state.answered.is_empty());
    let actions = scene.actions();
    let token = revocation.id;
    assert_eq!(asks(&actions), [KeeperRequest::Revoke { token, path: "/opt/sdk".into() }]);
    assert!(revoked(&actions).is_empty(), "not before it is gone");
    scene.tell(KeeperEvent::Revoked { token });
    let actions = scene.actions();
    assert_eq!(revoked(&actions), [token]);
    assert_eq!(hidden(&actions), [(PathBuf::from("/opt/sdk"), false)]);
    scene.found(request(2, "/opt/sdk/a", READ), FileKind::File);
    assert_eq!(scene.queue.open().count(), 1);
}

/// Proves: GATE-4 revoked
#[test]
fn a_rule_allows_nothing_there_any_more_and_a_new_answer_does() {
    let gate = facts(OnAsk::Ask);
    let rules = vec![rule(Effect::Allow, Pattern::Tree("/opt".into()))];
    let mut scene = Scene::with_rules(&gate, rules);
    let token = scene.found(request(1, "/opt/sdk/a", READ), FileKind::File);
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    scene.actions();
    let part = scene.state.revoke(Path::new("/opt/sdk")).unwrap_err();
    assert!(matches!(part, NotRevoked::PartOf { above, .. } if above == Path::new("/opt")));
    let token = scene.state.revoke(Path::new("/opt")).unwrap().id;
    scene.tell(KeeperEvent::Revoked { token });
    scene.actions();
    let token = scene.found(request(2, "/opt/sdk/a", READ), FileKind::File);
    scene.answer(1, allow(Lifetime::Session));
    let found = KeeperRequest::Graft { token, what: What::Found, exec: false, write: false };
    assert_eq!(asks(&scene.actions()), [found], "no more than the answer says");
}

/// Proves: GATE-4 revoked
#[test]
fn nothing_is_given_back_by_a_policy_that_allows_everything() {
    let gate = facts(OnAsk::Allow);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/a", READ), FileKind::File);
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let token = scene.state.revoke(Path::new("/opt/a")).unwrap().id;
    scene.tell(KeeperEvent::Revoked { token });
    scene.actions();
    scene.found(request(2, "/opt/a", READ), FileKind::File);
    let actions = scene.actions();
    assert!(
        asks(&actions).iter().all(|ask| matches!(ask, KeeperRequest::Forget { .. })),
        "{actions:?}"
    );
}

/// Proves: GATE-4 revoked
#[test]
fn a_grant_that_is_under_way_is_taken_back_too() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/a", READ), FileKind::File);
    scene.answer(1, allow(Lifetime::Session));
    scene.actions();
    scene.state.revoke(Path::new("/opt")).unwrap();
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 1, errno: 13 }]);
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    assert!(asks(&scene.actions()).contains(&KeeperRequest::Ungraft { graft: 1 }));
}

/// Proves: GATE-4 revoked
#[test]
fn what_cannot_be_taken_back_says_why() {
    let gate = facts(OnAsk::Ask);
    let mut scene = granted(&gate, "/opt/sdk");
    let why = |scene: &mut Scene<'_>, path: &str| scene.state.revoke(Path::new(path)).unwrap_err();
    assert!(matches!(why(&mut scene, "/opt/other"), NotRevoked::Nothing(_)));
    assert!(matches!(why(&mut scene, "/usr/bin"), NotRevoked::ByPolicy(_)));
    assert!(matches!(why(&mut scene, "/opt/sdk/a"), NotRevoked::PartOf { .. }));
    scene.lose_keeper();
    assert!(matches!(why(&mut scene, "/opt/sdk"), NotRevoked::Unreachable(_)));
}

/// Proves: GATE-4 revoked, GATE-5 dead-keeper
#[test]
fn a_keeper_that_dies_before_it_has_taken_something_back_ends_the_run() {
    let gate = facts(OnAsk::Ask);
    let mut scene = granted(&gate, "/opt/sdk");
    scene.state.revoke(Path::new("/opt/sdk")).unwrap();
    scene.lose_keeper();
    assert!(scene.actions().iter().any(|action| matches!(action, Action::EndRun(_))));
}

/// Proves: GATE-5 failed-grant
#[test]
fn what_could_not_be_shown_is_asked_about_again() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/sdk/a", Wants::Look), FileKind::File);
    scene.answer(1, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Failed { token, step: "move_mount".to_owned(), errno: 28 });
    scene.actions();
    let token = scene.found(request(2, "/opt/sdk/a", Wants::Look), FileKind::File);
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what: What::Found, exec: false, write: false }]
    );
}
