use crate::PlanError;
use crate::facts::HostFacts;
use crate::fake::{FakeTree, access, op_at, plan, policy, shows, user};
use crate::model::{MountAccess, MountOp, Plan};
use palisade_policy::model::{Policy, ProjectAccess};
use std::path::{Path, PathBuf};

const PROJECT: &str = "/home/u/project";
/// The ways in which a run does not write to the project itself.
const UNWRITTEN: [ProjectAccess; 4] = [
    ProjectAccess::ReadOnly,
    ProjectAccess::Transaction,
    ProjectAccess::TransactionAuto,
    ProjectAccess::None,
];

/// A project that came with a link.
fn with_link(name: &str, points_to: &str) -> FakeTree {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/private")
        .dir("/home/u/.local/bin")
        .link(format!("{PROJECT}/{name}"), points_to);
    tree
}

fn granting(project: ProjectAccess, writable: &[&str]) -> Policy {
    let mut policy = policy();
    policy.filesystem.project = project;
    policy.filesystem.read_write_paths = writable.iter().map(ToString::to_string).collect();
    // Where the project is not granted, the command has to start elsewhere.
    policy.process.cwd = (project == ProjectAccess::None).then(|| "/".to_owned());
    policy
}

fn with_variable(name: &str, value: &str) -> HostFacts {
    let mut facts = user();
    facts.env.insert(name.into(), value.into());
    facts
}

fn refused(planned: Result<Plan, PlanError>) -> (PathBuf, PathBuf) {
    match planned {
        Err(error @ PlanError::PlantedLink { .. }) => {
            assert!(error.refused_by_policy());
            let PlanError::PlantedLink { link, path, .. } = error else { unreachable!() };
            (link, path)
        }
        other => panic!("not refused: {:?}", other.map(|plan| plan.to_string())),
    }
}

fn notes(plan: &Plan) -> String {
    format!("{:?}", plan.explanation.notes)
}

/// Proves: FS-3 approved-mounts
#[test]
fn a_toolchain_behind_a_link_in_the_project_is_left_out() {
    let facts = with_variable("VIRTUAL_ENV", "/home/u/project/.venv");
    let tree = with_link(".venv", "../private");
    for access in [ProjectAccess::ReadWrite].into_iter().chain(UNWRITTEN) {
        let plan = plan(&granting(access, &[]), &facts, &tree).unwrap();
        assert!(!shows(&plan, "/home/u/private"), "{access:?}");
        assert!(notes(&plan).contains("through the link /home/u/project/.venv"), "{access:?}");
    }
}

/// Proves: FS-3 approved-mounts
#[test]
fn a_cache_behind_a_link_in_the_project_is_left_out() {
    let facts = with_variable("GOCACHE", "/home/u/project/cache");
    for to in ["../private", "."] {
        for access in UNWRITTEN {
            let plan = plan(&granting(access, &[]), &facts, &with_link("cache", to)).unwrap();
            assert!(notes(&plan).contains("the link /home/u/project/cache"), "{access:?} {to}");
            assert!(!shows(&plan, "/home/u/private"), "{access:?} {to}");
        }
    }
    let plan = plan(&policy(), &facts, &with_link("cache", "../private")).unwrap();
    assert!(!shows(&plan, "/home/u/private"));
}

/// Proves: FS-1 rw-flag, CARGO-1 layout
#[test]
fn what_is_asked_for_behind_a_link_that_leads_out_of_the_project_is_refused() {
    for (points_to, path) in [
        ("..", "/home/u"),
        ("../private", "/home/u/private"),
        ("../../u/.local/bin", "/home/u/.local/bin"),
        ("../new", "/home/u/new"),
    ] {
        let tree = with_link("target", points_to);
        for access in [ProjectAccess::ReadWrite].into_iter().chain(UNWRITTEN) {
            let (link, led_to) = refused(plan(&granting(access, &["target"]), &user(), &tree));
            assert_eq!(link, Path::new("/home/u/project/target"), "{access:?} {points_to}");
            assert_eq!(led_to, Path::new(path), "{access:?} {points_to}");
        }
    }
    let mut policy = granting(ProjectAccess::ReadOnly, &[]);
    policy.filesystem.read_only_paths = vec!["data".to_owned()];
    refused(plan(&policy, &user(), &with_link("data", "../private")));
    policy.filesystem.read_only_paths = Vec::new();
    policy.filesystem.root_path = Some("data".to_owned());
    refused(plan(&policy, &user(), &with_link("data", "../private")));
}

/// Whoever made the link would choose what of the project is written.
///
/// Proves: FS-1 rw-flag, CARGO-1 layout
#[test]
fn no_link_in_a_project_that_is_not_writable_chooses_what_of_it_is() {
    for to in [".", "src", "new"] {
        for access in UNWRITTEN {
            let tree = with_link("target", to);
            refused(plan(&granting(access, &["target"]), &user(), &tree));
            let mut overlay = granting(access, &[]);
            overlay.filesystem.overlay_paths = vec!["target".to_owned()];
            if to != "new" {
                refused(plan(&overlay, &user(), &tree));
            }
        }
    }
    // Nor do two of them vouch for each other.
    let mut tree = with_link("target", ".");
    tree.link(format!("{PROJECT}/out"), "target/src");
    refused(plan(&granting(ProjectAccess::ReadOnly, &["target", "out"]), &user(), &tree));
}

/// Proves: FS-1 rw-flag
#[test]
fn links_of_whoever_starts_the_run_are_followed() {
    let mut tree = with_link("v", "src");
    tree.dir("/data/rustup").link("/home/u/.rustup", "/data/rustup");
    tree.dir("/data/out").link("/home/u/out", "/data/out").link("/home/u/way", "project");
    tree.dir(format!("{PROJECT}/out/new")).link(format!("{PROJECT}/out/last"), "new");
    let planned = |access, writable: &[&str]| plan(&granting(access, writable), &user(), &tree);
    let writes = |plan: &Plan, path: &str| access(plan, path) == Some(MountAccess::ReadWrite);
    for access in [ProjectAccess::ReadWrite].into_iter().chain(UNWRITTEN) {
        let plan = planned(access, &["~/out", "~/way/out"]).unwrap();
        assert!(shows(&plan, "/data/rustup"), "{access:?}");
        assert!(writes(&plan, "/data/out") && writes(&plan, "/home/u/project/out"), "{access:?}");
    }
    // In a directory that is writable by its own name, the command can write wherever such a link leads.
    planned(ProjectAccess::ReadWrite, &["v"]).unwrap();
    planned(ProjectAccess::ReadOnly, &["out", "out/last"]).unwrap();
    planned(ProjectAccess::ReadOnly, &[".", "v"]).unwrap();
    // To read, it may go on anyway.
    let mut policy = granting(ProjectAccess::ReadOnly, &[]);
    policy.filesystem.read_only_paths = vec!["v".to_owned()];
    plan(&policy, &user(), &tree).unwrap();
}

/// Proves: FS-3 approved-mounts
#[test]
fn a_directory_under_an_overlay_counts_as_the_project_does_but_a_home_has_links_of_its_owner() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/private").dir("/srv/data/inner").link("/srv/data/out", "/home/u/private");
    tree.link("/srv/data/same", "inner").dir("/data/cache").link("/home/u/.venv", "/data/cache");
    let mut policy = policy();
    policy.filesystem.overlay_paths = vec!["/srv/data".to_owned()];
    for writable in ["/srv/data/out", "/srv/data/same"] {
        policy.filesystem.read_write_paths = vec![writable.to_owned()];
        refused(plan(&policy, &user(), &tree));
    }
    policy.filesystem.read_write_paths = Vec::new();
    let out = with_variable("VIRTUAL_ENV", "/srv/data/out");
    assert!(!shows(&plan(&policy, &out, &tree).unwrap(), "/home/u/private"));
    policy.filesystem.overlay_paths = vec!["~".to_owned()];
    let home = with_variable("VIRTUAL_ENV", "/home/u/.venv");
    assert!(shows(&plan(&policy, &home, &tree).unwrap(), "/data/cache"));
}

/// Proves: FS-3 approved-mounts
#[test]
fn who_stands_at_home_or_in_the_system_stands_in_no_project() {
    let mut tree = FakeTree::new();
    tree.dir("/data/out").link("/home/u/out", "/data/out").link("/etc/out", "/data/out");
    for cwd in ["/home/u", "/etc"] {
        let policy = granting(ProjectAccess::None, &["out"]);
        let facts = HostFacts { cwd: cwd.into(), ..user() };
        let plan = plan(&policy, &facts, &tree).unwrap();
        assert_eq!(access(&plan, "/data/out"), Some(MountAccess::ReadWrite), "{cwd}");
    }
}

/// Proves: CARGO-1 layout
#[test]
fn a_real_directory_of_the_same_name_is_granted_and_a_missing_one_is_made() {
    let policy = granting(ProjectAccess::ReadOnly, &["target"]);
    let missing = plan(&policy, &user(), &FakeTree::new()).unwrap();
    assert_eq!(missing.sandbox.create_dirs, [Path::new("/home/u/project/target")]);
    let mut tree = FakeTree::new();
    tree.dir("/home/u/project/target");
    let there = plan(&policy, &user(), &tree).unwrap();
    for plan in [missing, there] {
        let target = op_at(&plan, "/home/u/project/target");
        assert!(matches!(target, Some(MountOp::Bind { access: MountAccess::ReadWrite, .. })));
    }
}
