//! Signals from outside: through the supervisor, into the record, and to an end where they ask for one.

use std::time::{Duration, Instant};

use palisade_testkit::{Output, World};
use rustix::process::Signal;

const NO_FLAGS: [&str; 0] = [];

/// Names the signal it got and goes on, or ends on `USR2`.
const NAMES_SIGNALS: &str = "\
    for name in TERM INT HUP QUIT USR1; do trap \"echo got $name\" $name; done
    trap 'exit 5' USR2
    echo ready
    while :; do sleep 0.05; done";

fn recorded(world: &World, output: &Output) -> Vec<String> {
    let session = output.report.as_ref().unwrap()["sessionId"].as_str().unwrap().to_owned();
    let shown = world.sandbox(["audit", "show", "--json", &session]).run();
    shown.assert_code(0);
    shown
        .out()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["event"] == "SIGNAL_FORWARDED")
        .map(|event| event["details"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Proves: PROC-3 forwarded, PROC-3 logged
#[test]
fn signals_reach_the_command_and_the_record() {
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
    ] {
        let world = World::new();
        let running = world.sandbox_run(NO_FLAGS, ["bash", "-c", NAMES_SIGNALS]).spawn();
        running.wait_for_stdout("ready");
        running.signal(signal);
        running.wait_for_stdout(&format!("got {name}"));
        running.signal(Signal::USR2);
        let output = running.wait();
        output.assert_code(5);
        assert_eq!(recorded(&world, &output), [format!("SIG{name}"), "SIGUSR2".to_owned()]);
    }
}

/// Proves: PROC-3 fatal, LIFE-3 exit-code
#[test]
fn a_command_ended_by_a_signal_ends_with_128_and_its_number() {
    for (signal, number) in
        [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1), (Signal::USR1, 10)]
    {
        let world = World::new();
        let script = "echo ready; exec sleep 1000";
        let running = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).spawn();
        running.wait_for_stdout("ready");
        running.signal(signal);
        let output = running.wait();
        output.assert_code(128 + number);
        let report = output.report.as_ref().unwrap();
        assert_eq!((&report["outcome"], &report["signal"]), (&"killed".into(), &number.into()));
    }
}

/// Proves: LIFE-3 exit-code
#[test]
fn a_command_that_kills_itself_is_told_from_one_that_was_killed() {
    let world = World::new();
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", "kill -SEGV $$"]).run();
    output.assert_code(128 + 11);
    let report = output.report.as_ref().unwrap();
    assert_eq!((&report["outcome"], &report["signal"]), (&"signalled".into(), &11.into()));
    assert!(recorded(&world, &output).is_empty());
}

/// Who ignores the first wish gets no say in the second.
///
/// Proves: PROC-3 fatal, LIFE-3 own-exit-codes
#[test]
fn asking_twice_ends_a_command_that_ignores_signals() {
    let world = World::new();
    let script =
        "trap '' INT TERM; trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done";
    let running = world.sandbox_run(NO_FLAGS, ["bash", "-c", script]).spawn();
    running.wait_for_stdout("ready");
    let first = Instant::now();
    running.signal(Signal::INT);
    // Not before the supervisor can tell a second wish from an echo of the first.
    running.signal(Signal::USR1);
    running.wait_for_stdout("usr1");
    std::thread::sleep(Duration::from_millis(300).saturating_sub(first.elapsed()));
    running.signal(Signal::INT);
    let output = running.wait();
    output.assert_code(128 + 9);
    assert!(first.elapsed() < Duration::from_secs(8), "it was the grace time that ended it");
    assert_eq!(recorded(&world, &output), ["SIGINT", "SIGUSR1", "SIGINT"]);
}

/// Proves: PROC-3 fatal, PROC-1 dies-together
#[test]
fn a_fatal_signal_leaves_no_process_behind() {
    let world = World::new();
    let script = "(setsid sh -c 'trap \"\" TERM INT HUP; exec sleep 98765' &) ; \
                  (trap '' TERM; sleep 98765) & echo ready; wait";
    let running = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).spawn();
    running.wait_for_stdout("ready");
    running.signal(Signal::TERM);
    running.wait().assert_code(128 + 15);
    assert_eq!(sleepers(), 0);
}

/// Processes of this test's own odd duration, wherever they are.
fn sleepers() -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(b"sleep\0") && line.windows(5).any(|part| part == b"98765"))
        .count()
}

/// Proves: RES-2 wall-time, LIFE-3 own-exit-codes
#[test]
fn a_time_limit_ends_the_run_with_124() {
    let world = World::new();
    let start = Instant::now();
    let script = "trap '' TERM INT; sleep 1000 & wait";
    let output = world.sandbox_run(["--timeout", "300ms"], ["bash", "-c", script]).run();
    output.assert_code(124);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(start.elapsed() < Duration::from_secs(20), "it took {:?}", start.elapsed());
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "timeout");
}

/// Proves: RES-2 wall-time
#[test]
fn a_time_limit_that_is_not_reached_changes_nothing() {
    let world = World::new();
    let output = world.sandbox_run(["--timeout", "60"], ["sh", "-c", "exit 9"]).run();
    output.assert_code(9);
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "completed");
}
