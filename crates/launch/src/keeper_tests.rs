use super::*;
use palisade_plan::model::{MountAccess, NodeKind, Owner};

fn bind(source: &str, idmap: Option<Owner>) -> MountOp {
    MountOp::Bind {
        source: source.into(),
        target: source.into(),
        access: MountAccess::ReadOnly,
        exec: true,
        kind: NodeKind::Dir,
        idmap,
        may_vanish: false,
        why: "test",
    }
}

/// A part of the system that the plan left out must not come back with root's eyes.
#[test]
fn what_lies_beside_a_part_of_the_system_is_not_mapped_either() {
    let owner = Some(Owner { uid: 0, gid: 0 });
    let mounts = [bind("/usr", None), bind("/etc/ssl", None), bind("/root/project", owner)];
    let expected = ["/etc", "/etc/ssl", "/usr"].map(PathBuf::from);
    assert_eq!(unmapped(&mounts, std::iter::empty()), BTreeSet::from(expected.clone()));
    let when_used = Path::new("/srv");
    let more = expected.into_iter().chain([when_used.to_owned()]).collect();
    assert_eq!(unmapped(&mounts, std::iter::once(when_used)), more);
}

/// A keeper that is busy has a full socket, and one that is gone has none: only the second is an error.
#[test]
fn a_full_socket_is_no_dead_keeper() {
    let (socket, keeper) = socketpair().unwrap();
    let request = KeeperRequest::Forget { token: 1 };
    let mut sent = 0;
    while send_if_room(&socket, &request).unwrap() {
        sent += 1;
        assert!(sent < 1_000_000, "the socket is never full");
    }
    let mut buffer = vec![0; KeeperRequest::MAX_BYTES];
    for _ in 0..sent {
        let received: Received<KeeperRequest> =
            palisade_wire::receive(&keeper, &mut buffer).unwrap();
        assert_eq!(received.message, request);
    }
    assert!(send_if_room(&socket, &request).unwrap());
    drop(keeper);
    send_if_room(&socket, &request).unwrap_err();
}
