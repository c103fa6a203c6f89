//! What the tests of the view and of a run's life share: a script inside, a private mount table
//! around, and waiting that ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use palisade_testkit::{Invocation, Output, Running, World, patiently, sandbox_program};

const TIMEOUT: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A shell script run inside, in the world's project.
pub(crate) fn inside(world: &World, flags: &[&str], script: &str) -> Output {
    world.sandbox_run(flags, ["sh", "-c", script]).run()
}

/// A time limit that is soon over, but not before the command has started.
pub(crate) fn soon() -> String {
    format!("{}ms", patiently(Duration::from_millis(300)).as_millis())
}

/// Waits for something the host shows, and fails the test if it never does.
#[track_caller]
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < patiently(TIMEOUT), "waited in vain: {what}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// A script of the host in which `$PALISADE` is the `sandbox` binary.
pub(crate) fn host_script(world: &World, script: &str) -> Invocation {
    world.bare("sh").args(["-c", script]).env("PALISADE", sandbox_program())
}

/// The same in a mount table of its own, where root may mount what it likes: only for root.
pub(crate) fn private_mounts(world: &World, script: &str) -> Invocation {
    world
        .bare("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-ec", script])
        .env("PALISADE", sandbox_program())
}

/// Every process below this one, as the host numbers them.
pub(crate) fn below(run: &Running) -> Vec<u32> {
    let parents = parents();
    let mut found = vec![run.pid()];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// One field of `/proc/PID/status` on the host.
pub(crate) fn status_field(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}

/// Whether a process lives; one that only waits to be reaped does not.
pub(crate) fn lives(pid: u32) -> bool {
    status_field(pid, "State").is_some_and(|state| !state.starts_with('Z'))
}

/// Every file and directory below a path, for comparing before and after.
pub(crate) fn tree(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            found.push(entry.path().display().to_string());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn parents() -> BTreeMap<u32, u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = status_field(pid, "PPid").and_then(|parent| parent.parse().ok()) {
            parents.insert(pid, parent);
        }
    }
    parents
}
