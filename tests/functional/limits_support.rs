//! What the tests of limits share: a run under limits, who should hold them here, and what has to be told when
//! one is exceeded.

use std::fs;

use palisade_testkit::{Output, World, am_root};
use serde_json::Value;

pub(crate) const PYTHON: &str = "/usr/bin/python3";
pub(crate) const MIB: u64 = 1 << 20;

/// A Python script under limits, with whatever holds them here.
pub(crate) fn python(world: &World, flags: &[&str], script: &str) -> Output {
    let flags = ["--best-effort-limits"].iter().chain(flags);
    world.sandbox_run(flags, [PYTHON, "-c", script]).run()
}

/// What the plan says under these options.
pub(crate) fn plan(world: &World, flags: &[&str]) -> Value {
    let output = world.sandbox(["plan", "--json"]).args(flags).args(["--", "true"]).run();
    output.assert_code(0);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a report says of one limit.
#[track_caller]
pub(crate) fn limit_of(output: &Output, name: &str) -> Value {
    let report = output.report.as_ref().unwrap();
    let limits = report["limits"].as_array().unwrap();
    let found = limits.iter().find(|limit| limit["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {limits:#?}")).clone()
}

/// Root has a group of its own wherever the kernel has one to give; an ordinary user only where somebody
/// handed one over.
pub(crate) fn must_be_a_group(controller: &str) -> bool {
    am_root() && host_has(controller)
}

/// Whether a hierarchy that can be written has this controller, by its name in version 2.
fn host_has(controller: &str) -> bool {
    let old_name = if controller == "io" { "blkio" } else { controller };
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().any(|line| {
        let Some((left, right)) = line.split_once(" - ") else { return false };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let is_writable = left[5].split(',').any(|option| option == "rw");
        let has = match right[0] {
            "cgroup" => right[2].split(',').any(|option| option == old_name),
            "cgroup2" => fs::read_to_string(format!("{}/cgroup.controllers", left[4]))
                .is_ok_and(|names| names.split_whitespace().any(|name| name == controller)),
            _ => false,
        };
        is_writable && has
    })
}

/// A group holds it hard, or where there is none this one does.
#[track_caller]
pub(crate) fn assert_holder(limit: &Value, controller: &str, otherwise: (&str, &str)) {
    let holder = limit["holder"].as_str().unwrap();
    let is_group = holder.starts_with("cgroup-v");
    assert!(is_group || !must_be_a_group(controller), "root has groups here: {limit:#}");
    let expected = if is_group { (holder, "hard") } else { otherwise };
    assert_eq!((holder, limit["grip"].as_str().unwrap()), expected, "{limit:#}");
}

/// The events about limits in the world's audit log.
pub(crate) fn events(world: &World) -> Vec<Value> {
    let shown = world.sandbox(["audit", "show", "--json"]).run();
    let records = shown.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_limit = |record: &Value| record["event"] == "RESOURCE_LIMIT_EXCEEDED";
    Vec::into_iter(records).filter(is_limit).map(|record| record["details"].clone()).collect()
}

/// All went well, and nothing else is told.
#[track_caller]
pub(crate) fn assert_within(world: &World, output: &Output, name: &str) {
    output.assert_code(0);
    let limit = limit_of(output, name);
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "completed", "{limit:#}");
    assert_eq!(limit["reached"], Value::Null, "{limit:#}");
    assert_eq!(events(world), [Value::Null; 0]);
}

/// A limit that was exceeded, and what becomes of the run.
pub(crate) struct Over<'a> {
    pub(crate) name: &'a str,
    pub(crate) outcome: &'a str,
    pub(crate) code: i32,
    /// Of what was used then.
    pub(crate) at_least: u64,
}

/// Outcome, exit code, report and audit log all say what happened.
#[track_caller]
pub(crate) fn assert_over(world: &World, output: &Output, over: &Over<'_>) {
    output.assert_code(over.code);
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["outcome"], over.outcome, "{:#}", report["limits"]);
    assert_eq!(report["exitCode"], over.code, "{:#}", report["limits"]);
    let limit = limit_of(output, over.name);
    let usage = limit["reached"]["usage"].as_u64();
    assert!(usage >= Some(over.at_least), "{limit:#}");
    let event = events(world).into_iter().find(|event| event["resource"] == limit["key"]);
    let event = event.unwrap_or_else(|| panic!("not in the log: {limit:#}"));
    assert_eq!(event["limit"], limit["value"]);
    assert_eq!(event["holder"], limit["holder"]);
    assert_eq!(event["observed"].as_u64(), usage, "{event:#}");
}

/// Whether the supervisor or the kernel ended everything for this limit.
pub(crate) fn ended_the_run(output: &Output, name: &str) -> bool {
    limit_of(output, name)["reached"]["endedTheRun"] == true
}
