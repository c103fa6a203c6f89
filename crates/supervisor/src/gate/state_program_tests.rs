//! What comes along with a program: its interpreter and its loader.

use super::*;

/// Proves: FS-2 asked-in-red, GATE-2 exec
#[test]
fn what_a_program_needs_is_judged_like_everything_else() {
    let gate = facts(OnAsk::Allow);
    let mut scene = Scene::new(&gate);
    scene.request(request(1, "/opt/script", Wants::Execute));
    let token = scene.look();
    scene.tell(found_program(token, "/opt/script", &["/etc/palisade/run"]));
    let need = scene.look();
    scene.tell(found(need, "/etc/palisade/run".into(), FileKind::File));
    assert_eq!(replies(&scene.actions()), [AccessReply::Absent { request: 1 }]);
}

/// Proves: GATE-2 exec
#[test]
fn no_directory_comes_along_as_an_interpreter() {
    let gate = facts(OnAsk::Allow);
    let mut scene = Scene::new(&gate);
    scene.request(request(1, "/opt/script", Wants::Execute));
    let token = scene.look();
    scene.tell(found_program(token, "/opt/script", &["/srv/data"]));
    let need = scene.look();
    scene.tell(found(need, "/srv/data".into(), FileKind::Directory));
    scene.tell(KeeperEvent::Grafted { token, graft: 1 });
    let asked = asks(&scene.actions());
    assert!(
        !asked
            .iter()
            .any(|ask| matches!(ask, KeeperRequest::Graft { token, .. } if *token == need))
    );
}
