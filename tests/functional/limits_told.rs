//! Who holds a limit is told, what only looks has to be accepted, and what was refused by the kernel shows in the
//! outcome (RES-1, RES-4).

use palisade_testkit::{Output, World};

use crate::limits_support::{
    Over, PYTHON, assert_holder, assert_over, assert_within, ended_the_run, limit_of,
    must_be_a_group, python,
};

/// Starts so many children that wait, and says whether it could. Those that hold a limit by counting look every
/// second at least, so it stays for longer.
pub(crate) fn forks(count: u32) -> String {
    format!(
        "import os, signal, sys, time\nrefused = False\nchildren = []\n\
         for _ in range({count}):\n try: child = os.fork()\n except OSError: refused = True; break\n \
         if child == 0: signal.pause()\n children.append(child)\n\
         if refused: time.sleep(3)\nfor child in children: os.kill(child, 9)\n\
         sys.exit(3 if refused else 0)"
    )
}

/// Proves: RES-1 pids, RES-4 fork
#[test]
fn a_command_that_fails_for_want_of_processes_is_told_as_that() {
    let world = World::new();
    let flags = ["--static", "--pids", "20"];
    let fits = world.sandbox_run(flags, [PYTHON, "-c", &forks(15)]).run();
    assert_within(&world, &fits, "pids");
    let output = world.sandbox_run(flags, [PYTHON, "-c", &forks(40)]).run();
    let over = Over { name: "pids", outcome: "too-many-processes", code: 3, at_least: 20 };
    assert_over(&world, &output, &over);
    assert!(!ended_the_run(&output, "pids"));
    assert_holder(&limit_of(&output, "pids"), "pids", ("rlimit", "hard"));
    let report = output.report.as_ref().unwrap();
    assert!(report["usage"]["peakProcesses"].as_u64() >= Some(20), "{:#}", report["usage"]);
}

/// Proves: RES-2 threads, RES-4 fork
#[test]
fn threads_that_could_not_be_started_are_told() {
    let world = World::new();
    let script = "import sys, threading, time\nstop = threading.Event()\n\
                  try:\n for _ in range(40): threading.Thread(target=stop.wait).start()\n\
                  except RuntimeError:\n time.sleep(3)\n stop.set()\n sys.exit(3)\nstop.set()";
    let flags = ["--static", "--threads"];
    let fits = world.sandbox_run([flags[0], flags[1], "60"], [PYTHON, "-c", script]).run();
    assert_within(&world, &fits, "threads");
    let output = world.sandbox_run([flags[0], flags[1], "20"], [PYTHON, "-c", script]).run();
    let over = Over { name: "threads", outcome: "too-many-processes", code: 3, at_least: 20 };
    assert_over(&world, &output, &over);
    assert_holder(&limit_of(&output, "threads"), "pids", ("rlimit", "hard"));
}

/// Proves: RES-2 open-files, RES-1 holder
#[test]
fn open_files_are_the_kernels_to_refuse() {
    let world = World::new();
    let script = "import os\nopened = 0\ntry:\n while opened < 100:\n  \
                  os.open('/dev/null', 0); opened += 1\nexcept OSError as error: print(error.errno)\n\
                  else: print('all')";
    let fits = world.sandbox_run(["--open-files", "200"], [PYTHON, "-c", script]).run();
    assert_within(&world, &fits, "open-files");
    assert_eq!(fits.out(), "all\n");
    let output = world.sandbox_run(["--open-files", "64"], [PYTHON, "-c", script]).run();
    assert_eq!(output.out(), "24\n", "{}", output.err());
    let limit = limit_of(&output, "open-files");
    assert_eq!((&limit["holder"], &limit["grip"]), (&"rlimit".into(), &"hard".into()));
    assert_eq!(limit["overshoot"], "none");
}

fn refused(world: &World, flags: &[&str]) -> Output {
    let output = world.sandbox_run(flags, ["touch", "ran"]).run();
    output.assert_code(125);
    assert!(!world.project().join("ran").exists());
    output
}

/// A group holds it hard; without one it takes a word to accept less, or none at all.
///
/// Proves: RES-1 unheld, RES-1 overshoot, RES-1 holder
#[test]
fn what_is_only_looked_at_has_to_be_accepted_or_waived() {
    for (option, value, controller) in
        [("--memory", "64m", "memory"), ("--cpu-time", "10s", "cpu"), ("--cpus", "0.5", "cpu")]
    {
        let world = World::new();
        let name = option.trim_start_matches('-');
        let plain = world.sandbox_run([option, value], ["true"]).run();
        if plain.code() == 0 {
            let limit = limit_of(&plain, name);
            assert!(limit["holder"].as_str().unwrap().starts_with("cgroup-v"), "{limit:#}");
            assert_eq!(limit["grip"], "hard");
            continue;
        }
        assert!(!must_be_a_group(controller), "{}", plain.err());
        let output = refused(&world, &[option, value]);
        let waive = format!("--waive-limit {name}");
        for words in [name, "cannot create a control group", "--best-effort-limits", &waive] {
            assert!(output.err().contains(words), "no {words} in {}", output.err());
        }
        let accepted = python(&world, &[option, value], "");
        accepted.assert_code(0);
        let limit = limit_of(&accepted, name);
        assert_eq!(limit["grip"], "sampled", "{limit:#}");
        assert_ne!(limit["overshoot"], "none", "what only looks can be passed: {limit:#}");
        let waived = world.sandbox_run([option, value, "--waive-limit", name], ["true"]).run();
        waived.assert_code(0);
        let report = waived.report.as_ref().unwrap();
        assert!(!report["limits"].to_string().contains(name), "{report:#}");
        let relaxations = report["relaxations"].to_string();
        assert!(relaxations.contains(name), "{relaxations}");
    }
}

/// Nothing limits a command at level 0 but its user's rights.
///
/// Proves: RES-1 unheld, FS-6 space
#[test]
fn without_walls_space_cannot_be_held() {
    let world = World::new();
    let flags = [
        "--level",
        "0",
        "--approve-no-isolation",
        "a test",
        "--best-effort-limits",
        "--disk",
        "8m",
    ];
    let output = refused(&world, &flags);
    assert!(output.err().contains("LEVEL_0"), "{}", output.err());
}
