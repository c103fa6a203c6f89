//! What is written, over a directory that takes everything as it comes.

use super::*;
use std::ffi::OsStr;
use std::fs;

/// Plain files instead of the kernel's: what is written stands.
fn directory(top: &tempfile::TempDir, files: &[&str]) -> Directory {
    let directory = Directory::make(top.path(), OsStr::new("group")).unwrap();
    for file in files {
        fs::write(directory.path().join(file), "").unwrap();
    }
    directory
}

fn text(directory: &Directory, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

/// Proves: RES-1 memory, RES-1 swap, RES-1 cpu, RES-1 pids, RES-1 cgroup-v2
#[test]
fn every_setting_has_its_file() {
    let top = tempfile::tempdir().unwrap();
    let directory = directory(
        &top,
        &[
            "memory.max",
            "memory.high",
            "memory.swap.max",
            "memory.oom.group",
            "cpu.max",
            "pids.max",
        ],
    );
    let settings = GroupSettings {
        memory: Some(1 << 30),
        memory_high: Some(1 << 29),
        swap: Some(0),
        milli_cpus: Some(1500),
        tasks: Some(u64::MAX),
        ..GroupSettings::default()
    };
    apply(&directory, &settings).unwrap();
    for (name, stands) in [
        ("memory.max", "1073741824"),
        ("memory.high", "536870912"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("cpu.max", "150000 100000"),
        ("pids.max", "4194304"),
    ] {
        assert_eq!(text(&directory, name), stands, "{name}");
    }
}

/// Proves: RES-1 io
#[test]
fn a_disk_gets_both_ways_and_both_kinds() {
    let top = tempfile::tempdir().unwrap();
    let directory = directory(&top, &["io.max"]);
    set_io(&directory, Some(5), Some(u64::MAX), &["254:0".to_owned()]).unwrap();
    assert_eq!(text(&directory, "io.max"), "254:0 rbps=5 wbps=5 riops=4294967294 wiops=4294967294");
}

/// Proves: RES-1 unheld
#[test]
fn what_stands_looser_than_asked_is_an_error() {
    let top = tempfile::tempdir().unwrap();
    let directory = directory(&top, &["memory.max", "cpuset.cpus", "cpuset.cpus.effective"]);
    // A device that swallows what it is given, as a kernel that ignores it would.
    fs::remove_file(directory.path().join("memory.max")).unwrap();
    std::os::unix::fs::symlink("/dev/null", directory.path().join("memory.max")).unwrap();
    let settings = GroupSettings { memory: Some(4096), ..GroupSettings::default() };
    let error = apply(&directory, &settings).unwrap_err();
    assert!(matches!(error, CgroupError::Looser { .. }), "{error}");
    for effective in ["", "0-3", "nonsense"] {
        fs::write(directory.path().join("cpuset.cpus.effective"), effective).unwrap();
        let error = set_cpus(&directory, &[0, 1]).unwrap_err();
        assert!(matches!(error, CgroupError::Looser { .. }), "{effective}: {error}");
    }
    fs::write(directory.path().join("cpuset.cpus.effective"), "1\n").unwrap();
    set_cpus(&directory, &[0, 1]).unwrap();
}

#[test]
fn a_file_that_is_missing_names_itself_and_the_way_out() {
    let top = tempfile::tempdir().unwrap();
    let directory = directory(&top, &[]);
    let settings = GroupSettings { tasks: Some(5), ..GroupSettings::default() };
    let error = apply(&directory, &settings).unwrap_err().to_string();
    for part in ["pids.max", "ENOENT", "waive"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
