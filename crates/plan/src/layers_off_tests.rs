use super::*;
use crate::build;
use crate::fake::{FakeTree, access, inside, op_at, plan, policy, request, root, user, with_group};
use palisade_policy::model::{Mode, NetworkMode, Policy};

fn off(layers: &[Layer]) -> Plan {
    let tree = FakeTree::new();
    without(plan(&policy(), &user(), &tree).unwrap(), &user(), &tree, layers)
}

#[test]
fn every_layer_changes_the_plan_and_leaves_the_check() {
    for layer in Layer::ALL {
        let mut policy = policy();
        policy.process.debug = false;
        policy.resources.timeout = Some(1000);
        policy.resources.max_memory = Some(1 << 30);
        policy.resources.max_output_size = Some(1 << 20);
        policy.resources.best_effort = true;
        policy.process.max_processes = Some(20);
        policy.filesystem.max_total_size = Some(1 << 30);
        policy.network.mode = NetworkMode::Proxy;
        let (facts, mut tree) = (root(), FakeTree::new());
        tree.file("/root/.npmrc", "registry=https://npm.example/\n//npm.example/:_authToken=x\n");
        let whole = build(&request(&policy, &facts, &tree, "true", &with_group)).unwrap();
        let probes = whole.sandbox.self_check.clone();
        let before = format!("{whole:?}");
        let without = without(whole, &facts, &tree, &[layer]);
        assert!(before != format!("{without:?}"), "{layer:?} changes nothing");
        if layer != Layer::SelfCheck {
            assert_eq!(without.sandbox.self_check, probes, "{layer:?}");
        }
    }
}

#[test]
fn the_whole_host_shows_without_the_mount_view() {
    let plan = off(&[Layer::MountView]);
    assert_eq!(access(&plan, "/srv/data"), Some(MountAccess::ReadOnly));
    assert_eq!(access(&plan, "/home/u/project"), Some(MountAccess::ReadWrite));
    assert!(matches!(op_at(&plan, "/proc"), Some(MountOp::Proc { .. })));
    let plan = off(&[Layer::MountView, Layer::ReadOnlyMounts]);
    assert_eq!(access(&plan, "/srv/data"), Some(MountAccess::ReadWrite));
}

#[test]
fn order_holds_after_a_replacement() {
    let plan = off(&[Layer::PrivateProc, Layer::MinimalDev]);
    let targets: Vec<&Path> = inside(&plan).mounts.iter().map(MountOp::target).collect();
    assert!(targets.is_sorted());
    assert_eq!(access(&plan, "/proc/sys"), Some(MountAccess::ReadWrite));
}

#[test]
fn secrets_come_back_without_the_scrub() {
    let plan = off(&[Layer::EnvScrub]);
    assert!(plan.command.env.contains(&("GH_TOKEN".into(), "x".into())));
}

#[test]
fn without_the_guard_the_command_writes_by_itself() {
    // Where nothing is asked either: questions have a broker of their own right.
    let policy = Policy { mode: Mode::Static, ..policy() };
    let tree = FakeTree::new();
    let off =
        |layers: &[Layer]| without(plan(&policy, &user(), &tree).unwrap(), &user(), &tree, layers);
    let whole = off(&[]);
    let asks = |plan: &Plan| {
        let rules = plan.sandbox.seccomp.as_ref().unwrap().filter.rules();
        rules.iter().any(|rule| rule.answer == CallAnswer::Broker)
    };
    assert!(whole.sandbox.guard.is_some() && asks(&whole));
    let plan = off(&[Layer::Guard]);
    assert!(plan.sandbox.guard.is_none() && !asks(&plan));
    let landlock = plan.sandbox.landlock.unwrap();
    assert!(landlock.guarded.is_empty());
    assert!(landlock.writable.contains(&"/home/u/project".into()));
}
