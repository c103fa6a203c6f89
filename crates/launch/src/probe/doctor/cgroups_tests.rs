use super::*;

const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1: &str = "40 24 0:33 / /sys/fs/cgroup/memory rw shared:12 - cgroup cgroup rw,memory\n\
                  41 24 0:34 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  42 24 0:35 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";

/// Proves: PROC-7 doctor
#[test]
fn our_own_group_is_found_in_either_version() {
    let v2 = Hierarchies::parse(V2.as_bytes(), "0::/user.slice/session-1.scope\n");
    assert_eq!(v2.v2, Some(PathBuf::from("/sys/fs/cgroup/user.slice/session-1.scope")));
    assert_eq!(v2.v1, []);
    let v1 = Hierarchies::parse(V1.as_bytes(), "3:cpu,cpuacct:/a\n2:freezer:/\n1:memory:/b\n");
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
    let inside = Hierarchies::parse(mount.as_bytes(), "0::/docker/abc/job\n");
    assert_eq!(inside.v2, Some(PathBuf::from("/sys/fs/cgroup/job")));
    assert_eq!(Hierarchies::parse(mount.as_bytes(), "0::/elsewhere\n").v2, None);
}

#[test]
fn a_host_without_control_groups_is_told_how_to_get_them() {
    let fault = Hierarchies::parse(b"", "").try_own_group().unwrap_err();
    assert!(fault.mend.unwrap().contains("mount -t cgroup2"));
}

#[test]
fn a_mount_point_with_a_space_is_found() {
    let mount = V2.replace("/sys/fs/cgroup", "/sys/fs/control\\040groups");
    let found = Hierarchies::parse(mount.as_bytes(), "0::/job\n");
    assert_eq!(found.v2, Some(PathBuf::from("/sys/fs/control groups/job")));
}

#[test]
fn only_the_groups_of_dead_doctors_are_removed() {
    let place = std::env::temp_dir().join(format!("palisade-groups-{}", std::process::id()));
    // No pid is that large: see PID_MAX_LIMIT.
    let [dead, alive, other] =
        [format!("{GROUP}4194305"), format!("{GROUP}{}", std::process::id()), "4194305".to_owned()]
            .map(|name| place.join(name));
    for group in [&dead, &alive, &other] {
        std::fs::create_dir_all(group).unwrap();
    }
    remove_left_behind(&place);
    let left = (dead.exists(), alive.exists(), other.exists());
    std::fs::remove_dir_all(&place).unwrap();
    assert_eq!(left, (false, true, true));
}
