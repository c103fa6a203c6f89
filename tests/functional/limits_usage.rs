//! What a run used is what it used: compared with what the kernel tells `/usr/bin/time` of the same processes (RES-3).

use crate::inside::eventually;
use palisade_testkit::{Running, World};
use serde_json::Value;

use crate::limits_support::{MIB, PYTHON};

/// Children that live for a moment, work that takes a while, and memory.
const LOAD: &str = "import os, time\n\
    for _ in range(200): os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n\
    while time.process_time() < 1.5: pass\n\
    held = b'x' * (200 << 20)\n";

/// What `time -v` said, as CPU seconds and bytes.
fn told_by_time(text: &str) -> (f64, u64) {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().to_owned()
    };
    let seconds = |name: &str| field(name).parse::<f64>().unwrap();
    let kib: u64 = field("Maximum resident set size (kbytes):").parse().unwrap();
    (seconds("User time (seconds):") + seconds("System time (seconds):"), kib * 1024)
}

fn assert_near(what: &str, ours: f64, theirs: f64) {
    let off = (ours - theirs).abs() / theirs;
    assert!(off < 0.05, "{what}: {ours} is {:.1} % off {theirs}", off * 100.0);
}

/// In the same run: two runs of one program differ by more than that.
fn compared(flags: &[&str]) -> Value {
    let world = World::new();
    let flags = ["--best-effort-limits"].iter().chain(flags);
    let output = world.sandbox_run(flags, ["/usr/bin/time", "-v", PYTHON, "-c", LOAD]).run();
    output.assert_code(0);
    let (seconds, bytes) = told_by_time(&output.err());
    let usage = output.report.as_ref().unwrap()["usage"].clone();
    let of = |key: &str| usage[key].as_u64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "far from 2^52")]
    {
        let used = (of("cpuUserUs") + of("cpuSystemUs")) as f64 / 1e6;
        assert_near("CPU time", used, seconds);
        assert_near("memory", of("peakMemoryBytes") as f64, bytes as f64);
    }
    usage
}

/// Proves: RES-3 final
#[test]
fn usage_agrees_with_time_where_limits_are_held() {
    let usage = compared(&["--memory", "1g", "--cpu-time", "1h", "--pids", "100"]);
    assert!(usage["peakProcesses"].as_u64() >= Some(2), "{usage:#}");
}

/// Proves: RES-3 final
#[test]
fn usage_agrees_with_time_where_nothing_is_limited() {
    let usage = compared(&[]);
    assert_eq!(usage["countedBy"], "processes", "{usage:#}");
}

/// Proves: RES-3 final
#[test]
fn bytes_that_went_to_the_disk_are_counted() {
    let world = World::new();
    let script = "import os\nfile = os.open('written', os.O_CREAT | os.O_WRONLY)\n\
                  for _ in range(64): os.write(file, os.urandom(1 << 17))\nos.fsync(file)\n\
                  import time; time.sleep(1.5)";
    let output =
        world.sandbox_run(["--best-effort-limits", "--memory", "1g"], [PYTHON, "-c", script]);
    let output = output.run();
    output.assert_code(0);
    let usage = &output.report.as_ref().unwrap()["usage"];
    assert!(usage["writtenBytes"].as_u64() >= Some(7 * MIB), "{usage:#}");
    assert!(usage["writes"].as_u64() > Some(0), "{usage:#}");
}

fn shown(world: &World) -> Value {
    let output = world.sandbox(["top", "--json"]).run();
    output.assert_code(0);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["runs"][0].clone()
}

/// Proves: RES-3 live
#[test]
fn what_is_used_now_is_shown_and_not_what_was_used() {
    let world = World::new();
    let script = "held = b'x' * (100 << 20)\nprint('full', flush=True)\ninput()\ndel held\n\
                  print('empty', flush=True)\ninput()";
    let mut run: Running = world
        .sandbox(["run", "--quiet", "--best-effort-limits", "--memory", "1g", "--"])
        .args([PYTHON, "-c", script])
        .keep_stdin_open()
        .spawn();
    run.wait_for_stdout("full");
    eventually("the run is announced", || !shown(&world).is_null());
    let full = shown(&world);
    run.send(b"\n");
    run.wait_for_stdout("empty");
    let empty = shown(&world);
    let bytes = |shown: &Value| shown["memoryBytes"].as_u64().unwrap();
    assert!((100 * MIB..150 * MIB).contains(&bytes(&full)), "{full:#}");
    assert!(bytes(&empty) < 60 * MIB, "{empty:#}");
    assert!(full["limits"].to_string().contains("memory"), "{full:#}");
    run.send(b"\n");
    run.wait().assert_code(0);
}
