//! Limits of a policy that the kernel holds by refusing: they bite inside, and at the number that was written.

use palisade_testkit::{Output, World};

use crate::inside::{host_script, private_mounts};
use crate::limits_support::{assert_holder, limit_of};

fn run_under(policy: &str, command: &[&str]) -> Output {
    let world = World::new();
    let file = world.write("policy.yaml", policy);
    world.sandbox_run(["--policy".as_ref(), file.as_os_str()], command).run()
}

/// Proves: FS-6 file-size, RES-1 rlimits
#[test]
fn no_file_grows_beyond_its_limit() {
    let policy = "filesystem:\n  maxFileSize: 1048576\n";
    let script = "trap '' XFSZ; head -c 1048576 /dev/zero >fits && echo fits; \
                  head -c 1048577 /dev/zero >big || echo stopped; wc -c <big";
    let output = run_under(policy, &["bash", "-c", script]);
    output.assert_code(0);
    assert_eq!(output.out(), "fits\nstopped\n1048576\n", "{}", output.err());
}

/// Proves: RES-2 open-files, RES-1 rlimits
#[test]
fn no_process_opens_more_files_than_allowed() {
    let policy = "resources:\n  maxFileDescriptors: 32\n";
    let script = "import os\nfds=[]\ntry:\n while len(fds)<1000: fds.append(os.open('/dev/null',0))\n\
                  except OSError as e: print(e.errno, fds[-1])";
    let output = run_under(policy, &["/usr/bin/python3", "-c", script]);
    output.assert_code(0);
    assert_eq!(output.out(), "24 31\n", "{}", output.err());
}

/// Counts children until fork fails; the interpreter itself is one of the twenty.
const FORKS: &str = "import os,signal\nchildren=[]\ntry:\n while len(children)<500:\n  \
                     child=os.fork()\n  if child==0: signal.pause()\n  children.append(child)\n\
                     except OSError as e: print(e.errno, len(children))\n\
                     [os.kill(child,9) for child in children]";

/// Static, for an exact count: in dynamic mode one of them is the keeper's, once something was touched.
const TWENTY: &str = "mode: static\nprocess:\n  maxProcesses: 20\n";

/// A run that was refused a process says so and does not end as a success. Where no control group counts the refusals, a
/// moment at the limit may go unseen.
fn assert_told_of_the_limit(output: &Output) {
    let is_told = output.err().contains("no more processes could be started");
    output.assert_code(if is_told { 137 } else { 0 });
    let by_group = output.report.as_ref().unwrap().to_string().contains("cgroup-v");
    assert!(is_told || !by_group, "{}", output.err());
}

/// Proves: PROC-2 processes
#[test]
fn the_keeper_takes_one_of_them_and_adds_none() {
    let policy = "process:\n  maxProcesses: 20\n";
    let output = run_under(policy, &["/usr/bin/python3", "-c", FORKS]);
    assert_told_of_the_limit(&output);
    assert!(["11 18\n", "11 19\n"].contains(&output.out().as_ref()), "{}", output.out());
}

/// Proves: PROC-2 processes, RES-1 rlimits, RES-1 pids
#[test]
fn no_more_processes_than_allowed() {
    let output = run_under(TWENTY, &["/usr/bin/python3", "-c", FORKS]);
    assert_told_of_the_limit(&output);
    assert_eq!(output.out(), "11 19\n", "{}", output.err());
}

/// The count is the sandbox's own: what else its user runs does not use it up.
///
/// Proves: PROC-2 processes
#[test]
fn two_sandboxes_count_their_processes_apart() {
    let world = World::new();
    let file = world.write("policy.yaml", TWENTY);
    let crowd = "for i in $(seq 15); do sleep 1000 & done; echo ready; read -r _; kill $(jobs -p)";
    let other = world
        .sandbox_run(["--policy".as_ref(), file.as_os_str()], ["bash", "-c", crowd])
        .keep_stdin_open()
        .spawn();
    other.wait_for_stdout("ready");
    let output = run_under(TWENTY, &["/usr/bin/python3", "-c", FORKS]);
    assert_eq!(output.out(), "11 19\n", "{}", output.err());
    other.wait().assert_code(0);
}

/// Proves: RES-2 threads, PROC-2 threads
#[test]
fn threads_are_counted_too() {
    let script = "import threading\nstop=threading.Event()\nstarted=0\ntry:\n \
                  while started<200:\n  threading.Thread(target=stop.wait,daemon=True).start()\n  \
                  started+=1\nexcept RuntimeError: print(started)\nstop.set()";
    let output = run_under(
        "mode: static\nresources:\n  maxThreads: 12\n",
        &["/usr/bin/python3", "-c", script],
    );
    assert_told_of_the_limit(&output);
    assert_eq!(output.out(), "11\n", "{}", output.err());
}

/// Proves: RES-1 holder
#[test]
fn the_report_names_who_held_the_limits() {
    let output = run_under("process:\n  maxProcesses: 20\n", &["true"]);
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    let promises = report["promises"].as_array().unwrap();
    let promised = promises.iter().find(|promise| promise["id"] == "PROC-2").unwrap();
    let limit = limit_of(&output, "pids");
    assert_holder(&limit, "pids", ("rlimit", "hard"));
    let layer = if limit["holder"] == "rlimit" { "rlimits" } else { "cgroup" };
    assert_eq!(promised["layers"], serde_json::json!([layer]), "{report:#}");
}

/// With the option, its key and what would do.
///
/// Proves: RES-1 holder, RES-2 open-files
#[test]
fn a_limit_with_which_nothing_could_start_says_what_is_needed() {
    let world = World::new();
    for (option, value, words) in [
        ("--memory", "1", "`resources.maxMemory` (1) is too small to start a sandbox; at least 4m"),
        ("--open-files", "3", "`resources.maxFileDescriptors` (3) is too small"),
    ] {
        let output = world.sandbox_run([option, value], ["touch", "ran"]).run();
        output.assert_code(125);
        let told = format!("{option}: {words}");
        assert!(output.err().contains(&told), "no {told} in {}", output.err());
    }
    assert!(!world.project().join("ran").exists());
    world.sandbox_run(["--open-files", "16"], ["true"]).run().assert_code(0);
}

/// Proves: RES-2 open-files
#[test]
fn more_open_files_than_the_caller_may_have_are_refused_with_both_numbers() {
    let world = World::new();
    let script = "ulimit -n 512; \"$PALISADE\" run --open-files 512 -- sh -c 'ulimit -n'; \
                  exec \"$PALISADE\" run --open-files 513 -- true";
    let output = host_script(&world, script).run();
    output.assert_code(125);
    assert_eq!(output.out(), "512\n", "{}", output.err());
    let told = "resources.maxFileDescriptors (--open-files) is 513, which exceeds this process's \
                own hard limit of 512";
    assert!(output.err().contains(told), "{}", output.err());
}

/// Root is told that it is not a matter of rights.
///
/// Proves: RES-1 unheld
#[test]
fn groups_on_a_read_only_file_system_are_told_as_that() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let script = "grep -E ' - cgroup2? ' /proc/self/mountinfo | cut -d' ' -f5 | while read -r at; do \
                  mount -o remount,bind,ro \"$at\"; done; exec \"$PALISADE\" run --memory 64m -- true";
    let output = private_mounts(&world, script).run();
    output.assert_code(125);
    assert!(output.err().contains("is on a read-only file system"), "{}", output.err());
}

/// Proves: POL-7 presets
#[test]
fn a_tool_that_no_policy_knows_is_run_under_the_preset_of_all_and_said_to_be() {
    let flags = ["--tool", "nosuch", "--best-effort-limits", "--waive-limit", "disk"];
    let output = World::new().sandbox_run(flags, ["true"]).run();
    let told = "no policy declares the tool `nosuch`: it gets the preset `tool`";
    assert!(output.err().contains(told), "{}", output.err());
}
