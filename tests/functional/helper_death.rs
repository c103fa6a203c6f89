//! A helper that is killed, at every moment of a run: the run has failed, and says whose death it was (LIFE-4).
//!
//! The command waits for a line, so it cannot end before it is let go: every kill comes before its end, and a run that
//! is called completed after one is wrong. `PALISADE_KILLS=N` makes every loop N kills long.

use std::fs;
use std::time::{Duration, Instant};

use palisade_testkit::{Output, Running, World, am_root};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::egress_support::Net;
use crate::gate::{Client, asking, hidden};
use crate::inside::{eventually, lives};

const UNTIL_TOLD: [&str; 3] = ["sh", "-c", "echo ready; read line; exit 0"];

fn kills(few: u32) -> u32 {
    std::env::var("PALISADE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(few)
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The helper of this name; all of them are children of the supervisor.
fn helper(run: &Running, name: &str) -> Option<Pid> {
    let is_it = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let pid = children(run.pid()).into_iter().find(is_it)?;
    Pid::from_raw(i32::try_from(pid).unwrap())
}

pub(crate) fn wait_for_helper(run: &Running, name: &str) -> Pid {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(pid) = helper(run, name) {
            return pid;
        }
        assert!(Instant::now() < deadline, "no {name}");
    }
}

/// Without giving the processor away: a sleep would miss what takes microseconds.
fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {}
}

fn assert_failed_for(output: &Output, who: &str, when: &str) {
    assert_eq!(output.code(), 125, "{when}: {}", output.err());
    assert!(output.err().contains(who), "{when}: {}", output.err());
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["outcome"], "failed", "{when}");
}

/// From its first moment to long after the command's exec, in steps that are finest around the exec.
///
/// Proves: LIFE-4 helper-death, FS-9 undisturbed
#[test]
fn a_broker_killed_at_any_moment_fails_the_run() {
    let world = World::new();
    let kills = kills(60);
    for kill in 0..kills {
        let run = world.sandbox_run([""; 0], UNTIL_TOLD).keep_stdin_open().spawn();
        let broker = wait_for_helper(&run, "sandbox-broker");
        let held = pidfd_open(broker, PidfdFlags::empty()).unwrap();
        // The whole of a start takes some milliseconds.
        let wait = Duration::from_millis(12) * kill / kills;
        spin(wait);
        pidfd_send_signal(&held, Signal::KILL).unwrap();
        assert_failed_for(&run.wait(), "broker", &format!("killed after {wait:?}"));
    }
}

/// The command is let go in the moment of the kill, and needs nobody any more: its end and the helper's come together.
///
/// Proves: LIFE-4 helper-death
#[test]
fn a_broker_killed_just_before_the_command_ends_fails_the_run() {
    let world = World::new();
    for kill in 0..kills(30) {
        let run = world.sandbox_run([""; 0], UNTIL_TOLD).keep_stdin_open().spawn();
        run.wait_for_stdout("ready");
        let broker = wait_for_helper(&run, "sandbox-broker");
        kill_process(broker, Signal::KILL).unwrap();
        assert_failed_for(&run.wait(), "the broker went away", &format!("kill {kill}"));
    }
}

/// Proves: LIFE-4 helper-death
#[test]
fn the_processes_of_the_way_out_and_in_killed_at_any_moment_fail_the_run() {
    let net = Net::new();
    for (name, who) in [
        ("sandbox-egress", "the egress process went away"),
        ("sandbox-ports", "the process for published ports went away"),
    ] {
        let kills = kills(12);
        for kill in 0..kills {
            let flags = ["--allow-host", "web.example", "--publish", "18084:8000"];
            let run = net.lab.sandbox_run(&net.world, flags, UNTIL_TOLD).keep_stdin_open().spawn();
            let pid = wait_for_helper(&run, name);
            let held = pidfd_open(pid, PidfdFlags::empty()).unwrap();
            let wait = Duration::from_millis(8) * kill / kills;
            spin(wait);
            pidfd_send_signal(&held, Signal::KILL).unwrap();
            assert_failed_for(&run.wait(), who, &format!("killed after {wait:?}"));
        }
    }
}

/// Proves: LIFE-4 helper-death, GATE-5 dead-keeper
#[test]
fn a_keeper_killed_while_a_call_waits_fails_the_run() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = asking(&world, &[], &["cat", &file]).spawn();
    let mut client = Client::connect(&world);
    client.question_about(&file);
    kill_process(wait_for_helper(&run, "sandbox-keeper"), Signal::KILL).unwrap();
    let output = run.wait();
    assert_failed_for(&output, "the keeper went away", "while a call waited");
    assert!(!output.out().contains("content"), "{}", output.out());
}

/// Proves: LIFE-4 helper-death, LIFE-4 crash
#[test]
fn a_killed_pid_1_fails_the_run_and_leaves_nobody() {
    let world = World::new();
    let ways = [&[][..], &["--level", "1", "--no-userns"]];
    // Root's command would keep its capabilities without a user namespace.
    let ways = if am_root() { &ways[..1] } else { &ways[..] };
    for flags in ways.iter().copied() {
        let run = world.sandbox_run(flags, ["sh", "-c", "sleep 1000 & echo ready; wait"]).spawn();
        run.wait_for_stdout("ready");
        let init = children(run.pid());
        let init = init.into_iter().find(|pid| children(*pid).len() == 1).unwrap();
        let inside: Vec<u32> = children(init).into_iter().flat_map(children).collect();
        assert_eq!(inside.len(), 1, "{flags:?}");
        let pid = Pid::from_raw(i32::try_from(init).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let output = run.wait();
        assert_failed_for(&output, "the sandbox's pid 1 went away", &format!("{flags:?}"));
        eventually("nobody left", || !inside.iter().any(|pid| lives(*pid)));
    }
}
