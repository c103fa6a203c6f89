//! Kills at every moment at which something of a session changes. The build for tests without layers passes named moments
//! (`palisade_sys::fault`): one run lists them, and then each of them is the last one of a run.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use palisade_testkit::{Invocation, World};
use rustix::process::{WaitOptions, wait};

use crate::sessions_support::{descendants, wait_until};

const LIST: &str = "PALISADE_FAULT_LIST";
const KILL_AT: &str = "PALISADE_FAULT_KILL";

/// What happens to one of our processes.
pub(crate) enum Fault {
    /// Nothing, but the moments are listed there.
    List(PathBuf),
    KillAt(String),
}

impl Fault {
    pub(crate) fn list(world: &World) -> Self {
        Self::List(world.outside().join("moments"))
    }

    /// `sandbox` with these arguments, and with this fault.
    pub(crate) fn sandbox(&self, world: &World, arguments: &[&str]) -> Invocation {
        let invocation = world.sandbox(arguments).layers_off(&[]);
        match self {
            Self::List(file) => invocation.env(LIST, file),
            Self::KillAt(moment) => invocation.env(KILL_AT, moment),
        }
    }
}

/// The moments that were listed, each with the number of its turn: `NAME#N`.
pub(crate) fn listed(world: &World) -> Vec<String> {
    let file = world.outside().join("moments");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    let mut moments = Vec::new();
    for name in text.lines() {
        let count = times.entry(name).or_default();
        *count += 1;
        moments.push(format!("{name}#{count}"));
    }
    moments
}

pub(crate) fn state(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade")
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Waits until no process of this test is left. It has to have adopted orphans.
#[track_caller]
pub(crate) fn wait_until_alone(when: &str) {
    wait_until(&format!("nobody is left: {when}"), || {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        descendants(std::process::id()).is_empty()
    });
}

/// Mounts of the host that have to do with this world.
pub(crate) fn mounts_of(world: &World) -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let path = world.path().to_str().unwrap();
    mounts.lines().filter(|line| line.contains(path)).count()
}

/// Control groups of these sessions, in every hierarchy.
pub(crate) fn groups_of(sessions: &[String]) -> Vec<PathBuf> {
    let is_ours = |name: &OsStr| {
        let id = name.to_str().and_then(|name| name.strip_prefix("palisade-"));
        id.is_some_and(|id| sessions.iter().any(|session| session == id))
    };
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                match is_ours(&entry.file_name()) {
                    true => found.push(entry.path()),
                    false => open.push(entry.path()),
                }
            }
        }
    }
    found
}

/// Every file below a directory whose name says that it was not finished.
pub(crate) fn unfinished_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".tmp") || name.ends_with(".removed") || name.starts_with("new-") {
            found.push(entry.path());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(unfinished_files(&entry.path()));
        }
    }
    found
}
