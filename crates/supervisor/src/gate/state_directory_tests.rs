//! Directories that are offered instead of a file, and what a yes to one gives.

use super::*;

/// Proves: GATE-4 directory-offered
#[test]
fn a_directory_answers_for_every_file_that_waits_in_it() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let first = scene.found(request(1, "/opt/sdk/a.h", READ), FileKind::File);
    let second = scene.found(request(2, "/opt/sdk/b.h", READ), FileKind::File);
    let lifetime = Lifetime::Session;
    scene.actions();
    scene.answer(1, Answer::Allow { scope: Scope::Directory, lifetime });
    let directory = || What::Directory("/opt/sdk".into());
    let grafts = [first, second].map(|token| KeeperRequest::Graft {
        token,
        what: directory(),
        // To read a directory is not to run what is in it.
        exec: false,
        write: false,
    });
    assert_eq!(asks(&scene.actions()), grafts);
}

/// Proves: GATE-4 directory-offered
#[test]
fn a_directory_is_offered_until_something_in_it_is_denied() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let mut offered = |id: u64, path: &str| {
        scene.found(request(id, path, READ), FileKind::File);
        let question = scene.queue.open().last().unwrap();
        let file = question.subject.file().unwrap();
        let directory = file.directory.clone();
        scene.answer(id, Answer::Deny { lifetime: Lifetime::Session });
        scene.actions();
        directory
    };
    assert_eq!(offered(1, "/srv/one/a"), Some("/srv/one".into()));
    assert_eq!(offered(2, "/srv/one/b"), None);
    assert_eq!(offered(3, "/srv/two/a"), Some("/srv/two".into()));
    assert_eq!(offered(4, "/home/u/.ssh/a"), None);
}

/// Proves: GATE-10 directory-without-execution
#[test]
fn programs_in_a_directory_are_given_only_with_it() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = scene.found(request(1, "/opt/sdk/a.h", READ), FileKind::File);
    scene.actions();
    let lifetime = Lifetime::Session;
    scene.answer(1, Answer::Allow { scope: Scope::DirectoryToRun, lifetime });
    let what = What::Directory("/opt/sdk".into());
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what, exec: true, write: false }]
    );
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_tree_that_holds_a_secret_is_shown_file_by_file() {
    let gate = facts(OnAsk::Ask);
    let rules = vec![rule(Effect::Allow, Pattern::Tree("/opt/sdk".into()))];
    let mut scene = Scene::with_rules(&gate, rules);
    let token = scene.found(request(1, "/opt/sdk/a", READ), FileKind::File);
    let whole = KeeperRequest::Graft {
        token,
        what: What::Directory("/opt/sdk".into()),
        exec: true,
        write: false,
    };
    assert_eq!(asks(&scene.actions()), [whole]);
    scene.tell(KeeperEvent::NotWhole { token });
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what: What::Found, exec: true, write: false }]
    );
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    assert_eq!(replies(&scene.actions()), [AccessReply::Continue { request: 1 }]);
    let token = scene.found(request(2, "/opt/sdk/b", READ), FileKind::File);
    assert!(
        matches!(asks(&scene.actions())[..], [KeeperRequest::Graft { token: again, .. }] if again == token)
    );
}

/// What the panel says is what a yes gives: a directory with something that has to be asked about separately is never
/// offered as a whole.
///
/// Proves: GATE-4 denied-within
#[test]
fn a_directory_that_cannot_be_shown_whole_is_asked_about_as_a_name() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let directory = "/opt/a/with-dotenv";
    scene.found(request(1, directory, Wants::Enter), FileKind::Directory);
    let file = scene.queue.open().next().unwrap().subject.file().unwrap().clone();
    assert!(file.is_name_only && !file.is_tree());
    assert_eq!(file.directory, None);
    scene.found(request(2, &format!("{directory}/file"), READ), FileKind::File);
    let file = scene.queue.open().last().unwrap().subject.file().unwrap().clone();
    assert_eq!(file.directory, None);
    scene.found(request(3, "/opt/b/file", READ), FileKind::File);
    let file = scene.queue.open().last().unwrap().subject.file().unwrap().clone();
    assert_eq!(file.directory.as_deref(), Some(Path::new("/opt/b")));
}

/// A directory is granted to a process that is in it, and something else is shown for one call; then the process looks for
/// a name there. Gives the token of that look.
fn look_below_cover_while_something_is_shown_once(scene: &mut Scene<'_>) -> u64 {
    let token = scene.found(request(1, "/opt/sdk/a", READ), FileKind::File);
    let lifetime = Lifetime::Session;
    scene.answer(1, Answer::Allow { scope: Scope::Directory, lifetime });
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let token = scene.found(request(2, "/srv/data", Wants::Look), FileKind::Directory);
    scene.answer(2, allow(Lifetime::Once));
    scene.tell(KeeperEvent::Grafted { token, graft: 2 });
    scene.actions();
    let existing = "/opt/sdk".len();
    let below = PathAccess { existing, is_covered: true, ..request(3, "/opt/sdk/b", READ) };
    let token = scene.found(below, FileKind::File);
    assert_eq!(asks(&scene.actions()), [], "what is shown for one call would be copied with it");
    token
}

/// Proves: GATE-4 short-lived, GATE-4 around-a-process
#[test]
fn nothing_is_shown_below_a_cover_while_something_is_shown_for_one_call() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let token = look_below_cover_while_something_is_shown_once(&mut scene);
    scene.state.returned(2);
    assert_eq!(asks(&scene.actions()), [KeeperRequest::Ungraft { graft: 2 }]);
    scene.tell(KeeperEvent::Ungrafted { graft: 2 });
    let what = What::BelowCover("/opt/sdk".into());
    assert_eq!(
        asks(&scene.actions()),
        [KeeperRequest::Graft { token, what, exec: false, write: false }]
    );
    scene.tell(KeeperEvent::Grafted { token, graft: 3 });
    let actions = scene.actions();
    assert_eq!(replies(&actions), [AccessReply::Continue { request: 3 }]);
    assert_eq!(asks(&actions), [KeeperRequest::Forget { token }]);
}

/// Proves: GATE-5 dead-keeper
#[test]
fn what_waits_for_the_end_of_a_grant_for_one_call_is_refused_with_the_keeper() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    look_below_cover_while_something_is_shown_once(&mut scene);
    scene.lose_keeper();
    assert_eq!(replies(&scene.actions()), [AccessReply::Fail { request: 3, errno: 13 }]);
}
