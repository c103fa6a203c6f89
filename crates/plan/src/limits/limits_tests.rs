use super::{Assigned, Enforcers, Room, assign, room, scratch};
use crate::error::PlanError;
use crate::facts::LimitFacts;
use crate::fake::{FakeTree, plan, policy, user, without_groups};
use crate::limit::{CgroupHome, Controller, Grip, GroupCreation, Holder, LimitKind};
use crate::model::{MountOp, Resource, Scratch};
use palisade_policy::model::Policy;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const INSIDE: Enforcers = Enforcers { own_user_namespace: true, filter: true, serves_files: false };
const BARE: Enforcers = Enforcers { own_user_namespace: false, filter: false, serves_files: false };
const EVERY_CONTROLLER: [Controller; 6] = [
    Controller::Memory,
    Controller::Swap,
    Controller::Cpu,
    Controller::Pids,
    Controller::Io,
    Controller::CpuSet,
];

fn unified() -> LimitFacts {
    let cgroups = CgroupHome::V2 {
        parent: "/sys/fs/cgroup/x".into(),
        controllers: BTreeSet::from(EVERY_CONTROLLER),
        way: GroupCreation::BesideOwn,
    };
    LimitFacts { cgroups, ..without_groups() }
}

fn old() -> LimitFacts {
    let all = EVERY_CONTROLLER.into_iter().chain([Controller::CpuAccount]);
    let parents: BTreeMap<_, _> = all.map(|one| (one, PathBuf::from("/sys/fs/cgroup"))).collect();
    LimitFacts { cgroups: CgroupHome::V1 { parents }, ..without_groups() }
}

fn limited(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = policy();
    change(&mut policy);
    policy
}

fn assigned(policy: &Policy, walls: Enforcers, facts: fn() -> LimitFacts) -> Assigned {
    assign(policy, walls, false, &facts).unwrap()
}

fn refused(policy: &Policy, walls: Enforcers, facts: fn() -> LimitFacts) -> PlanError {
    assign(policy, walls, false, &facts).unwrap_err()
}

fn holders(assigned: &Assigned) -> Vec<(LimitKind, Holder, Grip)> {
    assigned.limits.iter().map(|limit| (limit.what, limit.holder, limit.grip)).collect()
}

/// Proves: RES-1 holder
#[test]
fn a_run_without_limits_looks_at_nothing() {
    let never = || -> LimitFacts { panic!("looked") };
    let assigned = assign(&policy(), INSIDE, false, &never).unwrap();
    assert!(assigned.limits.is_empty() && assigned.group.is_none());
}

/// Proves: RES-1 holder, RES-1 cgroup-v2, RES-1 swap
#[test]
fn a_unified_group_holds_memory_swap_cpus_processes_and_io() {
    let policy = limited(|policy| {
        policy.resources.max_memory = Some(1 << 30);
        policy.resources.milli_cpus = Some(1500);
        policy.resources.max_iops = Some(100);
        policy.process.max_processes = Some(50);
    });
    let assigned = assigned(&policy, INSIDE, unified);
    let hard = |what| (what, Holder::CgroupV2, Grip::Hard);
    let all = [LimitKind::Memory, LimitKind::Swap, LimitKind::Cpus, LimitKind::Processes];
    assert_eq!(holders(&assigned)[..4], all.map(hard));
    assert_eq!(holders(&assigned)[4], hard(LimitKind::IoOperations));
    let settings = assigned.group.unwrap().settings;
    assert_eq!((settings.memory, settings.swap), (Some(1 << 30), Some(0)));
    assert_eq!((settings.milli_cpus, settings.iops), (Some(1500), Some(100)));
    // Pid 1 is in the group too.
    assert_eq!(settings.tasks, Some(51));
    assert!(assigned.rlimits.iter().all(|limit| limit.resource != Resource::Processes));
}

#[test]
fn the_server_of_the_gates_file_system_does_not_count_for_the_command() {
    let policy = limited(|policy| policy.process.max_processes = Some(50));
    let serving = Enforcers { serves_files: true, ..INSIDE };
    let settings = assigned(&policy, serving, unified).group.unwrap().settings;
    assert_eq!(settings.tasks, Some(53));
}

/// Proves: RES-1 cgroup-v1, RES-1 io
#[test]
fn an_old_group_throttles_what_it_can_see_and_that_has_to_be_accepted() {
    let mut policy = limited(|policy| policy.resources.max_io_bandwidth = Some(1 << 20));
    let error = refused(&policy, INSIDE, old);
    assert!(matches!(error, PlanError::LimitSampled { what: LimitKind::IoBandwidth, .. }));
    policy.resources.best_effort = true;
    let assigned = assigned(&policy, INSIDE, old);
    assert_eq!(holders(&assigned), [(LimitKind::IoBandwidth, Holder::CgroupV1, Grip::Sampled)]);
}

/// Proves: RES-1 rlimits, RES-1 overshoot, RES-1 unheld
#[test]
fn without_a_group_memory_is_watched_if_that_is_accepted() {
    let mut policy = limited(|policy| {
        policy.resources.max_memory = Some(1 << 30);
        policy.resources.max_swap = Some(1 << 20);
    });
    let error = refused(&policy, INSIDE, without_groups).to_string();
    for part in ["resources.maxMemory", "watchdog", "--best-effort-limits", "--waive-limit memory"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    policy.resources.best_effort = true;
    let watched = assigned(&policy, INSIDE, without_groups);
    assert_eq!(holders(&watched), [(LimitKind::Memory, Holder::Watchdog, Grip::Sampled)]);
    assert_eq!(watched.watch.memory, Some((1 << 30) + (1 << 20)));
    policy.resources.best_effort = false;
    policy.resources.waived = vec!["memory".to_owned()];
    let waived = assigned(&policy, INSIDE, without_groups);
    assert!(waived.limits.is_empty() && waived.watch.memory.is_none());
    assert_eq!(waived.waived, [LimitKind::Memory]);
}

/// Proves: RES-1 unheld
#[test]
fn what_nobody_can_hold_is_an_error_whatever_is_accepted() {
    let policy = limited(|policy| {
        policy.resources.max_iops = Some(10);
        policy.resources.best_effort = true;
    });
    let error = refused(&policy, INSIDE, without_groups);
    assert!(matches!(error, PlanError::LimitUnheld { what: LimitKind::IoOperations, .. }));
    assert!(error.to_string().contains("invented"), "{error}");
}

/// Proves: RES-2 affinity, RES-1 cpu
#[test]
fn without_a_group_whole_cpus_are_held_by_a_mask_that_the_filter_keeps() {
    let mut policy = limited(|policy| policy.resources.milli_cpus = Some(1000));
    let one = assigned(&policy, INSIDE, without_groups);
    assert_eq!(holders(&one), [(LimitKind::Cpus, Holder::Affinity, Grip::Hard)]);
    assert_eq!(one.affinity, Some(vec![0]));
    let other = assigned(&policy, INSIDE, || LimitFacts { spread: 7, ..without_groups() });
    assert_eq!(other.affinity, Some(vec![1]));
    policy.resources.milli_cpus = Some(500);
    assert!(matches!(refused(&policy, INSIDE, without_groups), PlanError::LimitSampled { .. }));
    policy.resources.milli_cpus = Some(1000);
    assert!(matches!(refused(&policy, BARE, without_groups), PlanError::LimitSampled { .. }));
}

/// Proves: RES-2 affinity
#[test]
fn only_cpus_that_are_there_can_be_named() {
    let policy = limited(|policy| policy.resources.cpu_set = Some(BTreeSet::from([1, 9])));
    let error = refused(&policy, INSIDE, unified);
    assert_eq!(error, PlanError::NoSuchCpu { cpu: 9, available: "0-1".to_owned() });
    let policy = limited(|policy| policy.resources.cpu_set = Some(BTreeSet::from([1])));
    assert_eq!(assigned(&policy, INSIDE, unified).group.unwrap().settings.cpus, Some(vec![1]));
    assert_eq!(assigned(&policy, INSIDE, without_groups).affinity, Some(vec![1]));
}

/// Proves: RES-2 cpu-time
#[test]
fn cpu_time_is_counted_by_the_group_or_looked_at() {
    let mut policy = limited(|policy| policy.resources.max_cpu = Some(1500));
    let counted = assigned(&policy, INSIDE, old);
    assert_eq!(holders(&counted), [(LimitKind::CpuTime, Holder::CgroupV1, Grip::Hard)]);
    assert_eq!(counted.watch.cpu_time_ms, Some(1500));
    assert!(counted.group.is_some(), "it needs one to count in");
    policy.resources.best_effort = true;
    let looked = assigned(&policy, INSIDE, without_groups);
    assert_eq!(holders(&looked), [(LimitKind::CpuTime, Holder::Watchdog, Grip::Sampled)]);
    // Behind it stands the kernel, for each process by itself.
    let seconds = looked.rlimits.iter().find(|limit| limit.resource == Resource::CpuSeconds);
    assert_eq!(seconds.unwrap().value, 3);
}

/// Proves: RES-1 pids
#[test]
fn processes_of_root_without_namespaces_are_not_counted_by_a_limit_of_the_user() {
    let policy = limited(|policy| policy.process.max_processes = Some(5));
    let error = assign(&policy, BARE, true, &without_groups).unwrap_err();
    assert!(matches!(error, PlanError::LimitSampled { what: LimitKind::Processes, .. }));
    let own = assign(&policy, INSIDE, true, &without_groups).unwrap();
    assert_eq!(holders(&own), [(LimitKind::Processes, Holder::Rlimit, Grip::Hard)]);
}

/// Proves: FS-6 space
#[test]
fn space_is_held_by_the_runs_own_file_systems_if_nothing_of_the_host_is_writable() {
    let closed = Room::Own { trees: Vec::new(), layers: Vec::new() };
    let trees = vec!["/home/u/project".into(), "/srv".into()];
    let open = Room::Own { trees, layers: Vec::new() };
    let mut policy = limited(|policy| policy.filesystem.max_total_size = Some(1 << 30));
    let mut assigned = Assigned::default();
    assigned.add_room(&policy, &closed).unwrap();
    assert_eq!(holders(&assigned), [(LimitKind::Disk, Holder::Tmpfs, Grip::Hard)]);
    assert_eq!(assigned.watch.disk, None);
    let error = Assigned::default().add_room(&policy, &open).unwrap_err().to_string();
    assert!(error.contains("/home/u/project and 1 more"), "{error}");
    policy.resources.best_effort = true;
    let mut assigned = Assigned::default();
    assigned.add_room(&policy, &open).unwrap();
    assert_eq!(holders(&assigned), [(LimitKind::Disk, Holder::Watchdog, Grip::Sampled)]);
    assert_eq!((assigned.watch.disk, assigned.watch.trees.len()), (Some(1 << 30), 2));
    let error = Assigned::default().add_room(&policy, &Room::Everywhere).unwrap_err();
    assert!(matches!(error, PlanError::LimitUnheld { what: LimitKind::Disk, .. }));
}

/// Proves: FS-6 space, FS-6 inodes
#[test]
fn what_has_a_size_of_its_own_is_taken_off_the_whole() {
    let tmpfs = |target: &str, size| MountOp::Tmpfs {
        target: target.into(),
        mode: 0o1777,
        size,
        exec: true,
    };
    let mounts = [tmpfs("/tmp", Some(100)), tmpfs("/dev/shm", None), tmpfs("/var/tmp", Some(50))];
    let mut policy = limited(|policy| {
        policy.filesystem.max_total_size = Some(1000);
        policy.filesystem.max_inodes = Some(100);
    });
    let shared = scratch(&policy, &mounts).unwrap();
    let (inodes, inodes_apart) = (Some(34), Some(33));
    // The root of it and /dev/shm.
    let expected = Scratch { bytes: Some(850), inodes, inodes_apart, own_inodes: 2 };
    assert_eq!(shared, Some(expected));
    policy.filesystem.max_total_size = Some(150);
    assert!(matches!(scratch(&policy, &mounts), Err(PlanError::NoRoomLeft { sized: 150, .. })));
    let told = PlanError::NoRoomLeft { what: LimitKind::Disk, most: 20 << 20, sized: 30 << 20 };
    assert!(told.to_string().contains("is 20m, and") && told.to_string().contains("have 30m:"));
    assert_eq!(scratch(&self::policy(), &mounts), Ok(None));
}

#[test]
fn a_plain_plan_counts_its_writable_trees_once() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/project/.git").dir("/usr/bin");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    let Room::Own { trees, .. } = room(&plan.sandbox.confinement, &[]) else {
        panic!("namespaced")
    };
    assert!(trees.contains(&PathBuf::from("/home/u/project")), "{trees:?}");
    let nested =
        |tree: &PathBuf| trees.iter().any(|other| other != tree && tree.starts_with(other));
    assert!(!trees.iter().any(nested), "{trees:?}");
}

/// Proves: RES-1 unheld
#[test]
fn limits_that_want_a_control_group_are_refused_in_one_line() {
    let mut policy = policy();
    policy.resources.max_memory = Some(64 << 20);
    policy.resources.max_cpu = Some(5000);
    policy.resources.max_iops = Some(10);
    let told = refused(&policy, INSIDE, without_groups).to_string();
    assert_eq!(told.lines().count(), 1);
    let (before, after) = told.split_once(" cannot be enforced strictly here: ").unwrap();
    assert_eq!(before, "memory, cpu-time, iops");
    let ways = "; accept polling of memory, cpu-time with --best-effort-limits, or run without with \
                --waive-limit memory --waive-limit cpu-time --waive-limit iops";
    assert!(after.ends_with(ways), "{told}");
}
