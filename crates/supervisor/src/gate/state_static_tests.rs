//! Static mode: what is used in the home directory is shown by rule, and nobody is asked.

use super::*;

fn fixed() -> Gate {
    Gate { answers: Answers::Readable(vec!["/home/u".into()]), ..facts(OnAsk::Ask) }
}

/// As the gate's file system asks.
fn served(id: u64, path: &str, wants: Wants) -> PathAccess {
    PathAccess { may_be_served: true, ..request(id, path, wants) }
}

fn shows(token: u64, what: What) -> KeeperRequest {
    KeeperRequest::Graft { token, what, exec: true, write: false }
}

/// Proves: GATE-7 readable-home, GATE-7 no-questions
#[test]
fn a_file_is_shown_with_the_directory_that_it_is_in() {
    let gate = fixed();
    let mut scene = Scene::new(&gate);
    let token = scene.found(served(1, "/home/u/other/src/main.rs", READ), FileKind::File);
    let directory = What::Directory("/home/u/other/src".into());
    assert_eq!(asks(&scene.actions()), [shows(token, directory)]);
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    assert_eq!(replies(&scene.actions()), [AccessReply::Continue { request: 1 }]);
    assert_eq!(scene.queue.open().count(), 0);
}

/// Proves: GATE-7 readable-home
#[test]
fn what_can_be_shown_is_shown_of_a_directory_with_a_secret_in_it() {
    let gate = fixed();
    let mut scene = Scene::new(&gate);
    let listed = Wants::Open { directory: true, path_only: false };
    let token = scene.found(served(1, "/home/u/other", listed), FileKind::Directory);
    let directory = || What::Directory("/home/u/other".into());
    assert_eq!(asks(&scene.actions()), [shows(token, directory())]);
    scene.tell(KeeperEvent::NotWhole { token });
    let actions = scene.actions();
    assert!(matches!(asks(&actions)[..], [KeeperRequest::Graft { what: What::Name, .. }]));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let named = AccessReply::Named { request: 1, for_one_call: false };
    assert_eq!(replies(&scene.actions()), [named]);
    // The keeper does not search the same directory again.
    let token = scene.found(served(2, "/home/u/other/README", READ), FileKind::File);
    assert_eq!(asks(&scene.actions()), [shows(token, What::Found)]);
    let token = scene.found(served(3, "/home/u/other/src/main.rs", READ), FileKind::File);
    let below = What::Directory("/home/u/other/src".into());
    assert_eq!(asks(&scene.actions()), [shows(token, below)]);
}

/// Proves: GATE-7 flat-listing
#[test]
fn to_look_at_something_mounts_nothing() {
    let gate = fixed();
    let mut scene = Scene::new(&gate);
    for (id, kind) in [(1, FileKind::File), (2, FileKind::Directory), (3, FileKind::Link)] {
        let token = scene.found(served(id, "/home/u/other", Wants::Look), kind);
        let actions = scene.actions();
        let told = AccessReply::Named { request: id, for_one_call: true };
        assert_eq!(replies(&actions), [told], "{kind:?}");
        assert_eq!(asks(&actions), [KeeperRequest::Forget { token }], "{kind:?}");
    }
}

/// Proves: GATE-7 no-secrets
#[test]
fn secrets_are_denied_by_every_name() {
    let gate = fixed();
    let mut scene = Scene::new(&gate);
    for (id, path) in [(1, "/home/u/.ssh/id"), (2, "/home/u/other/.env"), (3, "/home/u/.aws/x")] {
        for wants in [READ, Wants::Look, Wants::Write] {
            scene.found(served(id, path, wants), FileKind::File);
            let denied = AccessReply::fail(id, Errno::ACCESS);
            assert_eq!(replies(&scene.actions()), [denied], "{path} {wants:?}");
        }
    }
    assert_eq!(scene.queue.open().count(), 0);
    let versions = palisade_record::Versions { palisade: "0".into(), kernel: "0".into() };
    let mut report = palisade_record::RunReport::begin("s", &["true"], versions);
    scene.state.tally.report(&mut report);
    let told: Vec<&str> = report.denied_paths.iter().map(|denied| denied.path.as_str()).collect();
    assert!(told.contains(&"/home/u/other/.env"), "{told:?}");
    assert!(report.denied_paths.iter().all(|denied| denied.is_secret));
}

/// Proves: GATE-7 read-only-view
#[test]
fn nothing_is_shown_for_writing_whatever_a_rule_allows() {
    let gate = fixed();
    let tree = rule(Effect::Allow, Pattern::Tree("/home/u/other".into()));
    let mut scene = Scene::with_rules(&gate, vec![Rule { access: Access::Write, ..tree }]);
    let token = scene.found(request(1, "/home/u/other/file", Wants::Write), FileKind::File);
    let asked = asks(&scene.actions());
    assert!(
        matches!(&asked[..], [KeeperRequest::Graft { token: of, write: false, .. }] if *of == token),
        "{asked:?}"
    );
    let mut scene = Scene::new(&gate);
    scene.found(request(2, "/home/u/other/file", Wants::Remove), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::fail(2, Errno::ACCESS)]);
}

/// Proves: GATE-7 rules
#[test]
fn a_denial_among_the_rules_counts() {
    let gate = fixed();
    let rules = vec![rule(Effect::Deny, Pattern::Tree("/home/u/other/diary".into()))];
    let mut scene = Scene::with_rules(&gate, rules);
    scene.found(served(1, "/home/u/other/diary/today", Wants::Look), FileKind::File);
    assert_eq!(replies(&scene.actions()), [AccessReply::fail(1, Errno::ACCESS)]);
    // The directory that it is in is not shown as a whole.
    let token = scene.found(served(2, "/home/u/other/letter", READ), FileKind::File);
    assert_eq!(asks(&scene.actions()), [shows(token, What::Found)]);
}

/// Proves: GATE-7 left-out
#[test]
fn other_homes_and_the_caches_of_tools_look_absent() {
    let gate = fixed();
    let mut scene = Scene::new(&gate);
    for (id, path) in [(1, "/home/other/file"), (2, "/srv/x"), (3, "/home/u/.npm/x")] {
        scene.found(served(id, path, READ), FileKind::File);
        assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: id }], "{path}");
    }
}
