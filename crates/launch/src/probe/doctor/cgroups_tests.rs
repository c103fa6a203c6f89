use super::*;

const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1: &str = "40 24 0:33 / /sys/fs/cgroup/memory rw shared:12 - cgroup cgroup rw,memory\n\
                  41 24 0:34 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  42 24 0:35 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";

/// Proves: PROC-7 doctor
#[test]
fn our_own_group_is_found_in_either_version() {
    let v2 = Hierarchies::parse(V2, "0::/user.slice/session-1.scope\n");
    assert_eq!(v2.v2, Some(PathBuf::from("/sys/fs/cgroup/user.slice/session-1.scope")));
    assert_eq!(v2.v1, []);
    let v1 = Hierarchies::parse(V1, "3:cpu,cpuacct:/a\n2:freezer:/\n1:memory:/b\n");
    assert_eq!(v1.v2, None);
    assert_eq!(
        v1.v1,
        [
            ("memory", PathBuf::from("/sys/fs/cgroup/memory/b")),
            ("cpu", PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/a")),
        ]
    );
}

#[test]
fn a_mount_that_shows_a_part_of_the_hierarchy_is_measured_from_there() {
    let mount = V2.replace("0:30 / ", "0:30 /docker/abc ");
    let inside = Hierarchies::parse(&mount, "0::/docker/abc/job\n");
    assert_eq!(inside.v2, Some(PathBuf::from("/sys/fs/cgroup/job")));
    assert_eq!(Hierarchies::parse(&mount, "0::/elsewhere\n").v2, None);
}

#[test]
fn a_host_without_control_groups_is_told_how_to_get_them() {
    let fault = Hierarchies::parse("", "").try_own_group().unwrap_err();
    assert!(fault.mend.unwrap().contains("mount -t cgroup2"));
}
