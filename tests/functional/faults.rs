//! A host that runs short of something: the run fails closed with a clear line, loses nothing that was recorded, and the
//! command sees what it would see without a sandbox (LIFE-3, RES-4, AUD-1).

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use palisade_testkit::{Invocation, Output, World, am_root};
use serde_json::Value;

const NO_FLAGS: [&str; 0] = [];

/// Has a shell start it, after `setting`.
fn after(setting: &str, invocation: Invocation) -> Output {
    let words = ["sh", "-c", &format!("{setting}; exec \"$@\""), "sh"].map(str::to_owned);
    invocation.started_by(&words).run()
}

/// Its standard output goes to `to`.
fn redirected(to: &str, invocation: Invocation) -> Output {
    let words = ["sh", "-c", &format!("exec \"$@\" {to}"), "sh"].map(str::to_owned);
    invocation.started_by(&words).run()
}

fn state(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade")
}

fn report_of(output: &Output) -> &Value {
    output.report.as_ref().expect("a report")
}

/// Proves: LIFE-3 exit-code
#[test]
fn a_report_that_is_lost_at_the_end_leaves_the_commands_exit_code() {
    let world = World::new();
    for (script, code) in [("rm -r reports", 0), ("rm -r reports; exit 7", 7)] {
        fs::create_dir(world.project().join("reports")).unwrap();
        let run = ["run", "--report", "reports/r.json", "--", "sh", "-c", script];
        let output = world.sandbox(run).run();
        output.assert_code(code);
        assert!(output.err().contains("the report was not written"), "{}", output.err());
        assert!(output.err().contains("reports/r.json"), "{}", output.err());
    }
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_report_that_does_not_fit_is_known_before_anything_runs() {
    let world = World::new();
    let run = ["run", "--report", "r.json", "--", "touch", "ran"];
    // 8 blocks of 512 bytes.
    let output = after("ulimit -f 8", world.sandbox(run));
    output.assert_code(125);
    assert!(output.err().contains("r.json"), "{}", output.err());
    assert!(output.err().contains("EFBIG"), "{}", output.err());
    let left: Vec<_> = fs::read_dir(world.project()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The log has reached the caller's limit on the size of files. SIGXFSZ killed the supervisor.
///
/// Proves: AUD-1 crash, LIFE-3 own-exit-codes
#[test]
fn a_log_that_must_not_grow_stops_the_run_with_a_reason() {
    let world = World::new();
    world.sandbox_run(NO_FLAGS, ["true"]).run().assert_code(0);
    let log = state(&world).join("audit.jsonl");
    let before = fs::read(&log).unwrap();
    let output = after("ulimit -f 2", world.sandbox(["run", "--", "touch", "ran"]));
    output.assert_code(125);
    assert!(output.err().contains("EFBIG") && output.err().contains("ulimit"), "{}", output.err());
    assert!(!world.project().join("ran").exists());
    assert_eq!(fs::read(&log).unwrap(), before, "nothing is lost, and nothing half written");
    world.sandbox(["audit", "verify"]).run().assert_code(0);
    world.sandbox_run(NO_FLAGS, ["true"]).run().assert_code(0);
}

/// Proves: RES-1 rlimits, PROC-3 ignored
#[test]
fn the_command_has_the_limits_and_signals_that_its_caller_gave() {
    let world = World::new();
    let script = "ulimit -Sn; ulimit -Hn; ulimit -f; grep SigIgn /proc/self/status";
    for setting in ["ulimit -Sn 300; ulimit -f 4096", "trap '' XFSZ; ulimit -n 400"] {
        let bare = after(setting, world.bare("sh").args(["-c", script]));
        let inside = after(setting, world.sandbox(["run", "--", "sh", "-c", script]));
        inside.assert_code(0);
        assert_eq!(inside.out(), bare.out(), "{setting}");
    }
}

/// Proves: RES-2 output
#[test]
fn an_output_that_cannot_be_written_is_no_success() {
    let world = World::new();
    let capped = |script: &str| world.sandbox_run(["--max-output", "1m"], ["sh", "-c", script]);
    let full = redirected(">/dev/full", capped("echo hello"));
    full.assert_code(125);
    assert!(full.err().contains("standard output could not be written (ENOSPC)"), "{}", full.err());
    assert_eq!(report_of(&full)["outcome"], "failed");
    // A command that says so itself is believed.
    redirected(">/dev/full", capped("echo hello; exit 9")).assert_code(9);
    redirected(">/dev/null", capped("echo hello")).assert_code(0);
    // As bare: the reader is gone before the first byte, and the writer is ended for it.
    let words = ["/usr/bin/python3", "-c", NO_READER].map(str::to_owned);
    let bare = world.bare("sh").args(["-c", "sleep 0.2; echo hello"]).started_by(&words).run();
    let inside = capped("sleep 0.2; echo hello").started_by(&words).run();
    assert_eq!((bare.code(), inside.code()), (141, 141), "{}", inside.err());
}

/// Runs a program whose standard output is a pipe that nobody reads.
const NO_READER: &str = "import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
read, write = os.pipe(); os.dup2(write, 1); os.close(read); os.close(write)
os.execvp(sys.argv[1], sys.argv[1:])";

/// Proves: RES-4 fork
#[test]
fn a_command_that_was_refused_processes_did_not_succeed() {
    let world = World::new();
    let script = "import os, time
refused = 0
for _ in range(30):
    try:
        if os.fork() == 0: time.sleep(0.3); os._exit(0)
    except BlockingIOError: refused += 1
print('refused', refused)
time.sleep(0.4)";
    let flags = ["--static", "--pids", "10"];
    let output = world.sandbox_run(flags, ["/usr/bin/python3", "-c", script]).run();
    assert!(!output.out().contains("refused 0"), "{}", output.out());
    output.assert_code(137);
    assert_eq!(report_of(&output)["outcome"], "too-many-processes");
    let told = "no more processes could be started: the limit is 10";
    assert!(output.err().contains(told) && output.err().contains("--pids"), "{}", output.err());
    let few =
        world.sandbox_run(["--static", "--pids", "50"], ["/usr/bin/python3", "-c", script]).run();
    few.assert_code(0);
}

/// Proves: RES-4 disk
#[test]
fn a_command_that_filled_its_space_did_not_succeed() {
    let world = World::new();
    let script = "head -c 20M /dev/zero > /tmp/fill; sync; sleep 0.3; exit 0";
    let flags = ["--static", "--disk", "4m", "--best-effort-limits"];
    let output = world.sandbox_run(flags, ["sh", "-c", script]).run();
    output.assert_code(137);
    assert_eq!(report_of(&output)["outcome"], "disk-full", "{}", output.err());
    assert!(output.err().contains("--disk"), "{}", output.err());
}

/// Proves: GATE-6 leftovers
#[test]
fn a_run_removes_what_killed_sessions_left() {
    let world = World::new();
    let directory = state(&world).join("run");
    fs::create_dir_all(&directory).unwrap();
    // An address has room for 107 bytes.
    let held = fs::File::open(&directory).unwrap();
    let short = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let [dead, live] = ["0190-dead.sock", "0190-live.sock"].map(|name| directory.join(name));
    drop(UnixListener::bind(short.join("0190-dead.sock")).unwrap());
    let _listener = UnixListener::bind(short.join("0190-live.sock")).unwrap();
    world.sandbox_run(NO_FLAGS, ["true"]).run().assert_code(0);
    assert!(!dead.exists());
    assert!(live.exists());
}

/// Proves: LIFE-3 own-exit-codes
#[test]
fn without_descriptors_nothing_runs_and_the_reason_is_said() {
    let world = World::new();
    for files in [8, 12, 16] {
        let run = world.sandbox(["run", "--", "touch", "ran"]);
        let output = after(&format!("ulimit -n {files}"), run);
        let ran = world.project().join("ran").exists();
        match output.code() {
            0 => assert!(ran, "{files}"),
            code => {
                assert_eq!(code, 125, "{files}: {}", output.err());
                assert!(!ran, "{files}");
                assert!(output.err().contains("EMFILE"), "{files}: {}", output.err());
                assert!(output.err().contains("ulimit -n"), "{files}: {}", output.err());
            }
        }
    }
}

/// Proves: AUD-1 crash
#[test]
fn a_full_state_directory_stops_the_run_and_loses_nothing() {
    // Mounting takes root.
    if !am_root() {
        return;
    }
    let world = World::new();
    fs::create_dir_all(state(&world)).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k full {0} && \"$@\" -- true && \
         head -c 1M /dev/zero > {0}/filler; size=$(wc -c < {0}/audit.jsonl); before=$(cksum < {0}/audit.jsonl); \
         for try in 1 2 3; do \"$@\" -- touch ran$try; code=$?; done; echo second $code; test \"$before\" = \"$(head -c $size {0}/audit.jsonl | cksum)\" || echo changed; \
         rm {0}/filler; \"$@\" -- true; echo third $?; \"$1\" audit verify",
        state(&world).display()
    );
    let words = ["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned);
    let output = world.sandbox(["run"]).started_by(&words).run();
    assert!(output.out().contains("second 125\n"), "{}{}", output.out(), output.err());
    assert!(output.out().contains("third 0\nsound"), "{}{}", output.out(), output.err());
    assert!(!output.out().contains("changed"), "{}", output.out());
    assert!(output.err().contains("ENOSPC"), "{}", output.err());
    // What is left of the last block of the log has room for the beginning of a run or two.
    assert!(!world.project().join("ran3").exists());
}

/// What a shell and Python's tests look at: the status, whether a core was dumped, and the limit.
const CRASHES: &str = "import os, resource, signal
print(resource.getrlimit(resource.RLIMIT_CORE)[0] != 0)
for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM):
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), number); os._exit(0)
    status = os.waitpid(pid, 0)[1]
    print(os.WTERMSIG(status), os.WCOREDUMP(status))";

/// Proves: LIFE-3 exit-code
#[test]
fn a_crash_looks_inside_as_it_does_outside() {
    let world = World::new();
    let is_piped = fs::read("/proc/sys/kernel/core_pattern").unwrap().starts_with(b"|");
    for setting in ["ulimit -c 0", "ulimit -Sc unlimited 2>/dev/null || ulimit -Sc $(ulimit -Hc)"] {
        let python = ["/usr/bin/python3", "-c", CRASHES];
        // Where no name is guarded: see docs/policy.md for core files in the project.
        let script = format!("cd /dev/shm && exec {} -c '{}'", python[0], CRASHES);
        let inside = after(setting, world.sandbox(["run", "--", "sh", "-c", &script]));
        inside.assert_code(0);
        let bare = after(setting, world.bare(python[0]).args(&python[1..]));
        if !is_piped {
            assert_eq!(inside.out(), bare.out(), "{setting}");
        }
    }
    let status = |script: &str| world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run().code();
    assert_eq!((status("kill -SEGV $$"), status("kill -ABRT $$")), (139, 134));
}
