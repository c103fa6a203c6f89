//! Control groups of version 2 that a user was handed, and divides. Most hosts hand nobody one, and then there
//! is nothing to try; `cargo xtask vm-test` does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use palisade_testkit::{Invocation, Output, Running, World};

const TOP: &str = "/sys/fs/cgroup";

/// A new group beside that of the tests, which nobody is in.
struct Alone(PathBuf);

impl Alone {
    fn new() -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = membership.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
        let parent = Path::new(TOP).join(own).parent()?.to_owned();
        let group = parent.join(format!("alone-{}", std::process::id()));
        let is_unified = Path::new(TOP).join("cgroup.controllers").exists();
        if own.is_empty() || !is_unified || fs::create_dir(&group).is_err() {
            println!("there is no group here that could be divided");
            return None;
        }
        Some(Self(group))
    }

    /// As the only process in it.
    fn sandbox_run(&self, world: &World, flags: &[&str], command: &[&str]) -> Invocation {
        let enter = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        let words = ["sh", "-c", enter, self.0.to_str().unwrap()].map(str::to_owned);
        world.sandbox_run(flags, command).started_by(&words)
    }

    /// Fails if anything was left in it.
    fn remove(self) {
        let left: Vec<_> = fs::read_dir(&self.0)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        fs::remove_dir(&self.0).unwrap();
    }
}

const WAITS: [&str; 3] = ["sh", "-c", "echo ready; read -r _"];

/// The supervisor is in a leaf of its own there, beside what it limits; lets the run end.
fn beside_the_run(mut running: Running, leaf: &str) -> Output {
    running.wait_for_stdout("ready");
    let supervisor = fs::read_to_string(format!("/proc/{}/cgroup", running.pid())).unwrap();
    assert!(supervisor.trim_end().ends_with(leaf), "{supervisor}");
    running.send(b"\n");
    let output = running.wait();
    output.assert_code(0);
    output
}

fn holder(output: &Output) -> &str {
    output.report.as_ref().unwrap()["limits"][0]["holder"].as_str().unwrap()
}

/// Proves: RES-1 cgroup-v2, RES-1 memory
#[test]
fn a_group_that_is_ours_alone_is_divided_and_put_back() {
    let Some(group) = Alone::new() else { return };
    let world = World::new();
    let name = group.0.file_name().unwrap().to_str().unwrap().to_owned();
    let running = group.sandbox_run(&world, &["--memory", "64m"], &WAITS).keep_stdin_open().spawn();
    let output = beside_the_run(running, &format!("/{name}/palisade-supervisor"));
    assert_eq!(holder(&output), "cgroup-v2");

    let bomb = [&world.probe(), "hold-memory", "anonymous", "48", "0"];
    let output = group.sandbox_run(&world, &["--memory", "24m"], &bomb).run();
    output.assert_code(137);
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "out-of-memory");
    group.remove();
}

/// Proves: RES-1 cgroup-v2
#[test]
fn limits_of_every_kind_are_held_in_it() {
    let Some(group) = Alone::new() else { return };
    let world = World::new();
    let flags = [
        &["--memory", "64m", "--pids", "20", "--cpus", "0.5", "--cpuset", "0"][..],
        &["--cpu-time", "20s", "--io-bandwidth", "8m", "--iops", "500"],
    ]
    .concat();
    let output = group.sandbox_run(&world, &flags, &["true"]).run();
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    for limit in report["limits"].as_array().unwrap() {
        assert_eq!(limit["holder"], "cgroup-v2", "{limit}");
        assert_eq!(limit["grip"], "hard", "{limit}");
    }
    assert_eq!(report["usage"]["countedBy"], "cgroup-v2");
    group.remove();
}

/// Where the tests are in a group that is nobody's to divide, as after a login.
///
/// Proves: RES-1 cgroup-v2
#[test]
fn a_service_manager_makes_a_scope_for_the_run() {
    let uid = fs::metadata("/proc/self").unwrap().uid();
    let is_unified = Path::new(TOP).join("cgroup.controllers").exists();
    if !is_unified || !Path::new(&format!("/run/user/{uid}/bus")).exists() {
        println!("this user has no service manager");
        return;
    }
    let world = World::new();
    let bomb = [&world.probe(), "hold-memory", "anonymous", "48", "0"];
    let flags = ["--memory", "24m", "--cpus", "0.5", "--pids", "20", "--iops", "500"];
    let output = world.sandbox_run(flags, bomb).run();
    output.assert_code(137);
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["outcome"], "out-of-memory");
    for limit in report["limits"].as_array().unwrap() {
        assert_eq!(limit["holder"], "cgroup-v2", "{limit}");
    }
    let running = world.sandbox_run(["--memory", "24m"], WAITS).keep_stdin_open().spawn();
    beside_the_run(running, ".scope/palisade-supervisor");
}
