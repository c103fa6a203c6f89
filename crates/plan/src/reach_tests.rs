use super::Reach;
use crate::facts::EntryKind;
use crate::fake::{FakeTree, plan, policy, user};
use crate::host::Host;
use palisade_policy::model::View;
use std::path::Path;

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.file("/usr/bin/mawk", "").link("/usr/bin/awk", "/etc/alternatives/awk");
    tree.link("/etc/alternatives/awk", "/usr/bin/mawk");
    tree.link("/usr/bin/outside", "/home/other/tool").file("/home/other/tool", "");
    tree.link("/usr/bin/loop", "loop").file("/home/u/project/tool", "");
    tree
}

/// Where a path leads inside, and what it is on the host.
fn led(view: View, path: &str) -> Option<(String, Option<String>)> {
    let (tree, facts) = (tree(), user());
    let mut policy = policy();
    policy.view = view;
    let plan = plan(&policy, &facts, &tree).unwrap();
    let host = Host::new(&tree, facts.home.as_deref());
    let reach = Reach::new(&plan.sandbox.confinement, plan.sandbox.landlock.as_ref(), &host);
    let found = reach.resolve(Path::new(path))?;
    assert!(found.kind == EntryKind::File || found.kind == EntryKind::Dir);
    let text = |path: &Path| path.display().to_string();
    Some((text(&found.path), found.on_host.as_deref().map(text)))
}

/// Proves: PROC-2 executables
#[test]
fn links_are_followed_inside_the_view_and_nowhere_else() {
    let mawk = Some(("/usr/bin/mawk".to_owned(), Some("/usr/bin/mawk".to_owned())));
    assert_eq!(led(View::Host, "/bin/awk"), mawk);
    assert_eq!(led(View::Host, "/usr/lib/../bin/./mawk"), mawk);
    assert_eq!(led(View::Host, "/usr/bin/outside"), None);
    assert_eq!(led(View::Host, "/usr/bin/loop"), None);
    assert_eq!(led(View::Host, "/usr/bin/mawk/below"), None);
    assert_eq!(led(View::Host, "/"), Some(("/".to_owned(), None)));
}

/// Proves: PROC-2 executables
#[test]
fn a_path_that_stands_elsewhere_inside_is_found_on_the_host() {
    let tool = |inside: &str| Some((inside.to_owned(), Some("/home/u/project/tool".to_owned())));
    assert_eq!(led(View::Minimal, "/workspace/tool"), tool("/workspace/tool"));
    assert_eq!(led(View::Minimal, "/home/u/project/tool"), None);
    assert_eq!(led(View::Host, "/home/u/project/tool"), tool("/home/u/project/tool"));
}

#[test]
fn what_can_be_written_is_known_by_its_mount() {
    let (tree, facts) = (tree(), user());
    let plan = plan(&policy(), &facts, &tree).unwrap();
    let host = Host::new(&tree, facts.home.as_deref());
    let reach = Reach::new(&plan.sandbox.confinement, plan.sandbox.landlock.as_ref(), &host);
    for (path, writable) in [
        ("/usr/bin/mawk", false),
        ("/home/u/project/tool", true),
        ("/usr", false),
        ("/tmp", true),
        ("/home", true),
    ] {
        let found = reach.resolve(Path::new(path)).unwrap();
        assert_eq!(reach.is_writable(&found), writable, "{path}");
    }
}
