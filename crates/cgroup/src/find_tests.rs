//! Choosing, over directories that look like those of the kernel.

use super::*;
use std::fs;

const PID: u32 = 4711;
const UID: u32 = 1000;

/// A unified hierarchy with our group at `own`.
struct Fake {
    top: tempfile::TempDir,
    own: &'static str,
    has_bus: bool,
    host_swaps: bool,
}

impl Fake {
    fn new(own: &'static str) -> Self {
        let top = tempfile::tempdir().unwrap();
        let fake = Self { top, own, has_bus: false, host_swaps: true };
        fake.group("", "memory cpu pids io cpuset hugetlb", "memory pids", "1\n");
        fs::remove_file(fake.top.path().join("cgroup.type")).unwrap();
        fake
    }

    fn group(&self, path: &str, controllers: &str, enabled: &str, members: &str) {
        let group = self.top.path().join(path);
        fs::create_dir_all(&group).unwrap();
        for (name, text) in [
            ("cgroup.type", "domain\n"),
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", enabled),
            ("cgroup.procs", members),
        ] {
            fs::write(group.join(name), text).unwrap();
        }
    }

    fn without(&self, path: &str) {
        fs::remove_file(self.top.path().join(path)).unwrap();
    }

    fn look(&self) -> CgroupHome {
        let top = self.top.path();
        let mounts = format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", top.display());
        Look {
            hierarchies: Hierarchies::parse(mounts.as_bytes(), &format!("0::{}\n", self.own)),
            pid: PID,
            uid: UID,
            has_bus: self.has_bus,
            host_swaps: self.host_swaps,
        }
        .choose()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.path().join(path)
    }
}

fn chosen(home: CgroupHome) -> (PathBuf, Vec<Controller>, GroupCreation) {
    match home {
        CgroupHome::V2 { parent, controllers, way } => {
            (parent, controllers.into_iter().collect(), way)
        }
        other => panic!("{other:?}"),
    }
}

const MEMORY_AND_PIDS: [Controller; 3] = [Controller::Memory, Controller::Swap, Controller::Pids];

/// Proves: RES-1 cgroup-v2
#[test]
fn a_group_that_is_ours_alone_is_divided() {
    let fake = Fake::new("/given");
    fake.group("given", "memory pids", "", &format!("{PID}\n"));
    assert_eq!(
        chosen(fake.look()),
        (fake.at("given"), MEMORY_AND_PIDS.to_vec(), GroupCreation::OwnGroup)
    );
}

#[test]
fn one_that_others_are_in_is_not_and_the_place_beside_it_is_taken() {
    let fake = Fake::new("/slice/shell");
    fake.group("slice", "memory pids cpu", "memory pids", "");
    fake.group("slice/shell", "memory pids", "", &format!("1\n{PID}\n"));
    assert_eq!(
        chosen(fake.look()),
        (fake.at("slice"), MEMORY_AND_PIDS.to_vec(), GroupCreation::BesideOwn)
    );
    // Nobody may move a process there.
    fake.without("slice/cgroup.procs");
    assert!(matches!(fake.look(), CgroupHome::Nowhere { .. }));
}

#[test]
fn the_root_can_be_divided_though_all_are_in_it() {
    let fake = Fake::new("/");
    let (parent, controllers, way) = chosen(fake.look());
    assert_eq!((parent, way), (fake.at(""), GroupCreation::OwnGroup));
    let five = [Controller::Cpu, Controller::Io, Controller::CpuSet];
    assert!(five.iter().all(|controller| controllers.contains(controller)));
}

#[test]
fn the_leaf_we_once_moved_into_belongs_to_a_divided_group() {
    let fake = Fake::new("/given/palisade-supervisor");
    fake.group("given", "memory pids", "memory pids", "");
    fake.group("given/palisade-supervisor", "memory pids", "", &format!("{PID}\n"));
    let (parent, _, way) = chosen(fake.look());
    assert_eq!((parent, way), (fake.at("given"), GroupCreation::OwnGroup));
}

#[test]
fn a_scope_is_asked_for_where_it_gains_something() {
    const MANAGER: &str = "user.slice/user-1000.slice/user@1000.service";
    let mut fake = Fake::new("/user.slice/user-1000.slice/session-1.scope");
    fake.group("user.slice/user-1000.slice", "memory pids", "memory pids", "");
    fake.group("user.slice/user-1000.slice/session-1.scope", "memory pids", "", "1\n");
    fake.group(MANAGER, "memory pids", "", "2\n");
    fake.has_bus = true;
    let (_, _, way) = chosen(fake.look());
    assert_eq!(way, GroupCreation::BesideOwn, "as much is to be had without asking");
    fake.group(MANAGER, "memory pids cpu", "", "2\n");
    let (parent, controllers, way) = chosen(fake.look());
    assert_eq!((parent, way), (fake.at(""), GroupCreation::SystemdScope));
    assert!(controllers.contains(&Controller::Cpu));
    // An ordinary user cannot write there.
    fake.without("user.slice/user-1000.slice/cgroup.procs");
    fake.group(MANAGER, "memory pids", "", "2\n");
    assert_eq!(chosen(fake.look()).2, GroupCreation::SystemdScope);
    fake.has_bus = false;
    let CgroupHome::Nowhere { why } = fake.look() else { panic!("a place without a bus") };
    assert!(why.contains("session-1.scope") && why.contains("systemd-run"), "{why}");
}

/// Proves: RES-1 swap
#[test]
fn swap_is_held_where_it_is_counted_or_there_is_none() {
    let mut fake = Fake::new("/given");
    fake.group("given", "memory", "", &format!("{PID}\n"));
    fs::write(fake.at("given/memory.max"), "max\n").unwrap();
    assert!(!fake.look().has(Controller::Swap), "the kernel shows memory and no swap");
    fs::write(fake.at("given/memory.swap.max"), "max\n").unwrap();
    assert!(fake.look().has(Controller::Swap));
    fs::remove_file(fake.at("given/memory.swap.max")).unwrap();
    fake.host_swaps = false;
    assert!(fake.look().has(Controller::Swap));
}

/// Proves: RES-1 cgroup-v1
#[test]
fn the_version_that_has_the_controllers_is_taken() {
    let fake = Fake::new("/");
    fs::write(fake.at("cgroup.controllers"), "hugetlb\n").unwrap();
    fs::create_dir_all(fake.at("v1/memory/mine")).unwrap();
    let top = fake.top.path().display();
    let mounts = format!(
        "41 31 0:38 / {top} rw - cgroup2 cgroup2 rw\n42 31 0:39 / {top}/v1/memory rw - cgroup x rw,memory\n\
         43 31 0:40 / {top}/v1/pids rw - cgroup x rw,pids\n"
    );
    let look = Look {
        hierarchies: Hierarchies::parse(mounts.as_bytes(), "0::/\n2:memory:/mine\n1:pids:/none\n"),
        pid: PID,
        uid: UID,
        has_bus: false,
        host_swaps: true,
    };
    let mine = fake.at("v1/memory/mine");
    let parents = BTreeMap::from([(Controller::Memory, mine.clone())]);
    assert_eq!(look.choose(), CgroupHome::V1 { parents });
    fs::write(mine.join("memory.memsw.limit_in_bytes"), "0").unwrap();
    assert!(look.choose().has(Controller::Swap));
    fs::remove_dir_all(mine).unwrap();
    assert!(matches!(look.choose(), CgroupHome::Nowhere { .. }));
}

#[test]
fn nothing_mounted_says_what_to_do() {
    let look = Look {
        hierarchies: Hierarchies::default(),
        pid: PID,
        uid: UID,
        has_bus: true,
        host_swaps: true,
    };
    let CgroupHome::Nowhere { why } = look.choose() else { panic!("a place in nothing") };
    assert!(why.contains("mount -t cgroup2"), "{why}");
}

/// It is on the way to every start.
#[test]
fn looking_takes_no_time_to_speak_of() {
    const TIMES: u32 = 50;
    let fastest = (0..TIMES)
        .map(|_| {
            let started = std::time::Instant::now();
            std::hint::black_box(find());
            started.elapsed()
        })
        .min();
    println!("fastest: {fastest:?}");
    assert!(fastest.unwrap() < std::time::Duration::from_millis(10));
}
