use super::{layer_name, path_of_layer, stack_of};
use crate::build;
use crate::facts::{HostFacts, HostMount};
use crate::fake::{self, FakeTree, inside, op_at, plan, policy, user};
use crate::model::{MountAccess, MountOp, Plan, TransactionMethod, Weight};
use crate::request::{CacheStore, FinishedLayer};
use palisade_policy::CacheAccess;
use palisade_policy::model::{Policy, ProjectAccess, TransactionBy};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn own() -> Policy {
    let mut policy = policy();
    policy.filesystem.caches = CacheAccess::Own;
    policy
}

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.cargo/registry").dir("/home/u/.cargo/git").dir("/home/u/go/pkg/mod");
    tree.dir("/home/u/.local/share/pnpm/store");
    tree
}

fn mounted(fs_type: &str, at: &str) -> HostMount {
    HostMount {
        device: "8:1".to_owned(),
        root: PathBuf::from("/"),
        mount_point: PathBuf::from(at),
        fs_type: fs_type.to_owned(),
        read_only: false,
    }
}

fn with_mounts(mounts: &[HostMount]) -> HostFacts {
    HostFacts {
        mounts: mounts.to_vec(),
        own_paths: vec!["/home/u/.local/state/palisade".into()],
        ..user()
    }
}

fn stack_at<'p>(plan: &'p Plan, target: &str) -> Option<&'p Path> {
    match op_at(plan, target) {
        Some(MountOp::Overlay { stack, access: MountAccess::ReadWrite, layer: None, .. }) => {
            stack.as_deref()
        }
        _ => None,
    }
}

/// Proves: FS-10 own
#[test]
fn caches_are_parts_of_one_overlay_and_the_broker_judges_nothing_there() {
    let facts = with_mounts(&[mounted("ext4", "/")]);
    let plan = plan(&own(), &facts, &tree()).unwrap();
    for cache in [".cargo/registry", ".cargo/git", "go/pkg/mod", ".local/share/pnpm/store"] {
        let cache = format!("/home/u/{cache}");
        assert_eq!(stack_at(&plan, &cache), Some(Path::new("/home/u")), "{cache}");
    }
    let [home] = inside(&plan).caches.as_slice() else { panic!("{plan:?}") };
    // Our own directory is in `~/.local`, so what is written there later lies on the cache itself.
    let stands_for = [".cargo", ".local/share/pnpm/store", "go"].map(PathBuf::from);
    assert_eq!(home.stands_for, stands_for);
    let guard = plan.sandbox.guard.as_ref().unwrap();
    assert!(!guard.trees.iter().any(|tree| tree.starts_with("/home/u/.cargo")), "{guard:?}");
    let landlock = plan.sandbox.landlock.as_ref().unwrap();
    assert!(landlock.writable.contains(&"/home/u/.cargo/registry".into()), "{landlock:?}");
}

#[test]
fn what_earlier_runs_wrote_lies_between_the_host_and_this_run() {
    let (policy, facts, tree) = (own(), with_mounts(&[mounted("ext4", "/")]), tree());
    let layer = |name: &str, stacks: &[&str]| FinishedLayer {
        directory: Path::new("/state/layers").join(name),
        stacks: stacks.iter().map(|stack| layer_name(Path::new(stack))).collect(),
    };
    let store = |project: &Path| {
        assert_eq!(project, Path::new("/home/u/project"));
        let newer = layer("2", &["/home/u/.cargo", "/home/u/go"]);
        CacheStore {
            top: "/state/runs/3".into(),
            finished: vec![newer, layer("1", &["/home/u/.cargo"])],
        }
    };
    let mut request = fake::request(&policy, &facts, &tree, "true", &fake::without_groups);
    request.caches = &store;
    let plan = build(&request).unwrap();
    let caches = &inside(&plan).caches;
    let cargo = caches.iter().find(|stack| stack.lower.ends_with(".cargo")).unwrap();
    let name = "%2Fhome%2Fu%2F.cargo";
    assert_eq!(cargo.layer, Path::new("/state/runs/3").join(name));
    let below = ["2", "1"].map(|id| Path::new("/state/layers").join(id).join(name).join("upper"));
    assert_eq!(cargo.below, below);
    // Only where nobody has written yet can the whole home directory be below.
    let home = caches.iter().find(|stack| stack.lower == Path::new("/home/u")).unwrap();
    assert_eq!(home.stands_for, [Path::new(".local/share/pnpm/store")]);
    assert_eq!((home.below.len(), caches.len()), (0, 3));
    for (cache, stack) in [
        ("/home/u/.cargo/git", "/home/u/.cargo"),
        ("/home/u/go/pkg/mod", "/home/u/go"),
        ("/home/u/.local/share/pnpm/store", "/home/u"),
    ] {
        assert_eq!(stack_at(&plan, cache), Some(Path::new(stack)), "{cache}");
    }
}

#[test]
fn a_mount_on_the_way_from_the_home_directory_keeps_a_cache_apart() {
    let facts = with_mounts(&[mounted("ext4", "/"), mounted("ext4", "/home/u/.cargo/registry")]);
    let plan = plan(&own(), &facts, &tree()).unwrap();
    let registry = "/home/u/.cargo/registry";
    assert_eq!(stack_at(&plan, registry), Some(Path::new(registry)));
    assert_eq!(stack_at(&plan, "/home/u/.cargo/git"), Some(Path::new("/home/u")));
}

/// Proves: FS-10 fallback
#[test]
fn caches_that_cannot_be_kept_apart_are_left_out_with_a_note() {
    let tree = tree();
    for fs_type in ["overlay", "nfs4", "fuse.sshfs", "ecryptfs"] {
        let facts = with_mounts(&[mounted("ext4", "/"), mounted(fs_type, "/home")]);
        let plan = plan(&own(), &facts, &tree).unwrap();
        assert_eq!(op_at(&plan, "/home/u/.cargo/registry"), None, "{fs_type}");
        let notes: Vec<&str> =
            plan.explanation.notes.iter().map(|note| note.text.as_str()).collect();
        assert!(notes.iter().any(|note| note.contains(fs_type)), "{notes:?}");
    }
}

#[test]
fn a_cache_on_a_mount_of_its_own_has_an_overlay_of_its_own() {
    let registry = Path::new("/home/u/.cargo/registry");
    let home = Some(Path::new("/home/u"));
    let apart = with_mounts(&[mounted("ext4", "/"), mounted("ext4", "/home/u/.cargo/registry")]);
    assert_eq!(stack_of(registry, home, &apart), registry);
    let elsewhere = with_mounts(&[mounted("ext4", "/"), mounted("ext4", "/home/u/.cargo/git")]);
    assert_eq!(stack_of(registry, home, &elsewhere), Path::new("/home/u/.cargo"));
    let outside = Path::new("/opt/cargo/registry");
    assert_eq!(stack_of(outside, home, &elsewhere), outside);
}

#[test]
fn a_layers_name_is_one_name_and_leads_back() {
    for path in ["/home/u/.cargo", "/a b/%41/ü", "/new\nline", "/"] {
        let name = layer_name(Path::new(path));
        assert!(!name.to_string_lossy().contains(['/', '\n']), "{name:?}");
        assert_eq!(path_of_layer(&name), Some(PathBuf::from(path)));
    }
    assert_eq!(path_of_layer(OsStr::new("%4")), None);
    assert_eq!(path_of_layer(OsStr::new("%zz")), None);
}

/// Proves: LIFE-2 copy
#[test]
fn a_transaction_works_in_a_copy_where_no_overlay_can_be_mounted_or_if_that_is_asked_for() {
    let state = "/home/u/.local/state";
    let root = mounted("ext4", "/");
    let is_copied = |by: TransactionBy, mounts: &[HostMount], obstacle: Option<&str>| {
        let mut policy = policy();
        policy.filesystem.project = ProjectAccess::Transaction;
        policy.filesystem.transaction_by = by;
        let mut tree = tree();
        tree.overlay_obstacle = obstacle.map(str::to_owned);
        let plan = plan(&policy, &with_mounts(mounts), &tree).unwrap();
        let transaction = plan.supervision.transaction.as_ref().unwrap();
        let is_copied = transaction.method == TransactionMethod::Copy;
        let mut notes = plan.explanation.notes.iter();
        let is_told = notes.any(|note| {
            note.weight == Weight::Important
                && note.text.contains("works in a copy of /home/u/project")
        });
        assert_eq!(is_copied, is_told, "{:?}", plan.explanation.notes);
        is_copied
    };
    let on = |fs_type: &str, at: &str| [root.clone(), mounted(fs_type, at)];
    let auto = TransactionBy::Auto;
    assert!(!is_copied(auto, std::slice::from_ref(&root), Some("never asked")));
    assert!(is_copied(auto, &on("nfs4", state), None));
    assert!(!is_copied(auto, &on("fuse.sshfs", "/home/u/project"), None));
    assert!(is_copied(auto, &on("vfat", "/home/u/project"), Some("EINVAL")));
    assert!(!is_copied(TransactionBy::Overlay, &on("vfat", "/home/u/project"), Some("EINVAL")));
    assert!(is_copied(TransactionBy::Copy, std::slice::from_ref(&root), None));
}
