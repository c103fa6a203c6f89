use crate::error::{PlanError, Result};
use crate::fake::{FakeTree, policy, request, user, without_groups};
use crate::model::{Confinement, MountOp, Plan};
use crate::{PlanRequest, build, could_be_written};
use palisade_policy::model::{Policy, View};
use std::path::{Path, PathBuf};

const PROJECT: &str = "/home/u/project";

fn planned(policy: &Policy, tree: &FakeTree, files: &[&str]) -> Result<Plan> {
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let facts = user();
    build(&PlanRequest {
        policy_files: &files,
        ..request(policy, &facts, tree, "true", &without_groups)
    })
}

fn sealed(plan: &Plan) -> Vec<&Path> {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { return Vec::new() };
    let seals = inside.mounts.iter().filter(|op| matches!(op, MountOp::Seal { .. }));
    seals.map(MountOp::target).filter(|target| !target.starts_with("/proc")).collect()
}

fn guarded(plan: &Plan) -> Vec<&Path> {
    plan.sandbox
        .guard
        .iter()
        .flat_map(|guard| &guard.more)
        .map(|more| more.path.as_path())
        .collect()
}

/// Proves: POL-4 sealed
#[test]
fn a_policy_in_the_project_is_sealed_with_the_directories_above_it() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/ci/policy.yaml"), "");
    let plan = planned(&policy(), &tree, &["/home/u/project/ci/policy.yaml"]).unwrap();
    let place = Path::new("/home/u/project/ci/policy.yaml");
    assert_eq!(sealed(&plan), [place]);
    assert!(guarded(&plan).contains(&place));
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else { panic!() };
    let above = Path::new("/home/u/project/ci");
    assert!(inside.mounts.iter().any(|op| op.target() == above), "a mount point cannot be renamed");
}

/// Proves: POL-4 sealed
#[test]
fn every_link_on_the_way_is_guarded_and_only_the_file_is_mounted_over() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/real/policy.yaml"), "");
    tree.link(format!("{PROJECT}/second.yaml"), "real/policy.yaml");
    tree.link("/home/u/conf/policy.yaml", "/home/u/project/second.yaml");
    let plan = planned(&policy(), &tree, &["/home/u/conf/policy.yaml"]).unwrap();
    let (link, file) =
        (Path::new("/home/u/project/second.yaml"), "/home/u/project/real/policy.yaml");
    assert_eq!(sealed(&plan), [Path::new(file)]);
    assert!(guarded(&plan).contains(&link) && guarded(&plan).contains(&Path::new(file)));
}

/// Proves: POL-4 sealed
#[test]
fn the_minimal_view_seals_it_where_it_shows_it() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/policy.yaml"), "");
    let policy = Policy { view: View::Minimal, ..policy() };
    let plan = planned(&policy, &tree, &["/home/u/project/policy.yaml"]).unwrap();
    assert_eq!(sealed(&plan), [Path::new("/workspace/policy.yaml")]);
}

/// Proves: POL-4 sealed
#[test]
fn a_policy_is_not_granted_for_writing_by_its_own_name() {
    let mut tree = FakeTree::new();
    tree.file("/srv/policy.yaml", "");
    let mut policy = policy();
    policy.filesystem.read_write_paths = vec!["/srv/policy.yaml".to_owned()];
    let refused = planned(&policy, &tree, &["/srv/policy.yaml"]).unwrap_err();
    assert!(matches!(refused, PlanError::OwnPolicy { .. }), "{refused}");
    assert!(refused.refused_by_policy());
}

#[test]
fn a_policy_that_no_run_can_write_changes_nothing() {
    let mut tree = FakeTree::new();
    tree.file("/srv/policy.yaml", "");
    let plan = planned(&policy(), &tree, &["/srv/policy.yaml"]).unwrap();
    assert!(sealed(&plan).is_empty() && guarded(&plan).is_empty());
}

/// Proves: POL-4 writable-file
#[test]
fn what_runs_can_write_is_known_by_the_file_and_by_every_link() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/policy.yaml"), "").file("/home/u/own.yaml", "");
    tree.file("/home/u/other/.git/HEAD", "").file("/home/u/other/deep/policy.yaml", "");
    tree.file("/home/u/.config/palisade/policy.yaml", "").file("/home/u/.config/.git/HEAD", "");
    tree.link("/home/u/conf.yaml", "/home/u/project/policy.yaml");
    tree.link(format!("{PROJECT}/out.yaml"), "/home/u/own.yaml");
    tree.file("/srv/data/policy.yaml", "");
    let written = ["/srv/data".to_owned()];
    let could = |path: &str| could_be_written(Path::new(path), &written, &user(), &tree);
    for path in [
        "/home/u/project/policy.yaml",
        "/home/u/conf.yaml",
        "/home/u/project/out.yaml",
        "/home/u/other/deep/policy.yaml",
        "/srv/data/policy.yaml",
    ] {
        assert!(could(path), "{path}");
    }
    for path in ["/home/u/own.yaml", "/home/u/.config/palisade/policy.yaml", "/srv/policy.yaml"] {
        assert!(!could(path), "{path}");
    }
}
