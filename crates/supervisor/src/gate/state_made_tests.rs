//! Files that a process was allowed once to make: whose they are, and until when.

use super::*;
use palisade_sys::FileIdentity;

const DIRECTORY: FileIdentity = (1, 10, 100, 0);
const FILE: FileIdentity = (1, 11, 200, 0);
const PATH: &str = "/opt/sdk/new";

fn by(pid: u32, id: u64, wants: Wants) -> PathAccess {
    PathAccess { pid, existing: "/opt".len(), ..request(id, PATH, wants) }
}

fn by_us(id: u64, wants: Wants) -> PathAccess {
    by(std::process::id(), id, wants)
}

impl Scene<'_> {
    /// What the host has there is this file.
    fn identified(&mut self, request: PathAccess, path: &str, kind: FileKind, it: FileIdentity) {
        self.request(request);
        self.identify(path, kind, it);
    }

    fn identify(&mut self, path: &str, kind: FileKind, it: FileIdentity) {
        let token = self.look();
        let KeeperEvent::Found(found) = found(token, path.into(), kind) else { unreachable!() };
        let identity = Some(it);
        self.tell(KeeperEvent::Found(palisade_keeper::Found { identity, ..found }));
    }

    /// The name is free in this directory.
    fn making(&mut self, request: PathAccess, directory: FileIdentity) {
        self.request(request);
        let token = self.look();
        self.tell(KeeperEvent::Absent { token });
        self.identify("/opt/sdk", FileKind::Directory, directory);
    }

    fn asked(&self) -> usize {
        self.queue.open().count()
    }
}

/// We were allowed once to make it, and have.
fn made(gate: &Gate) -> Scene<'_> {
    let mut scene = Scene::new(gate);
    scene.making(by_us(1, Wants::Make), DIRECTORY);
    scene.actions();
    scene.answer(1, allow(Lifetime::Once));
    assert!(matches!(asks(&scene.actions())[..], [KeeperRequest::Lend { parent: false, .. }]));
    scene.state.made(1, FILE);
    scene
}

/// Proves: GATE-10 made-once
#[test]
fn who_made_a_file_is_not_asked_about_it_again() {
    let gate = facts(OnAsk::Ask);
    let all = [READ, Wants::Look, Wants::Write, Wants::Make, Wants::Change, Wants::Replace];
    for wants in all.into_iter().chain([Wants::Remove]) {
        let mut scene = made(&gate);
        scene.identified(by_us(2, wants), PATH, FileKind::File, FILE);
        assert_eq!(scene.asked(), 0, "{wants:?}");
        assert_eq!(asks(&scene.actions()).len(), 1, "{wants:?}");
    }
    let mut scene = made(&gate);
    scene.making(by_us(2, Wants::Make), DIRECTORY);
    assert_eq!(scene.asked(), 0, "it is made again");
}

/// Proves: GATE-10 made-once
#[test]
fn everybody_else_and_every_other_file_is_asked_about() {
    let gate = facts(OnAsk::Ask);
    let mut child =
        std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let other = (1, 11, 201, 0);
    for (request, path, it) in [
        (by(child.id(), 2, READ), PATH, FILE),
        (by(u32::MAX, 2, READ), PATH, FILE),
        (by_us(2, READ), PATH, other),
        (by_us(2, Wants::Remove), PATH, other),
        (by_us(2, READ), "/opt/sdk/other", FILE),
        (by_us(2, Wants::Execute), PATH, FILE),
    ] {
        let mut scene = made(&gate);
        let what = format!("{request:?} {it:?}");
        scene.identified(request, path, FileKind::File, it);
        assert_eq!(scene.asked(), 1, "{what}");
    }
    for (request, directory) in [
        (by_us(2, Wants::Make), other),
        (by_us(2, Wants::Replace), DIRECTORY),
        (PathAccess { call: "symlink".to_owned(), ..by_us(2, Wants::Make) }, DIRECTORY),
    ] {
        let mut scene = made(&gate);
        let what = format!("{request:?}");
        scene.making(request, directory);
        assert_eq!(scene.asked(), 1, "{what}");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// The answer was yes, and somebody else made the file first.
///
/// Proves: GATE-10 made-once
#[test]
fn what_a_call_did_not_make_itself_is_asked_about() {
    let gate = facts(OnAsk::Ask);
    let mut scene = Scene::new(&gate);
    scene.making(by_us(1, Wants::Write), DIRECTORY);
    scene.actions();
    scene.answer(1, allow(Lifetime::Once));
    scene.actions();
    scene.state.made(7, FILE);
    scene.identified(by_us(2, READ), PATH, FileKind::File, FILE);
    assert_eq!(scene.asked(), 1);
}
