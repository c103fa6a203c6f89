use crate::PlanError;
use crate::fake::{FakeTree, plan, plan_of, policy, user};
use crate::layer::{Layer, Strength};
use crate::model::{Confinement, MountOp, Plan};
use palisade_policy::model::{CacheAccess, Level, Policy, ProjectAccess};
use std::path::{Path, PathBuf};

fn without_execution(executable: &[&str]) -> Policy {
    let mut policy = policy();
    policy.filesystem.execute_written = false;
    policy.filesystem.executable_dirs = executable.iter().map(ToString::to_string).collect();
    policy
}

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/project/target").dir("/home/u/.cache/go-build").dir("/home/u/data");
    tree
}

fn mounts(plan: &Plan) -> &[MountOp] {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => &inside.mounts,
        Confinement::NoNamespaces | Confinement::None => &[],
    }
}

/// Writable mounts from which something can be executed.
fn executed(plan: &Plan) -> Vec<&Path> {
    let written = mounts(plan).iter().filter(|op| super::is_written_and_executed(op));
    written.map(MountOp::target).collect()
}

/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn nothing_that_is_written_is_executed_but_in_the_named_directory() {
    let usual = plan(&policy(), &user(), &tree()).unwrap();
    for place in ["/home/u", "/home/u/project", "/home/u/.cache/go-build", "/tmp", "/dev/shm"] {
        assert!(executed(&usual).contains(&Path::new(place)), "{place}: {:?}", executed(&usual));
    }
    let none = plan(&without_execution(&[]), &user(), &tree()).unwrap();
    assert!(executed(&none).is_empty());
    let one = plan(&without_execution(&["target"]), &user(), &tree()).unwrap();
    assert_eq!(executed(&one), [Path::new("/home/u/project/target")]);
    // What is read-only stays as it was.
    let bin = |plan: &Plan| {
        mounts(plan).iter().any(|op| {
            matches!(op, MountOp::Bind { target, exec: true, .. } if target == Path::new("/usr"))
        })
    };
    assert!(bin(&none) && bin(&one));
}

/// Proves: FS-1 mount-flags
#[test]
fn overlays_and_granted_directories_count_too() {
    let mut policy = without_execution(&["~/data"]);
    policy.filesystem.caches = CacheAccess::Own;
    policy.filesystem.overlay_paths = vec![".".to_owned()];
    policy.filesystem.project = ProjectAccess::ReadOnly;
    policy.filesystem.read_write_paths = vec!["~/data".to_owned()];
    let plan = plan(&policy, &user(), &tree()).unwrap();
    assert_eq!(executed(&plan), [Path::new("/home/u/data")]);
}

/// Proves: FS-1 mount-flags, CARGO-1 layout
#[test]
fn a_named_directory_that_is_missing_is_created() {
    let plan = plan(&without_execution(&["out"]), &user(), &tree()).unwrap();
    assert_eq!(executed(&plan), [Path::new("/home/u/project/out")]);
    assert_eq!(plan.sandbox.create_dirs, [PathBuf::from("/home/u/project/out")]);
}

/// Proves: FS-1 mount-flags
#[test]
fn a_named_directory_that_cannot_be_executed_from_is_told() {
    for dir in ["/tmp/build", "/usr/lib", "~/data"] {
        let plan = plan(&without_execution(&[dir]), &user(), &tree()).unwrap();
        assert!(executed(&plan).is_empty(), "{dir}");
        let notes = format!("{:?}", plan.explanation.notes);
        assert!(notes.contains("can be executed (executableDirs)"), "{dir}: {notes}");
    }
}

/// Proves: PROC-2 executables, CARGO-1 executables
#[test]
fn a_list_of_programs_allows_what_is_built_in_the_named_directory() {
    let mut tree = tree();
    tree.file("/usr/bin/cargo", "").file("/usr/bin/other", "");
    tree.file("/home/u/project/target/app", "").file("/home/u/project/app", "");
    let mut policy = without_execution(&["target"]);
    policy.process.allowed_executables = vec!["cargo".to_owned()];
    let planned = |command: &str| plan_of(&policy, &user(), &tree, command);
    let plan = planned("./target/app").unwrap();
    let landlock = plan.sandbox.landlock.unwrap();
    let executables = landlock.executables.listed().unwrap();
    assert_eq!(executables.listed, [Path::new("/usr/bin/cargo")]);
    assert_eq!(executables.built, [Path::new("/home/u/project/target")]);
    for other in ["/usr/bin/other", "./app"] {
        assert!(matches!(planned(other), Err(PlanError::NotAllowed { .. })), "{other}");
    }
}

/// Proves: FS-1 mount-flags
#[test]
fn the_plan_promises_it_and_names_the_layers() {
    let plan = plan(&without_execution(&["target"]), &user(), &tree()).unwrap();
    let mut promises = plan.explanation.promises.iter();
    let promise = promises.find(|promise| promise.what.contains("the command wrote")).unwrap();
    assert_eq!(promise.strength, Strength::Enforced);
    assert_eq!(promise.layers, [Layer::NoexecMounts, Layer::Seccomp]);
    assert!(promise.remark.as_ref().unwrap().contains("/home/u/project/target"));
}

/// Proves: FS-1 mount-flags
#[test]
fn where_no_mount_can_enforce_it_there_is_no_plan() {
    let mut policy = without_execution(&[]);
    policy.isolation_level = Level::Process;
    policy.process.user_namespace = false;
    let refused = plan(&policy, &user(), &tree()).unwrap_err();
    assert!(matches!(refused, PlanError::NeedsNamespaces { .. }), "{refused}");
    policy.isolation_level = Level::None;
    assert!(matches!(plan(&policy, &user(), &tree()), Err(PlanError::NoIsolation { .. })));
}

/// Whoever made the link would choose from where what is written is executed.
///
/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn no_link_that_somebody_else_could_have_made_names_a_directory_to_execute_from() {
    for access in [ProjectAccess::ReadWrite, ProjectAccess::ReadOnly, ProjectAccess::Transaction] {
        for points_to in ["/", ".", "..", "src", "../new"] {
            let mut tree = FakeTree::new();
            tree.link("/home/u/project/build/out", points_to);
            let mut policy = without_execution(&["build/out"]);
            policy.filesystem.project = access;
            let refused = plan(&policy, &user(), &tree).unwrap_err();
            let link = Path::new("/home/u/project/build/out");
            assert!(
                matches!(&refused, PlanError::PlantedLink { link: found, .. } if found == link),
                "{access:?} {points_to}: {refused}"
            );
        }
    }
    let mut tree = tree();
    tree.link("/home/u/data/out", "other").link("/home/u/mine", "data");
    let mut policy = without_execution(&["~/data/out"]);
    policy.filesystem.read_write_paths = vec!["~/data".to_owned()];
    assert!(matches!(plan(&policy, &user(), &tree), Err(PlanError::PlantedLink { .. })));
    // The caller's own is in no place that others write to.
    policy.filesystem.executable_dirs = vec!["~/mine".to_owned()];
    assert_eq!(executed(&plan(&policy, &user(), &tree).unwrap()), [Path::new("/home/u/data")]);
}

/// Its real target on the host is no place for what waits.
///
/// Proves: FS-1 mount-flags
#[test]
fn a_named_directory_in_a_transaction_is_told_without_the_advice_to_write_outside_it() {
    let mut policy = without_execution(&["target"]);
    policy.filesystem.project = ProjectAccess::Transaction;
    let plan = plan(&policy, &user(), &tree()).unwrap();
    assert!(executed(&plan).is_empty());
    let notes = format!("{:?}", plan.explanation.notes);
    assert!(notes.contains("it is in a transaction") && !notes.contains("--rw as well"), "{notes}");
}
