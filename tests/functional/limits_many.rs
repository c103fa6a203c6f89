//! Many runs at once, and runs whose supervisor was killed: limits leave nothing behind (RES-1, LIFE-4).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_testkit::{Running, World};
use rustix::process::Signal;
use serde_json::Value;

use crate::inside::{below, eventually, lives};
use crate::limits_support::{must_be_a_group, python};

const MANY: usize = 200;
/// So many start at the same time.
const AT_ONCE: usize = 20;
const LIMITS: [&str; 7] =
    ["--best-effort-limits", "--memory", "512m", "--pids", "16", "--cpu-time", "1h"];

fn waiting(world: &World) -> Running {
    world
        .sandbox(["run", "--quiet"])
        .args(LIMITS)
        .args(["--", "sh", "-c", "echo ready; read -r line"])
        .keep_stdin_open()
        .deadline(Duration::from_secs(170))
        .spawn()
}

fn sessions(world: &World) -> Vec<String> {
    let output = world.sandbox(["top", "--json"]).run();
    output.assert_code(0);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = listed["runs"].as_array().unwrap();
    runs.iter().map(|run| run["session"].as_str().unwrap().to_owned()).collect()
}

/// Directories of control groups that bear the name of one of these runs.
fn groups_of(sessions: &[String]) -> Vec<PathBuf> {
    let names: BTreeSet<String> = sessions.iter().map(|id| format!("palisade-{id}")).collect();
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_of_one = names.iter().any(|known| name.starts_with(known.as_str()));
            if is_of_one { found.push(entry.path()) } else { waiting.push(entry.path()) }
        }
    }
    found
}

fn mounts_mention(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.contains(&path.display().to_string())
}

/// Proves: RES-1 holder, RES-3 live
#[test]
fn two_hundred_at_once_leave_nothing_behind() {
    let world = World::new();
    let mut runs = Vec::new();
    while runs.len() < MANY {
        let batch: Vec<Running> = (0..AT_ONCE).map(|_| waiting(&world)).collect();
        batch.iter().for_each(|run| run.wait_for_stdout("ready"));
        runs.extend(batch);
    }
    eventually("all of them live at the same time", || sessions(&world).len() == MANY);
    let sessions = sessions(&world);
    assert!(!must_be_a_group("memory") || groups_of(&sessions).len() >= MANY);
    let processes: Vec<u32> = runs.iter().flat_map(below).collect();
    assert!(processes.len() >= 2 * MANY, "{}", processes.len());
    runs.iter_mut().for_each(|run| run.send(b"go\n"));
    for run in runs {
        run.wait().assert_code(0);
    }
    eventually("every process is gone", || !processes.iter().any(|pid| lives(*pid)));
    assert!(groups_of(&sessions).is_empty());
    assert!(!mounts_mention(world.path()));
    assert_eq!(fs::read_dir(world.project()).unwrap().count(), 0);
    let announced = world.home().join(".local/state/palisade/run/runs");
    assert_eq!(fs::read_dir(announced).into_iter().flatten().count(), 0);
}

/// What a killed supervisor cannot remove, the next run does.
///
/// Proves: RES-1 holder, LIFE-4 crash
#[test]
fn a_killed_supervisor_leaves_a_group_that_the_next_run_removes() {
    let world = World::new();
    let run = waiting(&world);
    run.wait_for_stdout("ready");
    eventually("the run is announced", || sessions(&world).len() == 1);
    let sessions = sessions(&world);
    assert!(!must_be_a_group("memory") || !groups_of(&sessions).is_empty());
    let processes = below(&run);
    run.signal(Signal::KILL);
    run.wait().assert_code(137);
    eventually("the sandbox ends", || !processes.iter().any(|pid| lives(*pid)));
    // A run looks at a few of those that are there; others' runs may be among them.
    eventually("the group is gone", || {
        python(&world, &LIMITS[1..], "").assert_code(0);
        groups_of(&sessions).is_empty()
    });
}
