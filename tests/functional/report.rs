//! The run report: how it ended, what it used, what held each promise (AUD-2, RES-3, ESC-2).

use std::fs;

use palisade_testkit::World;

use crate::inside::inside;

/// Proves: RES-3 final, ESC-2 observed, ESC-2 walls-stand
#[test]
fn a_report_tells_outcome_usage_and_what_held() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 5";
    let report = inside(&world, &[], script).report.unwrap();
    assert_eq!(report["outcome"], "completed");
    assert_eq!(report["exitCode"], 5);
    let used = |name: &str| report["usage"][name].as_u64().unwrap();
    assert!(used("wallUs") > 0 && used("setupUs") > 0);
    assert!(used("cpuUserUs") + used("cpuSystemUs") > 0);
    assert!(used("peakMemoryBytes") > 100_000, "{report}");
    let probes = report["selfCheck"].as_array().unwrap();
    assert!(probes.len() >= 5 && probes.iter().all(|probe| probe["ok"] == true), "{report}");
    let promises = report["promises"].as_array().unwrap();
    for id in ["FS-1", "FS-2", "FS-3", "FS-7", "PROC-1", "PROC-6", "SYS-1", "NET-1"] {
        let promise = promises.iter().find(|promise| promise["id"] == id).unwrap();
        assert_eq!(promise["planned"], "held", "{id}");
        assert!(!promise["layers"].as_array().unwrap().is_empty(), "{id}");
    }
    assert!(promises.iter().any(|promise| promise["observed"] == "held"));
    assert!(promises.iter().any(|promise| promise["observed"] == "notProbed"));
}

/// Proves: ERR-1 report, ERR-1 kinds
#[test]
fn a_report_is_written_for_what_did_not_run_too() {
    let world = World::new();
    for (flags, command, outcome, kind, code) in [
        (&["--static", "--on-ask", "allow"][..], "true", "refused", "security", 126),
        (&["--level", "9"], "true", "failed", "validation", 125),
        (&["--ro", "/no/such/path"], "true", "failed", "validation", 125),
    ] {
        let output = world.sandbox_run(flags, [command]).run();
        output.assert_code(code);
        let report = output.report.unwrap();
        assert_eq!(report["outcome"], outcome, "{flags:?}");
        assert_eq!(report["failure"]["kind"], kind, "{flags:?}");
        assert_eq!(report["exitCode"], code, "{flags:?}");
        assert!(report["failure"]["message"].is_string());
    }
    let late = inside(&world, &["--timeout", "100ms"], "sleep 60").report.unwrap();
    assert_eq!((late["outcome"].as_str(), &late["exitCode"]), (Some("timeout"), &124.into()));
    let killed = inside(&world, &[], "kill -SEGV $$").report.unwrap();
    assert_eq!((killed["outcome"].as_str(), &killed["signal"]), (Some("signalled"), &11.into()));
}

/// Proves: LIFE-3 run
#[test]
fn json_goes_to_standard_error_and_leaves_the_output_alone() {
    let world = World::new();
    let output = world.sandbox(["run", "--json", "--", "echo", "own words"]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "own words\n");
    let last = output.err().lines().last().unwrap().to_owned();
    let report: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(report["outcome"], "completed");
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_report_that_cannot_be_written_is_known_before_anything_runs() {
    let world = World::new();
    let output = world
        .sandbox(["run", "--report", "/no/such/directory/report.json", "--", "touch", "ran"])
        .run();
    output.assert_code(125);
    assert!(output.err().contains("/no/such/directory"), "{}", output.err());
    assert!(!world.project().join("ran").exists());
}

/// Proves: LIFE-3 run
#[test]
fn a_command_cannot_lead_the_report_elsewhere() {
    let world = World::new();
    let script = "rm -f report.json; ln -s ~/victim report.json";
    let victim = world.write("home/victim", "untouched");
    let output = world.sandbox(["run", "--report", "report.json", "--", "sh", "-c", script]).run();
    output.assert_code(0);
    assert!(output.err().contains("symbolic link"), "{}", output.err());
    assert_eq!(fs::read_to_string(victim).unwrap(), "untouched");
}
