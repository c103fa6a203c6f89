//! Against the kernel's unified hierarchy, which is there beside v1 too, if without controllers.

use super::*;
use crate::RunGroup;
use crate::hierarchy::Hierarchies;
use crate::home::LEAF;
use crate::test_support::*;
use palisade_plan::limit::{CgroupHome, Group};
use palisade_sys::proc::{PollFd, Status, poll, sig};
use palisade_sys::test_child::{in_child, park};
use std::path::PathBuf;

/// Our own place in the unified hierarchy, if it is the root of it and ours to use.
fn root() -> Option<PathBuf> {
    let spot = spot()?;
    let is_ours = rustix::fs::access(&spot.own, rustix::fs::Access::WRITE_OK).is_ok();
    (is_ours && crate::home::is_the_root(&spot.own)).then_some(spot.own)
}

fn spot() -> Option<crate::hierarchy::Spot> {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap();
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    Hierarchies::parse(&mounts, &membership).v2
}

fn held_in(parent: PathBuf, way: GroupCreation) -> RunGroup {
    let home = CgroupHome::V2 { parent, controllers: BTreeSet::new(), way };
    RunGroup::create(&Group { home, settings: GroupSettings::default() }, &session()).unwrap()
}

/// Proves: RES-1 cgroup-v2
#[test]
fn the_first_process_is_born_in_the_group() {
    in_child(|| {
        let Some(root) = root() else { return };
        let held = held_in(root, GroupCreation::OwnGroup);
        let inside = start(held.entry(), || {
            let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
            i32::from(membership.lines().any(|line| line.starts_with("0::/palisade-")))
        });
        assert_eq!(end_of(inside), Status::Exited(1));
        let usage = held.usage().unwrap();
        assert!(usage.cpu_user.is_some() && usage.cpu_system.is_some());
        held.remove().unwrap();
    });
}

/// Where a container's profile forbids clone3, or the kernel is too old.
#[test]
fn without_clone3_the_process_joins_by_itself() {
    in_child(|| {
        let Some(root) = root() else { return };
        let held = held_in(root, GroupCreation::OwnGroup);
        palisade_sys::creds::set_no_new_privs().unwrap();
        const SYS_CLONE3: i64 = 435;
        const ERRNO_NOSYS: u32 = 0x0005_0000 | 38;
        let filter = palisade_sys::test_child::filter(SYS_CLONE3, ERRNO_NOSYS);
        let flags = palisade_sys::seccomp::SeccompFlags::NONE;
        palisade_sys::seccomp::install(&filter, flags).unwrap();
        let inside = start(held.entry(), || {
            let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
            i32::from(membership.lines().any(|line| line.starts_with("0::/palisade-")))
        });
        assert_eq!(end_of(inside), Status::Exited(1));
        held.remove().unwrap();
    });
}

#[test]
fn everybody_in_the_group_is_killed_at_one_stroke() {
    in_child(|| {
        let Some(root) = root() else { return };
        let held = held_in(root, GroupCreation::OwnGroup);
        let both = [start(held.entry(), || park()), start(held.entry(), || park())];
        if !held.kill().unwrap() {
            println!("not tried here: a kernel before 5.14");
            both.iter().for_each(|pid| palisade_sys::proc::kill(*pid, sig::SIGKILL).unwrap());
        }
        for pid in both {
            assert!(matches!(end_of(pid), Status::Signaled { signal: sig::SIGKILL, .. }));
        }
        held.remove().unwrap();
    });
}

#[test]
fn a_group_in_use_is_not_removed_and_says_so() {
    in_child(|| {
        let Some(root) = root() else { return };
        let home =
            Home::prepare(&root, GroupCreation::OwnGroup, "x", &BTreeSet::new(), &BTreeSet::new());
        let name = group_name(&session());
        let directory = Directory::make(home.unwrap().parent(), OsStr::new(&name)).unwrap();
        let members = directory.open("cgroup.procs", OFlags::WRONLY).unwrap();
        let entry = GroupEntry { directory: Some(directory.fd()), members: vec![members.as_fd()] };
        let path = directory.path().to_owned();
        let pid = start(entry, || park());
        let error = directory.remove(Duration::from_millis(5)).unwrap_err().to_string();
        assert!(error.contains("EBUSY") && error.contains(&name), "{error}");
        palisade_sys::proc::kill(pid, sig::SIGKILL).unwrap();
        end_of(pid);
        wait_until(|| rustix::fs::rmdir(&path) != Err(Errno::BUSY));
        assert!(!path.exists());
    });
}

/// The same machinery tells of `memory.events`, where there is that controller.
#[test]
fn a_change_is_told_until_it_is_read() {
    in_child(|| {
        let Some(root) = root() else { return };
        let directory = Directory::make(&root, OsStr::new(&group_name(&session()))).unwrap();
        let events = directory.open("cgroup.events", OFlags::RDONLY).unwrap();
        let path = directory.path().join("cgroup.events");
        let is_told = |patience| {
            poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(patience)).unwrap() == 1
        };
        assert_eq!(keyed(&read_all(&events, &path).unwrap(), "populated"), Some(0));
        assert!(!is_told(Duration::ZERO));
        let members = directory.open("cgroup.procs", OFlags::WRONLY).unwrap();
        let entry = GroupEntry { directory: Some(directory.fd()), members: vec![members.as_fd()] };
        let pid = start(entry, || park());
        assert!(is_told(Duration::from_secs(20)));
        assert_eq!(keyed(&read_all(&events, &path).unwrap(), "populated"), Some(1));
        assert!(!is_told(Duration::ZERO));
        palisade_sys::proc::kill(pid, sig::SIGKILL).unwrap();
        end_of(pid);
        assert!(is_told(Duration::from_secs(20)));
        directory.remove(Duration::from_secs(20)).unwrap();
    });
}

/// Our own group is left for a leaf while it is divided, and is as before afterwards.
#[test]
fn dividing_our_own_group_is_undone() {
    in_child(|| {
        let Some(root) = root() else { return };
        let given = Directory::make(&root, OsStr::new(&group_name(&session()))).unwrap();
        given.write("cgroup.procs", "0").unwrap();
        let own = || spot().unwrap().own;
        assert_eq!(own(), given.path());

        let one = held_in(given.path().to_owned(), GroupCreation::OwnGroup);
        let leaf = given.path().join(LEAF);
        assert_eq!(own(), leaf);
        let two = held_in(given.path().to_owned(), GroupCreation::OwnGroup);
        let inside = start(two.entry(), || 0);
        assert_eq!(end_of(inside), Status::Exited(0));
        one.remove().unwrap();
        assert_eq!(own(), leaf, "the other run still needs it");
        two.remove().unwrap();
        assert_eq!(own(), given.path());
        assert!(!leaf.exists());

        std::fs::write(root.join("cgroup.procs"), "0").unwrap();
        given.remove(Duration::from_secs(20)).unwrap();
    });
}

/// As in a container, or in a subtree that was given to us.
/// Proves: RES-1 cgroup-v2
#[test]
fn a_group_of_our_own_is_found_and_its_limits_hold() {
    in_child(|| {
        let Some(root) = root() else { return };
        let settings = || GroupSettings { memory: Some(32 << 20), ..GroupSettings::default() };
        if !matches!(crate::find(), CgroupHome::V2 { .. }) {
            println!("not tried here: the controllers are those of v1");
            return;
        }
        // The root gives its controllers on from here on.
        create(settings()).unwrap().remove().unwrap();
        let given = Directory::make(&root, OsStr::new(&group_name(&session()))).unwrap();
        given.write("cgroup.procs", "0").unwrap();
        let CgroupHome::V2 { parent, way, .. } = crate::find() else { panic!("no place") };
        assert_eq!((parent.as_path(), way), (given.path(), GroupCreation::OwnGroup));
        let held = create(settings()).unwrap();
        let over = start(held.entry(), || use_memory(64 << 20));
        assert!(matches!(end_of(over), Status::Signaled { signal: sig::SIGKILL, .. }));
        assert!(held.hits().unwrap().oom_kills >= 1);
        held.remove().unwrap();
        assert_eq!(given.read("cgroup.subtree_control").unwrap().trim(), "");
        std::fs::write(root.join("cgroup.procs"), "0").unwrap();
        given.remove(Duration::from_secs(20)).unwrap();
    });
}

/// Proves: RES-1 unheld
#[test]
fn a_limit_whose_controller_is_not_there_is_refused() {
    in_child(|| {
        let Some(root) = root() else { return };
        let home = CgroupHome::V2 {
            parent: root,
            controllers: BTreeSet::new(),
            way: GroupCreation::OwnGroup,
        };
        let settings = GroupSettings { memory: Some(1 << 20), ..GroupSettings::default() };
        let error = RunGroup::create(&Group { home, settings }, &session()).unwrap_err();
        assert!(error.to_string().contains("memory cannot be limited"), "{error}");
    });
}
