//! The private home and what lies above the project: one thing is askable or absent, whoever touches it how.

use super::*;
use std::path::Path;

/// What the broker is told.
fn replied(scene: &mut Scene<'_>) -> Vec<AccessReply> {
    let actions = scene.actions().into_iter();
    actions
        .filter_map(|action| match action {
            Action::Reply(reply, _) => Some(reply),
            _ => None,
        })
        .collect()
}

/// Tells that nothing is there; gives what the broker is told, if that was all.
fn replied_to(scene: &mut Scene<'_>) -> Option<AccessReply> {
    for action in scene.actions() {
        match action {
            Action::Reply(reply, _) => return Some(reply),
            Action::Keeper(KeeperRequest::Look { token, .. }) => {
                scene.tell(KeeperEvent::Absent { token });
            }
            _ => {}
        }
    }
    None
}

fn denied_paths(scene: Scene<'_>) -> Vec<(String, String)> {
    let versions = palisade_record::Versions { palisade: "0".into(), kernel: "0".into() };
    let mut report = palisade_record::RunReport::begin("s", &["true"], versions);
    scene.state.tally.report(&mut report);
    report.denied_paths.into_iter().map(|denied| (denied.path, denied.access)).collect()
}

/// Proves: GATE-5 nobody-to-ask
#[test]
fn with_nobody_to_ask_it_does_not_exist_but_a_secret_is_refused() {
    for (on_ask, people) in [
        (OnAsk::Ask, People::Nobody),
        (OnAsk::Deny, People::Nobody),
        (OnAsk::Deny, People::Present),
    ] {
        let gate = facts(on_ask);
        let mut scene = Scene { people, ..Scene::new(&gate) };
        scene.found(request(1, "/opt/sdk/x.h", READ), FileKind::File);
        assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 1 }], "{on_ask:?}");
        scene.found(request(2, "/home/u/.ssh/id", READ), FileKind::File);
        assert_eq!(
            replied(&mut scene),
            [AccessReply::Fail { request: 2, errno: 13 }],
            "{on_ask:?}"
        );
        let denied = denied_paths(scene);
        assert_eq!(denied.len(), 2, "{denied:?}");
    }
}

/// Proves: GATE-1 above-project
#[test]
fn what_tools_look_for_above_the_project_is_absent_and_nobody_hears_of_it() {
    let mut gate = facts(OnAsk::Ask);
    gate.above_project.insert(0, "/home/u/work".into());
    let mut scene = Scene::new(&gate);
    for (id, path) in [
        (1, "/home/u/work/pyproject.toml"),
        (2, "/home/u/package.json"),
        (3, "/home/u/work/node_modules/.bin"),
        (4, "/Cargo.toml"),
        (5, "/home/u/work/.yarnrc"),
    ] {
        scene.found(request(id, path, Wants::Look), FileKind::File);
        assert_eq!(replied(&mut scene), [AccessReply::Absent { request: id }], "{path}");
    }
    assert_eq!(scene.queue.open().count(), 0);
    for (id, path) in [
        (10, "/home/u/work/notes.txt"),
        (11, "/home/u/work/other/pyproject.toml"),
        (12, "/home/u/.editorconfig"),
    ] {
        scene.found(request(id, path, READ), FileKind::File);
        assert_eq!(replied(&mut scene), [], "{path}");
    }
    assert_eq!(scene.queue.open().count(), 3);
    assert_eq!(denied_paths(scene), []);
}

/// A name that is taken is not made: the call only has to see it.
///
/// Proves: GATE-1 writes-wait
#[test]
fn a_call_that_finds_its_name_taken_waits_for_the_question_about_reading() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let directory = Wants::Open { directory: true, path_only: false };
    let first = scene.found(request(1, "/home/u/.e", directory), FileKind::Directory);
    let making = PathAccess { call: "mkdir".into(), ..request(2, "/home/u/.e", Wants::Make) };
    let second = scene.found(making, FileKind::Directory);
    assert_eq!(scene.queue.open().count(), 1);
    scene.answer(1, allow(Lifetime::Session));
    scene.actions();
    for (graft, token) in [first, second].into_iter().enumerate() {
        scene.tell(KeeperEvent::Grafted { token, graft: graft as u64 });
    }
    assert_eq!(
        replied(&mut scene),
        [AccessReply::Continue { request: 1 }, AccessReply::Continue { request: 2 }]
    );
    assert_eq!(denied_paths(scene), []);
}

/// What the host has right above it becomes writable, for the session or for one call.
///
/// Proves: GATE-10 asks-for-writing, GATE-10 once
#[test]
fn what_is_to_be_made_asks_to_write_the_directory_it_is_made_in() {
    for (lifetime, is_lent) in [(Lifetime::Session, false), (Lifetime::Once, true)] {
        let gate = facts(OnAsk::Ask);
        let mut scene = Scene::new(&gate);
        let existing = "/home/u".len();
        scene.request(PathAccess { existing, ..request(1, "/home/u/.e/new", Wants::Make) });
        let token = scene.look();
        scene.tell(KeeperEvent::Absent { token });
        let token = scene.look();
        scene.tell(found(token, "/home/u/.e".into(), FileKind::Directory));
        let asked = scene.queue.open().next().unwrap().subject.file().unwrap().clone();
        assert_eq!(asked.access, palisade_ask::Access::Write);
        assert_eq!(asked.entry.as_deref(), Some(Path::new("/home/u/.e/new")));
        assert_eq!(asked.directory, None);
        scene.answer(1, allow(lifetime));
        let actions = scene.actions();
        let lends = |action: &Action| matches!(action, Action::Keeper(KeeperRequest::Lend { .. }));
        let grafts = |action: &Action| {
            matches!(action, Action::Keeper(KeeperRequest::Graft { write: true, .. }))
        };
        assert_eq!(actions.iter().any(lends), is_lent, "{actions:?}");
        assert_eq!(actions.iter().any(grafts), !is_lent, "{actions:?}");
        let opened = std::fs::File::open("/dev/null").unwrap().into();
        if is_lent {
            scene.tell_with(KeeperEvent::Opened { token }, Some(opened));
            assert_eq!(
                replied(&mut scene),
                [AccessReply::WriteOnce { request: 1, path: b"/home/u/.e/new".to_vec() }]
            );
        }
    }
}

/// Proves: GATE-10 not-asked
#[test]
fn what_the_host_would_refuse_is_answered_at_once() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.request(request(1, "/srv/data/file", Wants::Write));
    let token = scene.look();
    let (links, needs) = (Vec::new(), Vec::new());
    let (path, kind) = ("/srv/data/file".into(), FileKind::File);
    let unwritable = Some(30);
    let identity = None;
    let found = palisade_keeper::Found { token, path, kind, links, needs, unwritable, identity };
    scene.tell(KeeperEvent::Found(found));
    assert_eq!(replied(&mut scene), [AccessReply::Fail { request: 1, errno: 30 }]);
    assert_eq!(scene.queue.open().count(), 0);
}

/// Proves: GATE-1 writes-wait
#[test]
fn what_is_to_be_made_asks_about_the_deepest_directory_that_the_host_has() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let existing = "/home/u".len();
    scene.request(PathAccess { existing, ..request(1, "/home/u/.e/x/y", Wants::Write) });
    let mut looked = Vec::new();
    for _ in 0..2 {
        let actions = scene.actions();
        let [Action::Keeper(KeeperRequest::Look { token, path, .. })] = &actions[..] else {
            panic!("{actions:?}")
        };
        looked.push(String::from_utf8(path.clone()).unwrap());
        scene.tell(KeeperEvent::Absent { token: *token });
    }
    assert_eq!(looked, ["/home/u/.e/x/y", "/home/u/.e/x"]);
    let token = scene.look();
    scene.tell(found(token, "/home/u/.e".into(), FileKind::Directory));
    assert_eq!(
        scene.queue.open().next().unwrap().subject.file().unwrap().path,
        Path::new("/home/u/.e")
    );
    // However deep it is, so many looks are enough.
    let deep = format!("/home/u/.g{}", "/x".repeat(1000));
    scene.request(PathAccess { existing, ..request(3, &deep, Wants::Write) });
    let mut looks = 0;
    while replied_to(&mut scene).is_none() {
        looks += 1;
        assert!(looks < 30, "still looking");
    }
    // Nothing of it is on the host: it is made where it was meant.
    scene.request(PathAccess { existing, ..request(2, "/home/u/.f/x", Wants::Write) });
    for _ in 0..2 {
        let token = scene.look();
        scene.tell(KeeperEvent::Absent { token });
    }
    assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 2 }]);
}

/// Proves: GATE-1 writes-wait
#[test]
fn a_no_is_eacces_for_reading_and_writing() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.found(request(1, "/home/u/.e", Wants::Look), FileKind::Directory);
    scene.found(request(2, "/home/u/.e", Wants::Write), FileKind::Directory);
    scene.answer(1, Answer::Deny { lifetime: Lifetime::Session });
    let refused = |request| AccessReply::Fail { request, errno: 13 };
    assert_eq!(replied(&mut scene), [refused(1), refused(2)]);
    scene.found(request(3, "/home/u/.e", Wants::Write), FileKind::Directory);
    assert_eq!(replied(&mut scene), [refused(3)]);
}

/// Proves: GATE-1 own-directories
#[test]
fn a_directory_that_the_command_made_is_its_own() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let in_own =
        PathAccess { existing: "/home/u/.e".len(), ..request(1, "/home/u/.e/config", READ) };
    scene.request(in_own);
    assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 1 }]);
    // The home directory itself, and directories on the way to a grant, are not.
    for (id, path, existing) in
        [(2, "/home/u/.f", "/home/u"), (3, "/opt/x/y", "/opt/x"), (4, "/srv", "/")]
    {
        scene.request(PathAccess { existing: existing.len(), ..request(id, path, READ) });
        scene.look();
    }
}

/// Proves: GATE-1 writes-wait
#[test]
fn what_is_made_in_a_directory_that_many_programs_share_is_not_asked_about() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let existing = "/home/u".len();
    scene.request(PathAccess { existing, ..request(1, "/home/u/.local", Wants::Write) });
    let token = scene.look();
    scene.tell(found(token, "/home/u/.local".into(), FileKind::Directory));
    assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 1 }]);
    assert_eq!(scene.queue.open().count(), 0);
    // Its other parts are as they were.
    let existing = "/home/u/.local".len();
    scene.request(PathAccess { existing, ..request(2, "/home/u/.local/bin/x", READ) });
    let token = scene.look();
    scene.tell(found(token, "/home/u/.local/bin/x".into(), FileKind::File));
    assert_eq!(scene.queue.open().count(), 1);
    assert_eq!(denied_paths(scene), []);
}

/// One file is granted in a directory of the private home.
fn with_granted_file(gate: &Gate) -> Scene<'_> {
    let mut scene = Scene::new(gate);
    let existing = "/home/u".len();
    let token = scene
        .found(PathAccess { existing, ..request(1, "/home/u/work/first", READ) }, FileKind::File);
    let offered = scene.queue.open().next().unwrap().subject.file().unwrap().directory.clone();
    assert_eq!(offered.as_deref(), Some(Path::new("/home/u/work")));
    scene.answer(1, allow(Lifetime::Session));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    scene.actions();
    scene
}

/// And the command makes another in it.
fn with_private_file(gate: &Gate) -> Scene<'_> {
    let mut scene = with_granted_file(gate);
    let existing = "/home/u/work".len();
    scene.request(PathAccess { existing, ..request(2, "/home/u/work/own", Wants::Write) });
    let token = scene.look();
    scene.tell(KeeperEvent::Absent { token });
    assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 2 }]);
    scene
}

/// A grant of the directory would hide the command's files from their absolute path, and not from a process in it.
///
/// Proves: GATE-1 own-directories
#[test]
fn a_directory_with_private_files_is_neither_offered_nor_covered() {
    let gate = facts(OnAsk::Ask);
    let mut scene = with_private_file(&gate);
    let existing = "/home/u/work".len();
    let other = PathAccess { existing, ..request(3, "/home/u/work/second", READ) };
    let token = scene.found(other, FileKind::File);
    let file = scene.queue.open().next().unwrap().subject.file().unwrap().clone();
    assert_eq!(file.directory, None);
    scene.actions();
    scene.answer(2, allow(Lifetime::Session));
    let graft = KeeperRequest::Graft { token, what: What::Found, exec: false, write: false };
    assert_eq!(asks(&scene.actions()), [graft]);
    // To rename something in it would need all of it; to remove it takes that name alone.
    let renamed = PathAccess { existing, ..request(4, "/home/u/work/third", Wants::Rename) };
    scene.found(renamed, FileKind::File);
    assert_eq!(replied(&mut scene), [AccessReply::Fail { request: 4, errno: 13 }]);
    let removed = PathAccess { existing, ..request(5, "/home/u/work/third", Wants::Remove) };
    scene.found(removed, FileKind::File);
    let file = scene.queue.open().next().unwrap().subject.file().unwrap().clone();
    assert_eq!(file.directory, None);
}

/// Proves: GATE-1 own-directories
#[test]
fn a_directory_with_private_files_lists_itself() {
    let gate = facts(OnAsk::Ask);
    let listing = Wants::Open { directory: true, path_only: false };
    let list = |id| {
        let existing = "/home/u/work".len();
        PathAccess { existing, ..request(id, "/home/u/work", listing) }
    };
    let mut scene = with_private_file(&gate);
    scene.request(list(3));
    assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 3 }]);
    let mut scene = with_granted_file(&gate);
    scene.request(list(3));
    scene.look();
}

/// Proves: GATE-1 own-directories
#[test]
fn a_rule_for_a_tree_shows_single_files_beside_private_ones() {
    let gate = facts(OnAsk::Ask);
    let mut scene = with_private_file(&gate);
    let tree = Pattern::Tree("/home/u/work".into());
    scene.state.decider.add(rule(Effect::Allow, tree));
    let existing = "/home/u/work".len();
    let other = PathAccess { existing, ..request(3, "/home/u/work/second", READ) };
    let token = scene.found(other, FileKind::File);
    let graft = KeeperRequest::Graft { token, what: What::Found, exec: true, write: false };
    assert_eq!(asks(&scene.actions()), [graft]);
}

/// Proves: GATE-1 own-directories
#[test]
fn a_private_directory_that_is_gone_can_be_granted_again() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let existing = "/home/u".len();
    scene.request(PathAccess { existing, ..mkdir(1, "/home/u/work") });
    assert_eq!(replied_to(&mut scene), None);
    assert!(scene.state.private_directories.are_within(Path::new("/home/u/work")));
    scene.found(PathAccess { existing, ..request(3, "/home/u/work/second", READ) }, FileKind::File);
    assert_eq!(offered(&scene).as_deref(), Some(Path::new("/home/u/work")));
}

/// The directory that the latest question offers.
fn offered(scene: &Scene<'_>) -> Option<PathBuf> {
    scene.queue.open().last().unwrap().subject.file().unwrap().directory.clone()
}

/// Nothing is missing where a file may only be read, and the command's own files are still beside it.
///
/// Proves: GATE-1 own-directories
#[test]
fn a_write_to_what_may_only_be_read_does_not_make_its_directory_grantable() {
    let gate = facts(OnAsk::Ask);
    let mut scene = with_private_file(&gate);
    let existing = "/home/u".len();
    let first = request(3, "/home/u/work/first", Wants::Write);
    scene.found(PathAccess { existing, is_read_only: true, ..first }, FileKind::File);
    let existing = "/home/u/work".len();
    scene.found(PathAccess { existing, ..request(4, "/home/u/work/second", READ) }, FileKind::File);
    assert_eq!(offered(&scene), None);
}

/// Proves: GATE-1 own-directories
#[test]
fn a_call_that_creates_nothing_makes_no_directory_private() {
    let gate = facts(OnAsk::Ask);
    let mut scene = with_granted_file(&gate);
    let existing = "/home/u/work".len();
    scene.request(PathAccess { existing, ..request(2, "/home/u/work/none", Wants::WriteExisting) });
    let token = scene.look();
    scene.tell(KeeperEvent::Absent { token });
    assert_eq!(replied(&mut scene), [AccessReply::Absent { request: 2 }], "nothing to create");
    scene.found(PathAccess { existing, ..request(3, "/home/u/work/second", READ) }, FileKind::File);
    assert_eq!(offered(&scene).as_deref(), Some(Path::new("/home/u/work")));
}

/// A question was answered with the whole directory while the command made something there.
///
/// Proves: GATE-1 own-directories
#[test]
fn a_directory_that_became_private_while_it_was_asked_about_is_not_covered() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let existing = "/home/u".len();
    let first = PathAccess { existing, ..request(1, "/home/u/work/first", READ) };
    let token = scene.found(first, FileKind::File);
    scene.request(PathAccess { existing, ..mkdir(2, "/home/u/work") });
    let made = scene.look();
    scene.tell(KeeperEvent::Absent { token: made });
    scene.actions();
    scene.answer(1, Answer::Allow { scope: Scope::Directory, lifetime: Lifetime::Session });
    let graft = KeeperRequest::Graft { token, what: What::Found, exec: false, write: false };
    assert_eq!(asks(&scene.actions()), [graft]);
}

/// It cannot be shown then, and what the call creates would be discarded, although somebody said yes.
///
/// Proves: GATE-1 own-directories
#[test]
fn a_yes_to_write_in_a_directory_that_became_private_is_refused() {
    for is_by_rule in [false, true] {
        let gate = facts(OnAsk::Ask);
        let mut scene = Scene::new(&gate);
        let existing = "/home/u".len();
        let made = |id| PathAccess { existing, ..mkdir(id, "/home/u/work/new") };
        scene.request(made(1));
        if is_by_rule {
            let tree = rule(Effect::Allow, Pattern::Tree("/home/u/work".into()));
            scene.state.decider.add(Rule { access: Access::Write, ..tree });
            scene.state.private_directories.insert(Path::new("/home/u/work"));
        }
        let token = scene.look();
        scene.tell(KeeperEvent::Absent { token });
        let token = scene.look();
        scene.tell(found(token, "/home/u/work".into(), FileKind::Directory));
        if !is_by_rule {
            scene.state.private_directories.insert(Path::new("/home/u/work"));
            scene.answer(1, allow(Lifetime::Session));
        }
        assert_eq!(replied(&mut scene), [AccessReply::Fail { request: 1, errno: 13 }]);
        assert_eq!(denied_paths(scene).len(), 1);
    }
}

/// Nothing is granted below a file, and the directory is never granted as a whole.
///
/// Proves: GATE-1 own-directories
#[test]
fn files_in_a_wide_directory_take_one_place_among_the_private_ones() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    let existing = "/home/u".len();
    for id in 1..=5000 {
        let file = request(id, &format!("/home/u/file-{id}"), Wants::Write);
        scene.request(PathAccess { existing, ..file });
        let token = scene.look();
        scene.tell(KeeperEvent::Absent { token });
    }
    scene.request(PathAccess { existing, ..mkdir(6000, "/home/u/work") });
    let token = scene.look();
    scene.tell(KeeperEvent::Absent { token });
    let is_private = |path: &str| scene.state.private_directories.are_within(Path::new(path));
    assert!(is_private("/home/u/work") && is_private("/home/u"));
    assert!(!is_private("/home/u/other") && !is_private("/home/u/file-1"));
}
