//! The process that makes the command's writing calls in its stead: it answers as the kernel would, nobody
//! waits for somebody else's call, and nothing of it outlives the run (FS-9).

use std::fs;
use std::time::Duration;

use palisade_testkit::{Output, World, am_root};
use rustix::process::{Pid, Signal, kill_process};

use crate::inside::{below, eventually, lives};

const PYTHON: &str = "/usr/bin/python3";
const NO_FLAGS: [&str; 0] = [];

/// Puts a script beside the project and runs it there, bare and inside.
struct Script {
    world: World,
    path: String,
}

impl Script {
    fn new(content: &str) -> Self {
        let world = World::new();
        let path = world.write("home/scripts/script.py", content).to_string_lossy().into_owned();
        Self { world, path }
    }

    fn bare(&self) -> Output {
        let output = self.world.bare(PYTHON).arg(&self.path).deadline(TIMEOUT).run();
        output.assert_code(0);
        output
    }

    fn inside(&self, words: &[&str]) -> Output {
        let command = [PYTHON, &self.path].into_iter().chain(words.iter().copied());
        let flags = ["--ro", "~/scripts"];
        self.world.sandbox_run(flags, command).deadline(TIMEOUT).run()
    }
}

const TIMEOUT: Duration = Duration::from_secs(240);

/// The one list of what is different on purpose or cannot be the same: of a call, its answer bare and inside.
fn known_difference(call: &str, bare: &str, inside: &str) -> Option<&'static str> {
    let at_once = ["ENAMETOOLONG", "ENOENT", "EINVAL"];
    let is_error_of = |codes: &[&str]| codes.iter().any(|code| inside.starts_with(code));
    if (call.contains("(/") || call.contains(", /")) && inside.starts_with("EXDEV []") {
        return Some("the root directory is another file system inside");
    }
    if at_once.iter().any(|code| bare.starts_with(code)) && is_error_of(&at_once) {
        return Some("of two things that are wrong, either may be told");
    }
    if am_root() && call.contains("read-only") && inside.starts_with("EACCES []") {
        return Some("the command is not root");
    }
    None
}

/// Proves: FS-9 like-the-kernel
#[test]
fn calls_are_answered_as_the_kernel_would() {
    let script = Script::new(include_str!("path_calls.py"));
    let bare = script.bare();
    let inside = script.inside(&[]);
    inside.assert_code(0);
    let (bare, inside) = (bare.out(), inside.out());
    let (bare, inside): (Vec<&str>, Vec<&str>) = (bare.lines().collect(), inside.lines().collect());
    assert!(bare.len() > 3000, "{}", bare.len());
    let mut differences = Vec::new();
    for (bare, inside) in bare.iter().zip(&inside) {
        let (call, bare) = bare.split_once(" = ").unwrap();
        let (same_call, inside) = inside.split_once(" = ").unwrap();
        assert_eq!(call, same_call);
        if bare != inside && known_difference(call, bare, inside).is_none() {
            differences.push(format!("{call}\n  bare:   {bare}\n  inside: {inside}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(bare.len(), inside.len());
}

#[track_caller]
fn bears(what: &[&str]) -> Output {
    let script = Script::new(include_str!("broker_load.py"));
    let output = script.inside(what);
    output.assert_code(0);
    assert_eq!(output.out(), "well\n", "{}", output.err());
    assert_eq!(running_in(&script.world), [""; 0], "still there after the run");
    output
}

/// Proves: FS-9 undisturbed
#[test]
fn a_signal_never_makes_a_call_happen_twice() {
    bears(&["signals"]);
    bears(&["signals-restart"]);
}

/// Proves: FS-9 undisturbed
#[test]
fn callers_that_die_leave_no_trace() {
    bears(&["killed"]);
    bears(&["interrupted"]);
}

/// A pipe without a reader, a file under somebody's lease.
///
/// Proves: FS-9 undisturbed
#[test]
fn who_waits_keeps_nobody_else_waiting() {
    bears(&["pipes"]);
    bears(&["lease"]);
}

/// Proves: FS-9 undisturbed
#[test]
fn a_crowd_is_served() {
    bears(&["threads"]);
    bears(&["races"]);
    bears(&["children"]);
    bears(&["deep"]);
}

/// Proves: FS-9 like-the-kernel
#[test]
fn a_new_umask_counts_at_once() {
    bears(&["umasks"]);
}

/// Proves: FS-9 undisturbed, FS-9 told
#[test]
fn a_flood_of_refused_writes_stalls_nobody_and_fills_no_log() {
    const TRIES: u64 = 20_000;
    let script = Script::new(include_str!("broker_load.py"));
    let output = script.inside(&["refused", &TRIES.to_string()]);
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    let told = report["protectedWrites"].as_array().unwrap();
    assert_eq!(told.len(), 1, "one path, however often: {told:?}");
    let lost: u64 = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|note| {
            note.as_str()?.strip_suffix(" denied calls came too fast to be reported one by one")
        })
        .map(|count| count.parse::<u64>().unwrap())
        .sum();
    assert_eq!(told[0]["count"].as_u64().unwrap() + lost, TRIES);
    let log = script.world.home().join(".local/state/palisade/audit.jsonl");
    let lines = fs::read_to_string(log).unwrap().lines().count();
    assert!(lines < 300, "{lines} lines in the audit log");
}

/// Processes that have the world's directory in their command line.
fn running_in(world: &World) -> Vec<String> {
    let place = world.path().to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let words = fs::read_to_string(process.path().join("cmdline")).ok()?;
            words.contains(&place).then(|| words.replace('\0', " "))
        })
        .collect()
}

/// A run whose command writes without end; its supervisor's children are pid 1 and the broker.
fn writing(world: &World) -> (palisade_testkit::Running, Vec<u32>) {
    let script =
        "mkfifo pipe; (echo > pipe) & echo ready; while :; do echo x > file || exit 3; done";
    let run = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).spawn();
    run.wait_for_stdout("ready");
    let processes = below(&run);
    (run, processes)
}

/// The child of the supervisor that is not the sandbox's pid 1.
fn broker_of(supervisor: u32) -> Pid {
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let children = fs::read_to_string(children).unwrap();
    let pid_inside = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("NSpid:")).unwrap().to_owned();
        line.split_whitespace().count() - 1
    };
    // One number for each pid namespace it is in.
    let outermost = children.split_whitespace().map(pid_inside).min().unwrap();
    let found = children.split_whitespace().find(|pid| pid_inside(pid) == outermost).unwrap();
    Pid::from_raw(found.parse().unwrap()).unwrap()
}

/// Proves: FS-9 undisturbed
#[test]
fn without_its_broker_a_run_ends_and_says_why() {
    let world = World::new();
    let (run, processes) = writing(&world);
    kill_process(broker_of(run.pid()), Signal::KILL).unwrap();
    let output = run.wait();
    output.assert_code(125);
    assert!(output.err().contains("the broker went away"), "{}", output.err());
    assert_eq!(output.report.unwrap()["outcome"], "failed");
    eventually("all processes gone", || !processes.iter().any(|pid| lives(*pid)));
}

/// Proves: FS-9 undisturbed, LIFE-4 crash
#[test]
fn nothing_is_left_of_the_broker_when_its_supervisor_is_killed() {
    let world = World::new();
    let (run, processes) = writing(&world);
    let broker = broker_of(run.pid());
    run.signal(Signal::KILL);
    run.wait().assert_code(137);
    let all = || processes.iter().copied().chain([broker.as_raw_pid().unsigned_abs()]);
    eventually("all processes gone", || !all().any(lives));
}

/// Proves: FS-9 told, FS-9 allow-write
#[test]
fn what_was_refused_is_told_at_the_end_with_the_way_to_allow_it() {
    let world = World::new();
    world.git_init();
    let script = "echo x > .envrc; echo x >> .git/config; mkdir -p '.vscode\u{1b}[31m' .vscode; echo y > file";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run();
    let words = output.err();
    assert!(words.contains("protected writes denied: "), "{words}");
    assert!(words.contains("allow with --allow-write .envrc"), "{words}");
    let report = output.report.unwrap();
    let paths: Vec<&str> = report["protectedWrites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|write| write["path"].as_str().unwrap())
        .collect();
    for name in [".envrc", ".git/config", ".vscode"] {
        let path = world.project().join(name);
        assert!(paths.contains(&path.to_str().unwrap()), "{name}: {paths:?}");
    }
    let quiet = world.sandbox_run(["--quiet"], ["sh", "-c", "echo x > .envrc || true"]).run();
    assert!(!quiet.err().contains("refused:"), "{}", quiet.err());

    let opened = world.sandbox_run(["--allow-write", ".envrc"], ["sh", "-c", script]).run();
    assert!(!opened.err().contains("allow with --allow-write .envrc"), "{}", opened.err());
    assert_eq!(fs::read_to_string(world.project().join(".envrc")).unwrap(), "x\n");
    assert!(!world.project().join(".vscode").exists(), "one name is opened, and no other");
}

/// Streams that lead to files of the project, or of the host's, by their names in `/dev`.
///
/// Proves: FS-9 like-the-kernel
#[test]
fn a_stream_is_opened_by_its_name() {
    let world = World::new();
    let script = "(echo out > /dev/stdout; echo err >> /dev/stderr) > out 2> err
        (echo three > /dev/fd/3; echo more >> /proc/self/fd/3) 3> three
        echo here > /proc/self/cwd/four; cat out err three four";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-euc", script]).run();
    output.assert_code(0);
    assert_eq!(
        output.out(),
        "out\nerr\nmore\nhere\n".replace("more", "three\nmore"),
        "{}",
        output.err()
    );
}

/// What is held for reading only is judged by its name when it is opened for writing.
///
/// Proves: FS-9 created-names
#[test]
fn a_protected_file_is_not_written_by_way_of_a_descriptor() {
    let world = World::new();
    world.write_in_project(".envrc", "original");
    let script = "exec 3< .envrc; echo evil > /proc/self/fd/3; echo evil > /dev/fd/3; cd /; \
                  echo evil > /dev/stdin < $OLDPWD/.envrc; true";
    world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run().assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join(".envrc")).unwrap(), "original");
}
