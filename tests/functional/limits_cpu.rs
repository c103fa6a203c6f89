//! CPUs, CPU time and wall time: a quota slows down, a clock ends (RES-1, RES-2).

use palisade_testkit::{World, patiently};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;
use std::time::Duration;

use crate::inside::soon;
use crate::limits_support::{
    Over, PYTHON, assert_holder, assert_over, assert_within, ended_the_run, limit_of,
    must_be_a_group, plan, python,
};

/// Works on every CPU until its processes have used so many milliseconds together.
fn busy(milliseconds: u64) -> String {
    format!(
        "import os, time\nworkers = 2 * os.cpu_count()\nfor _ in range(workers):\n \
         if os.fork() == 0:\n  while time.process_time() * 1000 * workers < {milliseconds}: pass\n  \
         os._exit(0)\nfor _ in range(workers): os.wait()"
    )
}

/// Processor time over wall time, in thousandths.
fn share(report: &Value) -> u64 {
    let of = |key: &str| report["usage"][key].as_u64().unwrap();
    (of("cpuUserUs") + of("cpuSystemUs")) * 1000 / of("wallUs").max(1)
}

/// The CPUs this test may use.
fn usable() -> Vec<usize> {
    let mask = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect()
}

/// A tenth of a CPU: even where many others work, that is less than a fair share.
///
/// Proves: RES-1 cpu, RES-1 holder
#[test]
fn a_quota_slows_down_what_would_use_more() {
    let world = World::new();
    let idle = python(&world, &["--cpus", "1"], "");
    assert_within(&world, &idle, "cpus");
    let output = python(&world, &["--cpus", "0.1"], &busy(300));
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["outcome"], "completed", "to be slowed down is no failure");
    let limit = limit_of(&output, "cpus");
    assert_holder(&limit, "cpu", ("affinity", "sampled"));
    if limit["holder"] == "affinity" {
        // Rounded up to a whole CPU, and says so.
        assert!(limit["overshoot"].as_str().unwrap().contains("whole CPUs"), "{limit:#}");
        assert!(share(report) < 1250, "{report:#}");
    } else {
        assert!(share(report) < 200, "{report:#}");
        assert!(limit["reached"]["times"].as_u64() > Some(0), "{limit:#}");
    }
}

/// Proves: RES-1 cpu
#[test]
fn a_whole_cpu_is_held_hard_by_everybody() {
    let world = World::new();
    let flags = ["--cpus", "1"];
    let output = world.sandbox_run(flags, [PYTHON, "-c", &busy(500)]).run();
    output.assert_code(0);
    assert_holder(&limit_of(&output, "cpus"), "cpu", ("affinity", "hard"));
    let report = output.report.as_ref().unwrap();
    assert!(share(report) < 1250, "{report:#}");
}

/// Proves: RES-2 affinity
#[test]
fn only_the_named_cpus_are_used_and_no_call_widens_the_set() {
    let world = World::new();
    let usable = usable();
    let one = usable.last().unwrap().to_string();
    let script = format!(
        "import os\nprint(sorted(os.sched_getaffinity(0)))\n\
         try: os.sched_setaffinity(0, {usable:?})\nexcept OSError: pass\n\
         print(sorted(os.sched_getaffinity(0)))"
    );
    let output = world.sandbox_run(["--cpuset", &one], [PYTHON, "-c", &script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), format!("[{one}]\n[{one}]\n"), "{}", output.err());
    let limit = limit_of(&output, "cpuset");
    assert_holder(&limit, "cpuset", ("affinity", "hard"));
    assert_eq!(limit["value"], 1, "{limit:#}");
    let missing = world.sandbox_run(["--cpuset", "4000"], ["true"]).run();
    missing.assert_code(125);
    assert!(missing.err().contains("4000"), "{}", missing.err());
}

/// Proves: RES-2 cpu-time, RES-1 holder
#[test]
fn cpu_time_runs_out() {
    let world = World::new();
    let flags = ["--cpu-time", "1s"];
    let fits = python(&world, &flags, &busy(500));
    assert_within(&world, &fits, "cpu-time");
    let over = Over { name: "cpu-time", outcome: "cpu-time", code: 137, at_least: 1000 };
    for script in ["while True: pass", &busy(60_000)] {
        let world = World::new();
        let output = python(&world, &flags, script);
        assert_over(&world, &output, &over);
        assert!(ended_the_run(&output, "cpu-time"));
        let limit = limit_of(&output, "cpu-time");
        let controller = if limit["holder"] == "cgroup-v1" { "cpuacct" } else { "cpu" };
        assert_holder(&limit, controller, ("watchdog", "sampled"));
        // Where the machine is busy the supervisor waits for its turn, and so does the command.
        assert!(limit["reached"]["usage"].as_u64() < Some(4000), "{limit:#}");
    }
}

/// Short-lived children use it up too, though nobody sees them while they live.
///
/// Proves: RES-2 cpu-time
#[test]
fn cpu_time_of_children_counts() {
    let world = World::new();
    let script = "import os, time\nwhile True:\n if os.fork() == 0:\n  \
                  while time.process_time() < 0.02: pass\n  os._exit(0)\n os.wait()";
    let output = python(&world, &["--cpu-time", "1s"], script);
    let over = Over { name: "cpu-time", outcome: "cpu-time", code: 137, at_least: 1000 };
    assert_over(&world, &output, &over);
}

/// Proves: RES-2 wall-time
#[test]
fn wall_time_runs_out() {
    let world = World::new();
    let fits = world.sandbox_run(["--timeout", "10m"], ["true"]).run();
    assert_within(&world, &fits, "timeout");
    let limit = soon();
    let output = world.sandbox_run(["--timeout", &limit], ["sleep", "1000"]).run();
    let at_least = u64::try_from(patiently(Duration::from_millis(300)).as_millis()).unwrap();
    let over = Over { name: "timeout", outcome: "timeout", code: 124, at_least };
    assert_over(&world, &output, &over);
    assert!(ended_the_run(&output, "timeout"));
    assert_eq!(limit_of(&output, "timeout")["holder"], "timer");
}

/// Proves: RES-2 shown
#[test]
fn numbers_are_written_as_people_write_them() {
    let world = World::new();
    let flags = [
        ["--memory", "0.5g"],
        ["--cpus", "1.5"],
        ["--cpu-time", "2m"],
        ["--pids", "100"],
        ["--file-size", "10m"],
        ["--disk", "1g"],
        ["--timeout", "90"],
        ["--max-output", "64k"],
    ];
    let flags = [&["--best-effort-limits"][..], flags.as_flattened()].concat();
    let planned = plan(&world, &flags);
    let value = |what: &str| {
        let limits = planned["limits"].as_array().unwrap();
        limits.iter().find(|limit| limit["what"] == what).unwrap()["value"].as_u64().unwrap()
    };
    for (what, expected) in [
        ("memory", 512 << 20),
        ("cpus", 1500),
        ("cpu-time", 120_000),
        ("processes", 100),
        ("file-size", 10 << 20),
        ("disk", 1 << 30),
        ("wall-time", 90_000),
        ("output", 64 << 10),
    ] {
        assert_eq!(value(what), expected, "{what}");
    }
    assert!(!must_be_a_group("memory") || planned["group"].is_object(), "{planned:#}");
}
