//! Caps on output: byte for byte up to the cap, beyond it the beginning and the end, and whoever writes or
//! reads sees what it would see without a sandbox.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use palisade_testkit::{World, patiently, sandbox_program};

use crate::inside::{eventually, host_script, status_field};
use crate::tmux::Tmux;

const CAP: usize = 64 * 1024;
const CAPPED: [&str; 2] = ["--max-output", "64k"];

/// The line that says how much is missing, and what stands before and after it.
#[track_caller]
fn parts(output: &str) -> (&str, &str, &str) {
    let begin = output.find("[palisade: ").unwrap_or_else(|| panic!("nothing was cut: {output}"));
    let (head, rest) = output.split_at(begin);
    let (line, tail) = rest.split_once('\n').unwrap();
    (head, line.trim_end(), tail)
}

fn sandbox_command(world: &World, flags: &[&str], command: &[&str]) -> Command {
    let mut sandbox = world.host_command(sandbox_program().as_os_str());
    sandbox.arg("run").args(flags).arg("--").args(command).stdin(Stdio::null());
    sandbox
}

/// Waits for the end up to a deadline, so that a deadlock is a failure and not a hang.
fn end_of(mut child: Child) -> i32 {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            // As a shell tells it.
            return status.code().or(status.signal().map(|signal| 128 + signal)).unwrap();
        }
        if start.elapsed() > patiently(Duration::from_secs(30)) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Proves: RES-2 output
#[test]
fn up_to_the_cap_every_byte_passes() {
    let world = World::new();
    let every_byte: Vec<u8> = (0..=255).cycle().take(CAP).collect();
    let output = world.sandbox_run(CAPPED, ["cat"]).stdin(every_byte.clone()).run();
    output.assert_code(0);
    assert!(output.stdout == every_byte, "{} bytes came back", output.stdout.len());
    assert_eq!(output.err(), "");
}

/// Proves: RES-2 output
#[test]
fn one_byte_more_is_cut_out_of_the_middle() {
    let world = World::new();
    let output = world.sandbox_run(CAPPED, ["cat"]).stdin([b'x'; CAP + 1]).run();
    output.assert_code(0);
    let out = output.out();
    let (head, line, tail) = parts(&out);
    // The line is ours alone, though the output had none.
    assert_eq!((head.len(), tail.len()), (CAP / 2 + 1, CAP / 2));
    assert!(line.starts_with("[palisade: 1 byte of output cut here"), "{line}");
}

/// Proves: RES-2 output
#[test]
fn the_beginning_and_the_end_are_kept_of_each_stream() {
    let world = World::new();
    let script = "seq 100000; seq 200000 300000 >&2; exit 3";
    let output = world.sandbox_run(CAPPED, ["sh", "-c", script]).run();
    output.assert_code(3);
    for (text, first, last) in
        [(output.out(), "1\n2\n3\n", "\n99999\n100000\n"), (output.err(), "200000\n", "\n300000\n")]
    {
        // At the end the run says so as well, in a line of its own.
        let text = text.split("sandbox: ").next().unwrap();
        let (head, line, tail) = parts(text);
        assert!(head.starts_with(first) && tail.ends_with(last), "{text}");
        assert!(line.contains(" kB of output cut here; the first 32 kB and the last 3"), "{line}");
        assert!(tail.lines().next().unwrap().parse::<u32>().is_ok(), "a line was cut: {tail}");
        assert!(head.len() + tail.len() <= CAP + 1);
    }
}

/// Both go to one place, and are one output: in the order in which they were written, and under one cap.
///
/// Proves: RES-2 output
#[test]
fn two_streams_that_go_to_one_place_keep_their_order() {
    let world = World::new();
    let both = "for i in $(seq 500); do echo out $i; echo err $i >&2; done";
    let expected: String = (1..=500).map(|i| format!("out {i}\nerr {i}\n")).collect();
    for place in ["2>&1 | cat", ">file 2>&1; cat file", ">>file 2>>file; cat file"] {
        let script =
            format!("rm -f file; \"$PALISADE\" run --max-output 64k -- sh -c '{both}' {place}");
        let output = host_script(&world, &script).run();
        output.assert_code(0);
        assert_eq!(output.out(), expected, "{place}");
    }
    let script = "\"$PALISADE\" run --max-output 1k -- sh -c 'seq 9999; seq 9999 >&2' 2>&1 | cat";
    let output = host_script(&world, script).run();
    assert_eq!(output.out().matches("[palisade: ").count(), 1, "{}", output.out());
    assert!(output.out().len() < 1024 + 300, "{}", output.out());
}

/// A flood of a gigabyte ends as fast as it is written, and the supervisor's memory stays small.
///
/// Proves: RES-2 output, RES-4 output
#[test]
fn a_flood_is_dropped_and_takes_no_memory() {
    let world = World::new();
    let script = "head -c 1073741824 /dev/zero; echo end; touch flooded; read -r _";
    let mut run = sandbox_command(&world, &CAPPED, &["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let supervisor = run.id();
    // Nobody reads meanwhile.
    eventually("the flood is over", || world.project().join("flooded").exists());
    let peak = status_field(supervisor, "VmHWM").unwrap();
    let peak: u64 = peak.strip_suffix(" kB").unwrap().trim().parse().unwrap();
    assert!(peak < 64 * 1024, "the supervisor took {peak} kB");
    drop(run.stdin.take());
    let mut output = Vec::new();
    run.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    end_of(run);
    assert!(output.ends_with(b"end\n") && output.len() < CAP + 200, "{} bytes", output.len());
    assert!(String::from_utf8_lossy(&output).contains("[palisade: 1023.9 MB of output cut here"));
}

/// `yes | head -1` ends as it does without us.
///
/// Proves: RES-2 output, RES-4 output
#[test]
fn a_reader_that_leaves_ends_the_writer() {
    let world = World::new();
    let mut writer =
        sandbox_command(&world, &CAPPED, &["yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let from_writer: OwnedFd = writer.stdout.take().unwrap().into();
    let head = Command::new("head").arg("-1").stdin(from_writer).output().unwrap();
    assert_eq!(head.stdout, b"y\n");
    assert_eq!(end_of(writer), 128 + 13);
}

/// It is told at once, not only when we try to write; its other stream goes on.
///
/// Proves: RES-2 output
#[test]
fn a_reader_that_leaves_early_is_noticed_at_the_next_write() {
    let world = World::new();
    let script = "trap '' PIPE; read -r _; for i in 1 2 3 4 5; do sleep 0.1; \
                  echo written || { echo refused $i >&2; exit 7; }; done";
    let mut run = sandbox_command(&world, &CAPPED, &["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    drop(run.stdin.take());
    let mut said = String::new();
    run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("refused 1\n"), "{said}");
    assert_eq!(end_of(run), 7);
}

/// Up to the cap a slow reader slows the command down, as a pipe does; a command past it waits for nobody.
///
/// Proves: RES-2 output, RES-4 output
#[test]
fn a_reader_that_does_not_read_holds_nothing_up_past_the_cap() {
    let world = World::new();
    for (cap, passes) in [("8m", false), ("64k", true)] {
        let script = "head -c 3000000 /dev/zero; touch passed; exec >&-; read -r _";
        let _ = fs::remove_file(world.project().join("passed"));
        let mut run = sandbox_command(&world, &["--max-output", cap], &["sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = run.stdout.take().unwrap();
        if passes {
            eventually("it went on", || world.project().join("passed").exists());
        } else {
            // What is on the way is full: a byte more would have to be kept by somebody.
            std::thread::sleep(patiently(Duration::from_millis(300)));
            assert!(!world.project().join("passed").exists(), "somebody keeps megabytes");
        }
        let mut got = Vec::new();
        output.read_to_end(&mut got).unwrap();
        let expected = if passes { CAP + 200 } else { 3_000_000 };
        assert!(got.len() <= expected && (passes || got.len() == expected), "{}", got.len());
        drop(run.stdin.take());
        end_of(run);
    }
}

/// The time limit holds, whoever does not read.
///
/// Proves: RES-2 output, RES-2 wall-time
#[test]
fn a_reader_that_never_reads_does_not_outlast_the_time_limit() {
    let world = World::new();
    let mut run = sandbox_command(&world, &["--max-output", "8m", "--timeout", "1s"], &["yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let unread = run.stdout.take().unwrap();
    assert_eq!(end_of(run), 124);
    drop(unread);
}

/// The command is done with it, and what it wrote fits into what is on the way: the reader alone is late.
///
/// Proves: RES-2 output, RES-2 wall-time
#[test]
fn what_nobody_reads_of_a_command_that_has_ended_does_not_outlast_the_time_limit_either() {
    let world = World::new();
    let report = world.path().join("late.json");
    let flags = [
        "--max-output",
        "1m",
        "--timeout",
        "2s",
        "--grace",
        "200ms",
        "--report",
        report.to_str().unwrap(),
    ];
    let mut run = sandbox_command(&world, &flags, &["head", "-c", "150k", "/dev/zero"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let unread = run.stdout.take().unwrap();
    assert_eq!(end_of(run), 124);
    drop(unread);
    let report = fs::read_to_string(&report).unwrap();
    assert!(report.contains("the reader did not take"), "{report}");
}

/// A terminal that takes nothing (Ctrl-S, a window that hangs), for the command's words and for ours.
///
/// Proves: RES-2 output, RES-2 wall-time
#[test]
fn a_terminal_that_nobody_reads_does_not_outlast_the_time_limit() {
    let world = World::new();
    for cap in [&[][..], &["--max-output", "64k"]] {
        let (unread, terminal) = pty();
        let mut flags = vec!["--timeout", "1s", "--grace", "200ms"];
        flags.extend(cap);
        let again = || Stdio::from(terminal.try_clone().unwrap());
        let run = sandbox_command(&world, &flags, &["yes"])
            .stdin(again())
            .stdout(again())
            .stderr(again())
            .spawn()
            .unwrap();
        assert_eq!(end_of(run), 124, "{cap:?}");
        drop((unread, terminal));
    }
}

/// The two ends of a terminal: where a window would read, and the one for a command.
fn pty() -> (OwnedFd, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let window = openpt(flags).unwrap();
    grantpt(&window).unwrap();
    unlockpt(&window).unwrap();
    let command = ioctl_tiocgptpeer(&window, flags).unwrap();
    (window, command)
}

/// Proves: RES-2 output
#[test]
fn an_output_closed_inside_is_closed_outside() {
    let world = World::new();
    let script = "seq 100000; exec >&-; read -r _";
    let mut run = sandbox_command(&world, &CAPPED, &["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    run.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(parts(&said).2.ends_with("\n100000\n"));
    assert!(run.try_wait().unwrap().is_none(), "it ended before its input did");
    drop(run.stdin.take());
    end_of(run);
}

/// Proves: RES-2 output, PROC-1 dies-together
#[test]
fn what_is_left_in_the_background_does_not_keep_the_output_open() {
    let world = World::new();
    let output = world.sandbox_run(CAPPED, ["sh", "-c", "sleep 1000 & echo said"]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "said\n");
}

/// The command writes to a pipe of the sandbox's: the caller's file is not its to empty.
///
/// Proves: RES-2 output
#[test]
fn the_callers_own_file_never_goes_in() {
    let world = World::new();
    let script = "\"$PALISADE\" run --max-output 64k -- sh -c \
                  'echo kept; sleep 0.2; : >/dev/stdout; readlink /proc/self/fd/1' >file; cat file";
    let output = host_script(&world, script).run();
    let out = output.out();
    assert!(out.starts_with("kept\npipe:["), "{out}");
}

/// Proves: RES-2 output
#[test]
fn without_a_cap_the_command_has_the_callers_own_streams() {
    let world = World::new();
    let script =
        "\"$PALISADE\" run -- stat -L -c %i /proc/self/fd/1 >file; cat file; stat -c %i file";
    let output = host_script(&world, script).run();
    let out = output.out();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{out}");
}

/// Proves: RES-2 output
#[test]
fn a_terminal_shows_the_beginning_and_the_end() {
    let world = World::new();
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run --max-output 1k -- seq 2000");
    tmux.wait_for_line("2000");
    tmux.expect_status(0);
    let screen = tmux.screen();
    let (head, line, tail) = parts(&screen);
    assert!(head.contains("\n1\n2\n3\n"), "{screen}");
    assert!(line.starts_with("[palisade: ") && line.ends_with("(--max-output)]"), "{line}");
    assert!(tail.contains("\n1999\n2000\n"), "{screen}");
    assert!(tail.lines().next().unwrap().trim().parse::<u32>().is_ok(), "{screen}");
}

/// Proves: RES-2 output, RES-4 output
#[test]
fn the_report_says_what_was_cut() {
    let world = World::new();
    let output = world.sandbox_run(CAPPED, ["head", "-c", "1000000", "/dev/zero"]).run();
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["outcome"], "output-capped", "{report:#}");
    let limits = report["limits"].as_array().unwrap();
    let capped = limits.iter().find(|limit| limit["name"] == "max-output").unwrap();
    assert_eq!(capped["holder"], "relay");
    assert_eq!(capped["reached"]["usage"], 1_000_000, "{report:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("934464 of 1000000 bytes of standard output were cut"), "{notes}");
    assert!(output.err().contains("--max-output"), "{}", output.err());
    let output = world.sandbox_run(CAPPED, ["head", "-c", "1000", "/dev/zero"]).run();
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["outcome"], "completed");
}

/// Proves: RES-5 time
#[test]
fn a_run_takes_a_multiple_of_the_step_and_says_so() {
    let world = World::new();
    let step = patiently(Duration::from_millis(700));
    let flags = ["--normalize-time".to_owned(), format!("{}ms", step.as_millis())];
    let start = Instant::now();
    let output = world.sandbox_run(&flags, ["true"]).run();
    let took = start.elapsed();
    output.assert_code(0);
    assert!(took >= step, "it took {took:?}");
    let usage = &output.report.as_ref().unwrap()["usage"];
    let step = u64::try_from(step.as_micros()).unwrap();
    for duration in ["wallUs", "cpuUserUs", "cpuSystemUs"] {
        let shown = usage[duration].as_u64().unwrap();
        assert!(shown > 0 && shown.is_multiple_of(step), "{usage:#}");
    }
}

/// Proves: RES-5 time
#[test]
fn who_insists_does_not_wait_for_the_step() {
    let world = World::new();
    let start = Instant::now();
    let run = world
        .sandbox_run(["--normalize-time", "1h"], ["sh", "-c", "echo said"])
        .deadline(Duration::from_secs(60))
        .spawn();
    run.wait_for_stdout("said");
    // The command is gone, its run is not.
    eventually("the command has ended", || crate::inside::below(&run).is_empty());
    run.signal(rustix::process::Signal::INT);
    std::thread::sleep(Duration::from_millis(400));
    run.signal(rustix::process::Signal::INT);
    run.wait().assert_code(0);
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// `timeout(1)` and a service manager ask once; a terminal that is closed tells by SIGHUP.
///
/// Proves: RES-5 time
#[test]
fn who_asks_for_an_end_does_not_wait_for_the_step_either() {
    let world = World::new();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let run = world
            .sandbox_run(["--normalize-time", "1h"], ["sh", "-c", "echo said"])
            .deadline(Duration::from_secs(60))
            .spawn();
        run.wait_for_stdout("said");
        eventually("the command has ended", || crate::inside::below(&run).is_empty());
        run.signal(signal);
        run.wait().assert_code(0);
    }
}

/// A command that ends because it was asked to: who asked once does not ask again.
///
/// Proves: RES-5 time
#[test]
fn who_asked_for_the_end_of_the_command_does_not_wait_for_the_step() {
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let world = World::new();
    let run = world
        .sandbox_run(["--normalize-time", "1h"], ["sh", "-c", script])
        .deadline(Duration::from_secs(60))
        .spawn();
    run.wait_for_stdout("ready");
    run.signal(rustix::process::Signal::TERM);
    run.wait().assert_code(3);
}

/// Proves: RES-5 time
#[test]
fn a_step_of_more_than_an_hour_is_refused() {
    let output = World::new().sandbox_run(["--normalize-time", "61m"], ["true"]).run();
    output.assert_code(125);
    let told = "--normalize-time: `resources.normalizeTime` (61m) would delay every run";
    assert!(output.err().contains(told) && output.err().contains("at most 1h"), "{}", output.err());
}

/// What SECURITY.md says about it can be done as it says.
///
/// Proves: RES-5 worth
#[test]
fn what_time_and_usage_tell_is_documented_with_options_that_exist() {
    let document = include_str!("../../SECURITY.md");
    let (_, section) = document.split_once("\n## Timing and side channels\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let options: Vec<&str> = section
        .split('`')
        .filter_map(|code| code.split(' ').next())
        .filter(|word| word.starts_with("--"))
        .collect();
    assert!(options.contains(&"--normalize-time") && options.contains(&"--metrics-file"));
    let help = World::new().sandbox(["run", "--help-all"]).run();
    for option in options {
        assert!(help.out().contains(option), "{option} is not in the help");
    }
}
