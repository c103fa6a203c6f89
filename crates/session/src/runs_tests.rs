use super::{Announced, AnnouncedLimit, announce, directory, list};
use crate::app_dirs::AppDirs;
use jiff::Timestamp;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn places(base: &Path) -> AppDirs {
    AppDirs {
        organisation: base.join("etc"),
        user: base.join("config"),
        state: base.join("state"),
        runtime: base.join("run"),
    }
}

fn run(session: &str, second: i64) -> Announced {
    Announced {
        session: session.to_owned(),
        init: 4321,
        spawner: None,
        command: "make all".to_owned(),
        started_at: Timestamp::from_second(second).unwrap(),
        cgroups: vec![PathBuf::from("/sys/fs/cgroup/memory/palisade-s")],
        limits: vec![AnnouncedLimit {
            name: "memory".to_owned(),
            value: 1 << 30,
            holder: "cgroup-v1".to_owned(),
            grip: "hard".to_owned(),
        }],
    }
}

/// Proves: RES-3 live
#[test]
fn a_run_is_found_for_as_long_as_it_is_announced() {
    let base = tempfile::tempdir().unwrap();
    let places = places(base.path());
    assert_eq!(list(&places).unwrap(), []);
    let (old, new) = (run("b-old", 100), run("a-new", 200));
    let second = announce(&places, &new).unwrap();
    let first = announce(&places, &old).unwrap();
    assert_eq!(list(&places).unwrap(), [old.clone(), new]);
    drop(second);
    assert_eq!(list(&places).unwrap(), [old]);
    drop(first);
    assert_eq!(list(&places).unwrap(), []);
    assert_eq!(fs::read_dir(directory(&places)).unwrap().count(), 0);
}

#[test]
fn a_file_tells_of_the_run_and_a_long_command_is_cut() {
    let base = tempfile::tempdir().unwrap();
    let places = places(base.path());
    let mut long = run("s", 1);
    long.command = "é".repeat(5000);
    let _announcement = announce(&places, &long).unwrap();
    assert_eq!(list(&places).unwrap()[0].command.chars().count(), 1001);
    let text = fs::read(directory(&places).join("s.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(json["init"], 4321);
    assert_eq!(json["limits"][0]["holder"], "cgroup-v1");
}

/// As a supervisor that is killed leaves it: the kernel lets go of the lock.
fn killed(places: &AppDirs, session: &str) {
    let announcement = announce(places, &run(session, 1)).unwrap();
    let path = directory(places).join(format!("{session}.json"));
    let text = fs::read(&path).unwrap();
    drop(announcement);
    fs::write(path, text).unwrap();
}

#[test]
fn what_a_killed_supervisor_left_is_swept_by_a_reader_and_by_the_next_run() {
    let base = tempfile::tempdir().unwrap();
    let places = places(base.path());
    let count = || fs::read_dir(directory(&places)).unwrap().count();
    killed(&places, "killed");
    assert_eq!(count(), 1);
    assert_eq!(list(&places).unwrap(), []);
    assert_eq!(count(), 0);
    killed(&places, "gone");
    drop(announce(&places, &run("next", 2)).unwrap());
    assert_eq!(count(), 0);
}

#[test]
fn what_may_be_alive_is_not_swept() {
    let base = tempfile::tempdir().unwrap();
    let places = places(base.path());
    let change = |session: &str, from: &str, to: &str| {
        let path = directory(&places).join(format!("{session}.json"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
    };
    // In a container that sees this directory.
    let _elsewhere = announce(&places, &run("elsewhere", 1)).unwrap();
    change("elsewhere", "pidNamespace\":", "pidNamespace\":1");
    // Of a version that says other things.
    let _newer = announce(&places, &run("newer", 1)).unwrap();
    change("newer", "command", "commandLine");
    // Being written at this moment.
    let unfinished = directory(&places).join("unfinished.json");
    fs::write(&unfinished, "").unwrap();
    assert_eq!(list(&places).unwrap(), []);
    assert_eq!(fs::read_dir(directory(&places)).unwrap().count(), 3);
    // It never was finished.
    let long_ago = SystemTime::now() - Duration::from_secs(120);
    File::options().write(true).open(&unfinished).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(list(&places).unwrap(), []);
    assert!(!unfinished.exists());
}

#[test]
fn a_name_that_is_not_the_session_and_a_link_tell_nothing() {
    let base = tempfile::tempdir().unwrap();
    let places = places(base.path());
    let _announcement = announce(&places, &run("s", 1)).unwrap();
    let own = directory(&places).join("s.json");
    fs::copy(&own, directory(&places).join("other.json")).unwrap();
    std::os::unix::fs::symlink(&own, directory(&places).join("link.json")).unwrap();
    assert_eq!(list(&places).unwrap().len(), 1);
}
