//! Signals from outside: through the supervisor, into the record, and to an end where they ask for one.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use palisade_testkit::{Output, World, patiently, sandbox_program};
use rustix::process::Signal;

use crate::inside::{below, eventually, host_script, soon, status_field};

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
        assert_eq!(
            output.status.signal(),
            Some(number),
            "only the status tells a shell of a signal"
        );
        let report = output.report.as_ref().unwrap();
        assert_eq!((&report["outcome"], &report["signal"]), (&"killed".into(), &number.into()));
    }
}

/// As pid 1 of a container nobody dies of a signal of one's own, and the code says the same. SIGKILL is not ours to die of: nobody
/// could have cleaned up.
///
/// Proves: LIFE-3 exit-code
#[test]
fn who_cannot_die_of_the_signal_exits_with_its_code() {
    let world = World::new();
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", "kill -KILL $$"]).run();
    assert_eq!((output.status.signal(), output.code()), (None, 137));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let inside = ["run", "--quiet", "--", "sh", "-c", "kill -TERM $$"];
    let unshare = world.bare("unshare").args(["--pid", "--fork", "--mount-proc"]);
    let output = unshare.arg(sandbox_program()).args(inside).run();
    assert_eq!((output.status.signal(), output.code()), (None, 143), "{}", output.err());
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

/// Starts what follows the directory in a terminal, closes the terminal as soon as a question stands in it, and prints how it ended.
const CLOSE_AT_QUESTION: &str = r#"
import fcntl, os, pty, signal, subprocess, sys, termios
master, slave = pty.openpty()
def in_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if sys.argv[1] == 'ignored':
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
run = subprocess.Popen(sys.argv[2:], stdin=slave, stdout=slave, stderr=slave, preexec_fn=in_terminal)
os.close(slave)
shown = b''
while b'wants to' not in shown:
    shown += os.read(master, 4096)
os.close(master)
print(run.wait(60))
"#;

/// Whether somebody told everybody of it or, as under nohup, nobody: who hung up can answer nothing.
///
/// Proves: PROC-3 fatal
#[test]
fn a_terminal_that_is_closed_at_a_question_ends_the_run_as_a_hangup() {
    for told in ["sent", "ignored"] {
        let world = World::new();
        let file = world.write("home/papers/letter", "read me\n").to_string_lossy().into_owned();
        let sandbox = sandbox_program().to_string_lossy().into_owned();
        let python = world.bare("python3").args(["-c", CLOSE_AT_QUESTION, told, &sandbox, "run"]);
        let output = python.args(["--grace", "1", "--", "cat", &file]).run();
        output.assert_code(0);
        let audit = world.sandbox(["audit", "show"]).run().out().into_owned();
        assert!(audit.contains("SIGHUP forwarded"), "{told}: {audit}");
        assert!(audit.contains(": killed, signal "), "{told}: {audit}");
        assert!(!audit.contains("failed"), "{told}: {audit}");
    }
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
    let output = world.sandbox_run(["--timeout", &soon()], ["bash", "-c", script]).run();
    output.assert_code(124);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(start.elapsed() < patiently(Duration::from_secs(20)), "it took {:?}", start.elapsed());
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "timeout");
}

/// Proves: PROC-3 grace, RES-2 wall-time
#[test]
fn at_its_time_limit_a_command_is_asked_to_end_first() {
    let world = World::new();
    let script = "trap 'echo cleaned up; exit 7' TERM; while :; do sleep 0.05; done";
    let limit = soon();
    let flags = ["--timeout", &limit, "--grace", "50s"];
    let output = world.sandbox_run(flags, ["bash", "-c", script]).run();
    output.assert_code(124);
    assert_eq!(output.out(), "cleaned up\n");
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "timeout");
}

/// Proves: PROC-3 grace, RES-2 wall-time
#[test]
fn a_stopped_command_ends_at_its_time_limit_too() {
    let world = World::new();
    let limit = soon();
    let flags = ["--timeout", &limit, "--grace", "50s"];
    // The shell would be continued at once; its child is not ours to continue, until the end.
    let script = "sh -c 'kill -STOP $$' & wait $!; wait; sleep 1000";
    world.sandbox_run(flags, ["sh", "-c", script]).run().assert_code(124);
}

/// Proves: PROC-3 grace, PROC-3 fatal
#[test]
fn who_does_not_end_in_its_grace_time_is_killed() {
    let world = World::new();
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let running = world.sandbox_run(["--grace", "300ms"], ["bash", "-c", script]).spawn();
    running.wait_for_stdout("ready");
    let asked = Instant::now();
    running.signal(Signal::TERM);
    let output = running.wait();
    output.assert_code(128 + 9);
    let took = asked.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < patiently(Duration::from_secs(8)),
        "{took:?}"
    );
    assert!(output.err().contains("did not end when asked to"), "{}", output.err());
}

/// Signals that fall into the few milliseconds of set-up: whenever they come, the run ends as the
/// command would have.
///
/// Proves: PROC-3 set-up, LIFE-3 exit-code
#[test]
fn a_signal_during_set_up_ends_the_run_as_that_signal() {
    const RUNS: u32 = 60;
    const LATEST: Duration = Duration::from_millis(30);
    const STRIDE: u32 = 37;
    let world = World::new();
    for run in 0..RUNS {
        let moment = LATEST * (run * STRIDE % RUNS) / RUNS;
        let signal = if run % 2 == 0 { Signal::TERM } else { Signal::USR1 };
        let running = world.sandbox_run(NO_FLAGS, ["sleep", "1000"]).spawn();
        std::thread::sleep(moment);
        running.signal(signal);
        let output = running.wait();
        assert_eq!(output.code(), 128 + signal.as_raw(), "after {moment:?}: {}", output.err());
    }
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: PROC-3 ignored
#[test]
fn what_the_caller_ignores_the_command_ignores() {
    let world = World::new();
    let script = "trap '' HUP QUIT; exec \"$PALISADE\" run -- sh -c \
                  'trap \"exit 4\" USR1; echo ready; while :; do sleep 0.05; done'";
    let running = host_script(&world, script).spawn();
    running.wait_for_stdout("ready");
    // The lower number is delivered first.
    running.signal(Signal::HUP);
    running.signal(Signal::QUIT);
    running.signal(Signal::USR1);
    running.wait().assert_code(4);
}

/// A caller that ignores the death of its children must not keep us from seeing ours.
///
/// Proves: PROC-1 reaping-init
#[test]
fn a_caller_that_ignores_its_children_changes_nothing() {
    let world = World::new();
    let script = "trap '' CHLD; exec \"$PALISADE\" run -- sh -c '(true); exit 3'";
    host_script(&world, script).run().assert_code(3);
}

/// Proves: PROC-3 logged
#[test]
fn a_signal_is_in_the_log_before_the_run_has_ended() {
    let world = World::new();
    let running = world.sandbox_run(NO_FLAGS, ["bash", "-c", NAMES_SIGNALS]).spawn();
    running.wait_for_stdout("ready");
    running.signal(Signal::USR1);
    let log = world.home().join(".local/state/palisade/audit.jsonl");
    eventually("the signal in the log", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("SIGUSR1"))
    });
    running.signal(Signal::KILL);
    running.wait().assert_code(137);
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: PROC-3 job-control, PROC-3 forwarded
#[test]
fn who_is_told_to_stop_stops_and_goes_on_when_told_to() {
    stops_and_goes_on(&[]);
}

/// The leader of the session is outside there, and has no number. Proves: PROC-3 job-control
#[test]
fn who_is_told_to_stop_stops_in_a_pid_namespace_of_somebody_else_too() {
    let as_root = rustix::process::geteuid().is_root();
    let may: &[&str] = if as_root { &[] } else { &["--user", "--map-current-user"] };
    let words = [&["unshare"], may, &["--pid", "--fork", "--mount-proc"]];
    stops_and_goes_on(&words.concat());
}

fn stops_and_goes_on(through: &[&str]) {
    let world = World::new();
    let program = sandbox_program();
    let script = "trap 'echo went on; exit 6' CONT; echo ready; while :; do sleep 0.05; done";
    // Who started the tests may ignore Ctrl-Z, and that is inherited. `timeout` makes a process group
    // that somebody could continue.
    let words = ["--default-signal=TSTP"].into_iter().chain(through.iter().copied());
    let words = words.chain(["timeout", "60"]).map(std::ffi::OsStr::new);
    let run = [program.as_os_str(), "run".as_ref(), "--".as_ref()];
    let command = ["bash", "-c", script].map(std::ffi::OsStr::new);
    let running = world.bare("env").args(words.chain(run).chain(command)).spawn();
    running.wait_for_stdout("ready");
    // Below `timeout`, which is the process we started or the only child of `unshare`.
    let supervisor = below(&running)[usize::from(!through.is_empty())];
    let pid = rustix::process::Pid::from_raw(supervisor.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::TSTP).unwrap();
    eventually("a stopped supervisor", || {
        status_field(supervisor, "State").is_some_and(|state| state.starts_with('T'))
    });
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    running.wait_for_stdout("went on");
    running.wait().assert_code(6);
}

/// Proves: RES-2 wall-time
#[test]
fn a_time_limit_that_is_not_reached_changes_nothing() {
    let world = World::new();
    let output = world.sandbox_run(["--timeout", "60"], ["sh", "-c", "exit 9"]).run();
    output.assert_code(9);
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "completed");
}
