use super::*;
use std::collections::BTreeSet;

/// Proves: PROC-7 doctor
#[test]
fn a_host_without_control_groups_is_told_how_to_get_them() {
    let fault = try_group(CgroupHome::Nowhere { why: "none are mounted".to_owned() }).unwrap_err();
    assert_eq!(fault.detail, "none are mounted");
    assert!(fault.fix.is_some());
}

/// Proves: PROC-7 doctor
#[test]
fn what_would_be_used_is_named() {
    let home = CgroupHome::V2 {
        parent: "/sys/fs/cgroup/user.slice".into(),
        controllers: BTreeSet::from([Controller::Memory, Controller::Pids]),
        way: GroupCreation::BesideOwn,
    };
    let seen = seen(&home).unwrap();
    assert_eq!(seen, "v2, beside the current group, /sys/fs/cgroup/user.slice with memory, pids");
}
