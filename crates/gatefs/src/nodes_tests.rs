use super::*;

fn directory(nodes: &mut Nodes, parent: NodeId, name: &str) -> NodeId {
    nodes.look_up(parent, name.as_bytes(), Origin::Own, FileType::Directory).unwrap()
}

#[test]
fn a_name_keeps_its_number_until_the_kernel_forgets_it() {
    let mut nodes = Nodes::new();
    let home = directory(&mut nodes, NodeId::ROOT, "home");
    assert_eq!(directory(&mut nodes, NodeId::ROOT, "home"), home);
    nodes.forget(home, 1);
    assert_eq!(nodes.child(NodeId::ROOT, b"home"), Some(home));
    nodes.forget(home, 1);
    assert_eq!(nodes.child(NodeId::ROOT, b"home"), None);
}

#[test]
fn a_name_that_stands_for_something_else_gets_another_number() {
    let mut nodes = Nodes::new();
    let stub = nodes.look_up(NodeId::ROOT, b"x", Origin::Stub, FileType::RegularFile).unwrap();
    let own = nodes.look_up(NodeId::ROOT, b"x", Origin::Own, FileType::RegularFile).unwrap();
    assert_ne!(stub, own);
    assert_eq!(nodes.path(stub), None);
    assert_eq!(nodes.path(own), Some("/x".into()));
    // The old number is forgotten later, and takes nothing of the new one with it.
    nodes.forget(stub, 1);
    assert_eq!(nodes.child(NodeId::ROOT, b"x"), Some(own));
}

#[test]
fn the_number_of_a_directory_stays_when_the_sandbox_gets_its_own() {
    let mut nodes = Nodes::new();
    let stub = nodes.look_up(NodeId::ROOT, b"x", Origin::Stub, FileType::Directory).unwrap();
    assert_eq!(directory(&mut nodes, NodeId::ROOT, "x"), stub);
    let file = nodes.look_up(stub, b"y", Origin::Stub, FileType::RegularFile).unwrap();
    assert!(!nodes.becomes_own(file, FileType::RegularFile));
    assert_eq!(nodes.path(file), None);
}

#[test]
fn what_the_host_has_below_a_directory_does_not_move_with_it() {
    let mut nodes = Nodes::new();
    let own = directory(&mut nodes, NodeId::ROOT, "own");
    let below = directory(&mut nodes, own, "below");
    let stub = nodes.look_up(below, b"stub", Origin::Stub, FileType::Directory).unwrap();
    let file = nodes.look_up(stub, b"file", Origin::Stub, FileType::RegularFile).unwrap();
    nodes.rename((NodeId::ROOT, b"own"), (NodeId::ROOT, b"other"));
    assert_eq!(nodes.path(below), Some("/other/below".into()));
    assert_eq!((nodes.path(stub), nodes.path(file)), (None, None));
}

#[test]
fn a_directory_is_held_for_what_is_mounted_below_it() {
    let mut nodes = Nodes::new();
    let own = directory(&mut nodes, NodeId::ROOT, "own");
    let stub = nodes.look_up(own, b"stub", Origin::Stub, FileType::Directory).unwrap();
    let file = nodes.look_up(stub, b"file", Origin::Stub, FileType::RegularFile).unwrap();
    assert!(!nodes.is_held_at_or_below(own));
    nodes.hold(file);
    assert!(nodes.is_held_at_or_below(own));
}

#[test]
fn what_is_renamed_takes_everything_below_along() {
    let mut nodes = Nodes::new();
    let one = directory(&mut nodes, NodeId::ROOT, "one");
    let below = directory(&mut nodes, one, "below");
    let two = directory(&mut nodes, NodeId::ROOT, "two");
    nodes.rename((NodeId::ROOT, b"one"), (two, b"three"));
    assert_eq!(nodes.path(below), Some("/two/three/below".into()));
    let four = directory(&mut nodes, NodeId::ROOT, "four");
    nodes.exchange((two, b"three"), (NodeId::ROOT, b"four"));
    assert_eq!(nodes.path(below), Some("/four/below".into()));
    assert_eq!(nodes.path(four), Some("/two/three".into()));
}

#[test]
fn what_was_held_for_a_mount_is_released_with_it() {
    let mut nodes = Nodes::new();
    let stub = |nodes: &mut Nodes, parent, name: &[u8]| {
        let id = nodes.look_up(parent, name, Origin::Stub, FileType::Directory).unwrap();
        nodes.get_mut(id).unwrap().is_held = true;
        id
    };
    let top = stub(&mut nodes, NodeId::ROOT, b"top");
    let one = stub(&mut nodes, top, b"one");
    let other = stub(&mut nodes, top, b"other");
    nodes.release(Path::new("/top/one"));
    let is_held = |nodes: &Nodes, id| nodes.get(id).unwrap().is_held;
    assert!(!is_held(&nodes, one));
    assert!(is_held(&nodes, top), "for the other one");
    nodes.release(Path::new("/top/other"));
    assert!(!is_held(&nodes, other) && !is_held(&nodes, top));
    nodes.release(Path::new("/top/none/such"));
}

#[test]
fn a_path_may_be_longer_than_a_call_can_take() {
    let mut nodes = Nodes::new();
    let name = "n".repeat(255);
    let mut at = NodeId::ROOT;
    for _ in 0..32 {
        at = directory(&mut nodes, at, &name);
    }
    assert_eq!(nodes.path(at).unwrap().as_os_str().len(), 32 * 256);
}

#[test]
fn only_names_of_one_directory_are_its_children() {
    let mut nodes = Nodes::new();
    let one = directory(&mut nodes, NodeId::ROOT, "one");
    directory(&mut nodes, one, "a");
    let names: Vec<_> = nodes.children(NodeId::ROOT).map(|(name, ..)| name.to_vec()).collect();
    assert_eq!(names, [b"one"]);
}

#[test]
fn a_name_that_was_renewed_gets_another_number() {
    let mut nodes = Nodes::new();
    let link = |nodes: &mut Nodes| {
        nodes.look_up(NodeId::ROOT, b"link", Origin::Stub, FileType::Symlink).unwrap()
    };
    let first = link(&mut nodes);
    nodes.renew(first);
    let second = link(&mut nodes);
    assert_ne!(first, second);
    nodes.renew(first);
    assert_eq!(link(&mut nodes), second, "it has another number by now");
}
