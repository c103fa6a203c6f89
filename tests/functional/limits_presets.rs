//! Shipped policies with limits, and the reference policy: where a control group holds everything they run as they
//! are (POL-2, POL-6, POL-7).

use palisade_testkit::{Output, World};
use serde_json::Value;

use crate::limits_support::must_be_a_group;
use crate::policy::REFERENCE;

/// Whether root has every controller that a policy could need.
fn has_every_controller() -> bool {
    let has_all = ["memory", "cpu", "pids"].iter().all(|controller| must_be_a_group(controller));
    if !has_all {
        eprintln!("skipped: needs root and control groups");
    }
    has_all
}

/// Names of what is not held hard.
fn loose(output: &Output) -> Vec<String> {
    let report = output.report.as_ref().unwrap();
    let limits = report["limits"].as_array().into_iter().flatten();
    let loose = limits.filter(|limit| limit["grip"] != "hard");
    loose.map(|limit| limit["name"].as_str().unwrap().to_owned()).collect()
}

/// Proves: POL-6 default, POL-7 presets, RES-1 holder
#[test]
fn usable_presets_run_as_they_are_where_groups_hold() {
    if !has_every_controller() {
        return;
    }
    let world = World::new();
    let listed = world.sandbox(["policy", "presets", "--json"]).run();
    let presets: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let usable = presets.as_array().unwrap().iter().filter(|preset| preset["usable"] == true);
    for name in usable.map(|preset| preset["name"].as_str().unwrap()) {
        // Its build directory is the host's: what is written there can only be counted.
        let counted: &[&str] = if name == "cargo" { &["disk"] } else { &[] };
        let output = world.sandbox_run(["--preset", name], ["git", "--version"]).run();
        output.assert_code(0);
        assert_eq!(loose(&output), counted, "{name}");
        let relaxations = output.report.as_ref().unwrap()["relaxations"].to_string();
        assert!(!relaxations.contains("RES-"), "{name}: {relaxations}");
    }
}

/// Proves: POL-6 default, POL-6 container-limits
#[test]
fn a_declared_tool_runs_as_it_is_where_groups_hold() {
    if !has_every_controller() {
        return;
    }
    let output = World::new().sandbox_run(["--tool", "bash"], ["true"]).run();
    output.assert_code(0);
    assert_eq!(loose(&output), [""; 0]);
    let report = output.report.as_ref().unwrap();
    let held = report["limits"].to_string();
    for name in ["memory", "swap", "cpus", "pids", "open-files", "timeout"] {
        assert!(held.contains(&format!("\"name\":\"{name}\"")), "no {name} in {held}");
    }
}

/// Of the C library nothing starts under it: its first calls are not on the list.
const TINY: &str = r#"
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}
void _start(void) {
    call(1, 1, (long)"ran\n", 4);
    call(231, 0, 0, 0);
}
"#;

/// The project is thrown away: the policy says nothing of one, and what is the run's own is held hard.
///
/// Proves: POL-2 appendix-policy, RES-1 holder
#[cfg(target_arch = "x86_64")]
#[test]
fn the_reference_policy_runs_what_needs_no_more_than_it_lists() {
    if !has_every_controller() {
        return;
    }
    let world = World::new();
    let source = world.write("tiny.c", TINY);
    let options = ["-nostdlib", "-static", "-fno-stack-protector", "-o", "tiny"];
    world.bare("gcc").args(options).arg(&source).run().assert_code(0);
    let policy = world.write("reference.json", REFERENCE);
    let flags = ["--policy".as_ref(), policy.as_os_str(), "--overlay".as_ref(), ".".as_ref()];
    let output = world.sandbox_run(flags, ["./tiny"]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "ran\n");
    assert_eq!(loose(&output), [""; 0]);
    let limits = output.report.as_ref().unwrap()["limits"].as_array().unwrap().len();
    // Memory brings swap with it.
    assert_eq!(limits, 8, "{:#}", output.report.as_ref().unwrap()["limits"]);
    let refused = world.sandbox_run(flags, ["/bin/true"]).run();
    assert_ne!(refused.code(), 0, "what needs more than the list has, does not run");
}
