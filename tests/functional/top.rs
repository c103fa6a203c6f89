//! `sandbox top`: what runs use while they run, on a screen and for programs (RES-3).

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use palisade_testkit::{Output, Running, World, patiently};
use rustix::process::Signal;
use serde_json::Value;

use crate::inside::eventually;
use crate::tmux::Tmux;

fn top(world: &World, arguments: &[&str]) -> Output {
    world.sandbox(["top"]).args(arguments).run()
}

/// A run that says `ready` and waits.
fn waiting(world: &World, flags: &[&str], before: &str) -> Running {
    let script = format!("{before} echo ready; read -r line");
    let known = files(world).len();
    let run = world
        .sandbox(["run", "--quiet"])
        .args(flags)
        .args(["--", "sh", "-c", &script, "marked"])
        .keep_stdin_open()
        .spawn();
    run.wait_for_stdout("ready");
    // A run is announced when it has lasted a moment.
    eventually("the run is announced", || files(world).len() > known);
    run
}

fn runs(world: &World) -> Vec<Value> {
    let output = top(world, &["--json"]);
    output.assert_code(0);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["runs"].as_array().unwrap().clone()
}

fn files(world: &World) -> Vec<PathBuf> {
    let directory = world.home().join(".local/state/palisade/run/runs");
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Proves: RES-3 live
#[test]
fn nothing_runs_is_said_so() {
    let world = World::new();
    assert_eq!(runs(&world), [Value::Null; 0]);
    let plain = top(&world, &[]);
    plain.assert_code(0);
    assert_eq!(plain.out(), "no sandbox of yours is running\n");
    let unknown = top(&world, &["abc"]);
    unknown.assert_code(125);
    assert!(unknown.err().contains("no sandbox of yours is running"), "{}", unknown.err());
}

/// Proves: RES-3 live, RES-5 monitoring
#[test]
fn a_run_shows_what_it_uses_and_is_gone_with_its_end() {
    let world = World::new();
    let crowd = "sleep 1000 & sleep 1000 & (while :; do :; done) & ";
    let run = waiting(&world, &["--timeout", "1h"], crowd);
    let listed = runs(&world);
    let [shown] = &listed[..] else { panic!("{listed:#?}") };
    assert!(shown["command"].as_str().unwrap().ends_with("marked"), "{shown:#}");
    // Pid 1, the shell, and its three.
    assert!(shown["processes"].as_u64().unwrap() >= 5, "{shown:#}");
    assert!(shown["threads"].as_u64() >= shown["processes"].as_u64(), "{shown:#}");
    assert!(shown["memoryBytes"].as_u64().unwrap() > 100_000, "{shown:#}");
    assert!(shown["peakMemoryBytes"].as_u64() >= shown["memoryBytes"].as_u64(), "{shown:#}");
    let limits = shown["limits"].as_array().unwrap();
    let timeout = limits.iter().find(|limit| limit["name"] == "timeout").unwrap();
    assert_eq!(timeout["value"], 3_600_000, "{shown:#}");
    assert_eq!((&timeout["holder"], &timeout["isNear"]), (&"timer".into(), &false.into()));
    // The clock that counts CPU time ticks slowly, and the loop may have to wait for its turn.
    eventually("work is seen", || {
        runs(&world)[0]["cpuPercent"].as_f64().is_some_and(|percent| percent > 1.0)
    });
    drop(run.wait());
    assert_eq!(runs(&world), [Value::Null; 0]);
    assert!(files(&world).is_empty(), "{:?}", files(&world));
}

/// Proves: RES-3 live
#[test]
fn memory_is_told_within_reason() {
    let world = World::new();
    let script = "x = b'x' * (64 << 20); print('ready', flush=True); input()";
    let run = world
        .sandbox(["run", "--quiet", "--", "/usr/bin/python3", "-c", script])
        .keep_stdin_open()
        .spawn();
    run.wait_for_stdout("ready");
    // It is listed a moment after the command was started.
    eventually("the run", || !runs(&world).is_empty());
    let bytes = runs(&world)[0]["memoryBytes"].as_u64().unwrap();
    assert!((64 << 20..128 << 20).contains(&bytes), "{bytes}");
    drop(run);
}

/// Proves: RES-3 live
#[test]
fn one_run_is_named_by_either_end_and_told_in_full() {
    let world = World::new();
    let (first, second) = (waiting(&world, &[], ""), waiting(&world, &["--timeout", "1h"], ""));
    let listed = runs(&world);
    assert_eq!(listed.len(), 2, "{listed:#?}");
    let session = listed[1]["session"].as_str().unwrap();
    let tail = &session[session.len() - 8..];
    for named in [session, tail] {
        let one = top(&world, &[named, "--json"]);
        one.assert_code(0);
        let one: Value = serde_json::from_slice(&one.stdout).unwrap();
        assert_eq!(one["session"], session);
    }
    let details = top(&world, &[tail]);
    details.assert_code(0);
    let details = details.out();
    assert!(details.contains(&format!("session    {session}\n")), "{details}");
    assert!(details.contains("timer      hard"), "{details}");
    let unknown = top(&world, &["no-such-run"]);
    unknown.assert_code(125);
    assert!(unknown.err().contains(session), "{}", unknown.err());
    // Both began within the same hours, and so do their names.
    let ambiguous = top(&world, &[&session[..4]]);
    ambiguous.assert_code(125);
    assert!(ambiguous.err().contains("is ambiguous"), "{}", ambiguous.err());
    let table = top(&world, &[]);
    assert!(table.out().starts_with("SESSION "), "{}", table.out());
    assert!(table.out().contains(tail), "{}", table.out());
    first.wait().assert_code(1);
    second.wait().assert_code(1);
}

/// Proves: RES-3 live
#[test]
fn watching_prints_a_line_each_time_until_the_run_is_over() {
    let world = World::new();
    let mut run = waiting(&world, &[], "");
    let session = runs(&world)[0]["session"].as_str().unwrap().to_owned();
    let watch =
        world.sandbox(["top", &session, "--json", "--watch", "--interval", "100ms"]).spawn();
    watch.wait_for_stdout("\n{");
    run.send(b"end\n");
    run.wait().assert_code(0);
    let watched = watch.wait();
    watched.assert_code(0);
    assert!(watched.out().lines().count() >= 2);
    for line in watched.out().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["session"], session.as_str());
    }
}

#[test]
fn what_a_killed_supervisor_left_is_not_shown_and_goes() {
    let world = World::new();
    let run = waiting(&world, &[], "");
    assert_eq!(files(&world).len(), 1);
    run.signal(Signal::KILL);
    run.wait().assert_code(137);
    // Its helpers, which go a moment later, have the file open too.
    eventually("the file of the run goes", || {
        assert_eq!(runs(&world), [Value::Null; 0]);
        files(&world).is_empty()
    });
}

/// Proves: RES-3 live
#[test]
fn the_screen_lists_runs_and_shows_one() {
    let world = World::new();
    let run = waiting(&world, &["--timeout", "1h"], "");
    let tmux = Tmux::new(&world);
    tmux.line("clear; sandbox top --interval 200ms");
    tmux.wait_for("sandbox top: 1 run");
    tmux.wait_until("a line for the run", |screen| {
        screen
            .lines()
            .any(|line| line.contains("marked") && line.contains('K') || line.contains('M'))
    });
    tmux.keys(&["Enter"]);
    tmux.wait_for("timer      hard");
    tmux.keys(&["Escape"]);
    tmux.wait_for("sandbox top: 1 run");
    // It follows what happens.
    let another = waiting(&world, &[], "");
    tmux.wait_for("sandbox top: 2 runs");
    another.wait().assert_code(1);
    run.wait().assert_code(1);
    tmux.wait_for("no sandbox of yours is running");
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// Proves: RES-3 live
#[test]
fn the_screen_of_one_run_ends_with_it() {
    let world = World::new();
    let run = waiting(&world, &[], "");
    let tmux = Tmux::new(&world);
    let session = runs(&world)[0]["session"].as_str().unwrap().to_owned();
    tmux.line(&format!("clear; sandbox top {session} --interval 200ms"));
    tmux.wait_for("no limits");
    let begun = Instant::now();
    run.wait().assert_code(1);
    tmux.wait_for(&format!("run {session} has ended"));
    assert!(begun.elapsed() < patiently(Duration::from_secs(20)));
    tmux.expect_status(0);
}
