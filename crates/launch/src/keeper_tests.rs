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
        why: "test",
    }
}

/// A part of the system that the plan left out must not come back with root's eyes.
#[test]
fn what_lies_beside_a_part_of_the_system_is_not_mapped_either() {
    let owner = Some(Owner { uid: 0, gid: 0 });
    let mounts = [bind("/usr", None), bind("/etc/ssl", None), bind("/root/project", owner)];
    let expected = ["/etc", "/etc/ssl", "/usr"].map(PathBuf::from);
    assert_eq!(unmapped(&mounts), BTreeSet::from(expected));
}
