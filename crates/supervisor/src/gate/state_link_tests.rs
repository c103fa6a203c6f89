//! What links on the way to a file make of it: the worst of all names counts.

use super::*;

/// What the keeper tells of a file that a link leads to.
fn found_behind(token: u64, link: &str, path: &str) -> KeeperEvent {
    let links = vec![(PathBuf::from(link), PathBuf::from(path))];
    let (path, needs) = (PathBuf::from(path), Vec::new());
    KeeperEvent::Found(palisade_keeper::Found {
        token,
        path,
        kind: FileKind::File,
        links,
        needs,
        unwritable: None,
        identity: None,
    })
}

/// Proves: FS-2 linked-secrets
#[test]
fn a_secret_behind_a_link_is_one_by_either_name() {
    let gate = facts(OnAsk::Allow);
    let mut scene = Scene::new(&gate);
    scene.request(request(7, "/home/u/.ssh/id_rsa", READ));
    let token = scene.look();
    scene.tell(found_behind(token, "/home/u/.ssh/id_rsa", "/home/u/keys/id_rsa"));
    let actions = scene.actions();
    assert!(
        matches!(replies(&actions)[..], [AccessReply::Fail { request: 7, errno: 13 }]),
        "{actions:?}"
    );
    scene.found(request(8, "/home/u/keys/id_rsa", READ), FileKind::File);
    let actions = scene.actions();
    assert!(
        matches!(replies(&actions)[..], [AccessReply::Fail { request: 8, errno: 13 }]),
        "{actions:?}"
    );
    let token = scene.found(request(9, "/home/u/keys/other", READ), FileKind::File);
    let graft = KeeperRequest::Graft { token, what: What::Found, exec: false, write: false };
    assert_eq!(asks(&scene.actions()), [graft], "what lies beside it is no secret");
}

/// Proves: FS-2 linked-secrets
#[test]
fn a_denied_name_is_denied_where_it_is_a_link() {
    let gate = facts(OnAsk::Allow);
    let denied = rule(Effect::Deny, Pattern::Tree("/home/u/private".into()));
    let mut scene = Scene::with_rules(&gate, vec![denied]);
    scene.request(request(7, "/home/u/private/a", READ));
    let token = scene.look();
    scene.tell(found_behind(token, "/home/u/private/a", "/home/u/elsewhere/a"));
    assert!(matches!(replies(&scene.actions())[..], [AccessReply::Fail { request: 7, .. }]));
    scene.request(request(8, "/etc/palisade/a", READ));
    let token = scene.look();
    scene.tell(found_behind(token, "/etc/palisade/a", "/home/u/elsewhere/a"));
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 8 }]);
}

/// Proves: FS-2 linked-secrets
#[test]
fn a_secret_link_to_what_is_visible_is_asked_about_and_then_shown_as_a_link() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.request(request(7, "/home/u/.ssh/config", READ));
    let token = scene.look();
    scene.tell(found_behind(token, "/home/u/.ssh/config", "/home/u/project/ssh/config"));
    let actions = scene.actions();
    assert!(matches!(actions[..], [Action::Opened(QuestionId(1))]), "{actions:?}");
    assert!(scene.queue.open().all(|question| question.is_secret));
    scene.answer(1, allow(Lifetime::Session));
    let graft = KeeperRequest::Graft { token, what: What::Links, exec: false, write: false };
    assert_eq!(asks(&scene.actions()), [graft]);
}
