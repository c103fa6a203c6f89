use crate::facts::HostFacts;
use crate::fake::{FakeTree, inside, op_at, policy, request, user, without_groups};
use crate::listed_view::{IfSourceMissing, ListedAccess, ListedEntry, ListedView, Shown};
use crate::model::{MountAccess, MountOp, NodeKind, Plan};
use crate::{PlanError, PlanRequest, build};
use palisade_policy::model::{Mode, View};
use std::path::{Path, PathBuf};

fn host(source: &str, place: &str, access: ListedAccess) -> ListedEntry {
    let if_missing = IfSourceMissing::IsAnError;
    ListedEntry {
        place: place.into(),
        shown: Shown::Host { source: source.into(), access, if_missing },
    }
}

fn entry(place: &str, shown: Shown) -> ListedEntry {
    ListedEntry { place: place.into(), shown }
}

fn private(is_read_only: bool) -> Shown {
    Shown::Private { mode: 0o755, size: None, is_read_only }
}

fn planned(tree: &FakeTree, entries: Vec<ListedEntry>) -> Result<Plan, PlanError> {
    let mut policy = policy();
    policy.view = View::Listed;
    policy.mode = Mode::Static;
    let homes = vec!["/home/u".into(), "/home/other".into()];
    let facts = HostFacts { homes, ..user() };
    let listed = ListedView { entries };
    let request = request(&policy, &facts, tree, "/usr/bin/true", &without_groups);
    build(&PlanRequest { listed: Some(&listed), ..request })
}

fn targets(plan: &Plan) -> Vec<&Path> {
    inside(plan).mounts.iter().map(MountOp::target).collect()
}

const RO: ListedAccess = ListedAccess::ReadOnly;
const RW: ListedAccess = ListedAccess::ReadWrite;

/// Proves: TOOL-6 bubblewrap-lines
#[test]
fn nothing_but_what_is_listed_and_the_sandboxs_own_is_shown() {
    let tree = FakeTree::new();
    let plan = planned(&tree, vec![host("/usr", "/usr", RO)]).unwrap();
    for hidden in ["/home/u", "/home/u/project", "/srv", "/opt"] {
        assert!(op_at(&plan, hidden).is_none(), "{hidden}");
    }
    for own in ["/proc", "/tmp", "/dev/null", "/usr"] {
        assert!(op_at(&plan, own).is_some(), "{own}");
    }
    assert!(plan.sandbox.gate.is_none());
    assert_eq!(plan.command.cwd, Path::new("/"));
}

/// Proves: TOOL-6 bubblewrap-walls
#[test]
fn the_whole_host_is_shown_without_secrets_and_other_homes() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.ssh/id", "").file("/home/u/notes", "").dir("/home/other/x");
    let plan = planned(&tree, vec![host("/", "/", RO)]).unwrap();
    let targets = targets(&plan);
    assert!(targets.contains(&Path::new("/home/u/notes")), "{targets:?}");
    let secret =
        |target: &&Path| target.starts_with("/home/u/.ssh") || target.starts_with("/home/other");
    assert!(!targets.iter().any(secret), "{targets:?}");
    assert_eq!(plan.command.cwd, Path::new("/home/u/project"));
}

#[test]
fn what_comes_later_covers_what_was_there_and_places_may_differ() {
    let tree = FakeTree::new();
    let entries = vec![
        host("/srv/data", "/home/u/x", RW),
        host("/usr", "/usr", RO),
        entry("/home", private(false)),
        host("/srv/data", "/home/u/data", RW),
    ];
    let plan = planned(&tree, entries).unwrap();
    assert!(op_at(&plan, "/home/u/x").is_none());
    assert!(matches!(op_at(&plan, "/home"), Some(MountOp::Tmpfs { .. })));
    let Some(MountOp::Bind { source, access, .. }) = op_at(&plan, "/home/u/data") else {
        panic!("{:?}", targets(&plan));
    };
    assert_eq!((source.as_path(), *access), (Path::new("/srv/data"), MountAccess::ReadWrite));
}

/// Proves: FS-9 no-placeholder
#[test]
fn a_covered_name_that_is_missing_is_guarded_and_not_made_on_the_host() {
    let mut tree = FakeTree::new();
    tree.dir("/srv/empty").file("/home/u/project/there", "");
    let entries = vec![
        host("/", "/", RO),
        host("/home/u/project", "/home/u/project", RW),
        host("/dev/null", "/home/u/project/.mcp.json", RO),
        host("/dev/null", "/home/u/project/there", RO),
        host("/srv/empty", "/home/u/project/.agents", RO),
        entry("/home/u/project/.aws", private(true)),
    ];
    let plan = planned(&tree, entries).unwrap();
    let guard = plan.sandbox.guard.as_ref().unwrap();
    for name in [".mcp.json", ".agents", ".aws"] {
        let path = Path::new("/home/u/project").join(name);
        assert!(guard.more.iter().any(|guarded| guarded.path == path), "{name}");
        assert!(!targets(&plan).contains(&path.as_path()), "{name}");
    }
    assert!(matches!(op_at(&plan, "/home/u/project/there"), Some(MountOp::Blank { .. })));
    let writable = vec![
        host("/home/u/project", "/home/u/project", RW),
        entry("/home/u/project/new", private(false)),
    ];
    assert!(matches!(planned(&tree, writable), Err(PlanError::Missing { .. })));
}

#[test]
fn a_socket_can_be_listed_and_what_is_missing_left_out() {
    let mut tree = FakeTree::new();
    tree.socket("/tmp/proxy.sock");
    let if_missing = IfSourceMissing::IsLeftOut;
    let source = PathBuf::from("/nowhere");
    let missing = Shown::Host { source, access: RO, if_missing };
    let entries = vec![
        host("/usr", "/usr", RO),
        host("/tmp/proxy.sock", "/tmp/proxy.sock", RW),
        entry("/nowhere", missing),
    ];
    let plan = planned(&tree, entries).unwrap();
    let socket = op_at(&plan, "/tmp/proxy.sock");
    assert!(matches!(socket, Some(MountOp::Bind { kind: NodeKind::File, .. })), "{socket:?}");
    let missing = planned(&tree, vec![host("/nowhere", "/nowhere", RO)]);
    assert!(matches!(missing, Err(PlanError::Missing { .. })));
}

#[test]
fn what_is_always_private_stays_so() {
    let tree = FakeTree::new();
    for area in ["/proc", "/dev", "/sys"] {
        let refused = planned(&tree, vec![host(area, area, RO)]);
        assert!(matches!(refused, Err(PlanError::OwnArea { .. })), "{area}");
    }
    let writable = planned(&tree, vec![host("/", "/", RW)]);
    assert!(matches!(writable, Err(PlanError::OwnArea { .. })));
}

/// A cover counts where the directory is shown at another path, and by a link as well.
///
/// Proves: TOOL-6 bubblewrap-walls
#[test]
fn a_cover_counts_by_every_way_to_its_place() {
    let mut tree = FakeTree::new();
    tree.file("/srv/data/secret", "").dir("/srv/data/private").dir("/srv/data/real");
    tree.link("/srv/data/link", "real").link("/srv/data/out", "/opt");
    let covers = |places: &[&str]| {
        let null = |place: &&str| host("/dev/null", place, RO);
        let first = [host("/usr", "/usr", RO), host("/srv/data", "/dst", RW)];
        planned(&tree, first.into_iter().chain(places.iter().map(null)).collect())
    };
    let plan = covers(&["/dst/secret", "/dst/private", "/dst/new", "/dst/link/newer"]).unwrap();
    assert!(matches!(op_at(&plan, "/dst/secret"), Some(MountOp::Blank { .. })));
    assert!(matches!(op_at(&plan, "/dst/private"), Some(MountOp::Frame { .. })));
    let guard = plan.sandbox.guard.as_ref().unwrap();
    for path in ["/dst/new", "/dst/real/newer"] {
        assert!(guard.more.iter().any(|guarded| guarded.path == Path::new(path)), "{path}");
    }
    assert!(matches!(covers(&["/dst/out/x"]), Err(PlanError::LeadsElsewhere { .. })));
    for aliased in [host("/", "/all", RO), host("/proc", "/other", RO)] {
        let refused = planned(&tree, vec![host("/usr", "/usr", RO), aliased]);
        assert!(matches!(refused, Err(PlanError::OwnArea { .. })));
    }
}
