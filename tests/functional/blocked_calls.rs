//! Refused system calls: who tried what, in the report and in the audit log, and the end of a run that tries too
//! much (SYS-2).

use palisade_testkit::{Output, World};
use serde_json::Value;

/// Makes a call with telling arguments so many times.
const CALL: &str = "import ctypes, sys\n\
    libc = ctypes.CDLL(None)\n\
    for _ in range(int(sys.argv[1])): libc.syscall(int(sys.argv[2]), 11, 12, 13, 14, 15, 16)\n\
    print('went on')\n";

#[cfg(target_arch = "x86_64")]
const NUMBERS: Numbers = Numbers { keyctl: 250, mount: 165, add_key: 248, personality: 135 };
#[cfg(target_arch = "aarch64")]
const NUMBERS: Numbers = Numbers { keyctl: 219, mount: 40, add_key: 217, personality: 92 };

struct Numbers {
    keyctl: u32,
    mount: u32,
    add_key: u32,
    personality: u32,
}

fn calling(world: &World, flags: &[&str], times: u32, number: u32) -> Output {
    let (times, number) = (times.to_string(), number.to_string());
    world.sandbox_run(flags, ["/usr/bin/python3", "-c", CALL, &times, &number]).run()
}

fn records(world: &World, event: &str) -> Vec<Value> {
    let shown = world.sandbox(["audit", "show", "--json"]).run();
    let records =
        shown.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    records.into_iter().filter(|record| record["event"] == event).collect()
}

/// Proves: SYS-2 logged
#[test]
fn a_refused_call_is_logged_with_everything_about_it() {
    let world = World::new();
    let output = calling(&world, &[], 3, NUMBERS.mount);
    output.assert_code(0);
    assert_eq!(output.out(), "went on\n");
    let report = output.report.as_ref().unwrap();
    let told = &report["blockedCalls"][0];
    assert_eq!((told["name"].as_str(), told["count"].as_u64()), (Some("mount"), Some(3)));
    assert_eq!(told["number"], NUMBERS.mount);
    assert!(told["executable"].as_str().unwrap().contains("python3"), "{told}");

    let logged = records(&world, "SYSCALL_BLOCKED");
    assert_eq!(logged.len(), 3);
    for record in logged {
        let details = &record["details"];
        assert_eq!(details["name"], "mount");
        assert_eq!(details["number"], NUMBERS.mount);
        assert_eq!(details["arguments"], serde_json::json!([11, 12, 13, 14, 15, 16]));
        assert_eq!(details["errno"], "EPERM");
        assert!(details["pid"].as_u64().unwrap() > 1);
        assert!(
            details["executable"].as_str().unwrap().starts_with("/usr/bin/python3"),
            "{details}"
        );
    }
}

/// Proves: SYS-2 patterns
#[test]
fn a_suspicious_call_alerts_once_for_each_name() {
    let world = World::new();
    for number in [NUMBERS.mount, NUMBERS.keyctl, NUMBERS.add_key] {
        let output = calling(&world, &[], 5, number);
        output.assert_code(0);
        assert!(output.err().contains("5 suspicious system calls denied: "), "{}", output.err());
    }
    let alerts = records(&world, "ESCAPE_ATTEMPT");
    assert_eq!(alerts.len(), 3, "{alerts:?}");
    for (alert, name) in alerts.iter().zip(["mount", "keyctl", "add_key"]) {
        let details = &alert["details"];
        assert!(details["description"].as_str().unwrap().contains(name), "{details}");
        assert_eq!(details["severity"].as_str().unwrap().to_lowercase(), "medium");
    }
}

/// What ordinary programs try is refused without a word.
///
/// Proves: SYS-2 patterns
#[test]
fn an_ordinary_refusal_is_no_alert() {
    let world = World::new();
    let output = calling(&world, &[], 3, NUMBERS.personality);
    output.assert_code(0);
    assert!(!output.err().contains("suspicious"), "{}", output.err());
    assert!(records(&world, "ESCAPE_ATTEMPT").is_empty());
}

/// Proves: SYS-2 repeated
#[test]
fn too_many_suspicious_calls_end_the_run() {
    for (policy, limit) in [(None, 100), (Some("syscalls:\n  maxBlocked: 7\n"), 7_u64)] {
        let world = World::new();
        let file = world.write("policy.yaml", policy.unwrap_or("{}"));
        let flags = ["--policy", file.to_str().unwrap()];
        let output = calling(&world, &flags, 100_000, NUMBERS.keyctl);
        output.assert_code(137);
        assert_eq!(output.out(), "", "it did not get to its end");
        let ended = format!("`syscalls.maxBlocked` is {limit}");
        assert!(output.err().contains("stopped after "), "{}", output.err());
        assert!(output.err().contains(&ended), "{}", output.err());

        let report = output.report.as_ref().unwrap();
        assert_eq!(report["outcome"], "killed");
        assert_eq!(report["endedByBlockedCalls"], limit);
        let count = report["blockedCalls"][0]["count"].as_u64().unwrap();
        assert!((limit..100_000).contains(&count), "{count}");
        let alerts = records(&world, "ESCAPE_ATTEMPT");
        let severities: Vec<String> = alerts
            .iter()
            .map(|alert| alert["details"]["severity"].as_str().unwrap().to_lowercase())
            .collect();
        assert_eq!(severities, ["medium", "high"]);
        // 200 at once, and what is added to that budget in the moment that the run lasts.
        assert!(records(&world, "SYSCALL_BLOCKED").len() <= 300);
    }
}

/// Proves: SYS-2 repeated
#[test]
fn fewer_than_that_are_borne() {
    let world = World::new();
    let file = world.write("policy.yaml", "syscalls:\n  maxBlocked: 7\n");
    let output = calling(&world, &["--policy", file.to_str().unwrap()], 6, NUMBERS.keyctl);
    output.assert_code(0);
    assert_eq!(output.out(), "went on\n");
}
