//! Bandwidth and operations of disks: only a control group holds them (RES-1).

use palisade_testkit::{Output, World};

use crate::limits_support::{limit_of, must_be_a_group};

/// Past the cache: the old hierarchy slows down only what its writer waits for.
fn direct(block: &str, count: u32) -> [String; 6] {
    let count = format!("count={count}");
    ["dd", "if=/dev/zero", "of=written", "oflag=direct", &format!("bs={block}"), &count]
        .map(str::to_owned)
}

fn wall_ms(output: &Output) -> u64 {
    output.report.as_ref().unwrap()["usage"]["wallUs"].as_u64().unwrap() / 1000
}

/// Whether the project lies on something that writes past the cache, and as root on a disk that is throttled.
fn can_be_slowed_down(world: &World) -> bool {
    let command = direct("4k", 1);
    must_be_a_group("io") && world.bare("dd").args(&command[1..]).run().code() == 0
}

/// What takes three seconds at that rate needs two at least, the first being had at once.
fn slowed_down(option: &str, (value, loose): (&str, &str), command: &[String]) {
    let world = World::new();
    if !can_be_slowed_down(&world) {
        eprintln!("skipped: needs root, a control group and a disk that writes past its cache");
        return;
    }
    let flags = ["--best-effort-limits", option, value];
    let slow = world.sandbox_run(flags, command).run();
    slow.assert_code(0);
    assert!(wall_ms(&slow) > 1500, "{} ms", wall_ms(&slow));
    let limit = limit_of(&slow, option.trim_start_matches('-'));
    // Writes that the kernel buffers are charged to nobody there.
    let grip = if limit["holder"] == "cgroup-v1" { "sampled" } else { "hard" };
    assert_eq!(limit["grip"], grip, "{limit:#}");
    assert!(limit["holder"].as_str().unwrap().starts_with("cgroup-v"), "{limit:#}");
    let fast = world.sandbox_run(["--best-effort-limits", option, loose], command).run();
    fast.assert_code(0);
    assert!(wall_ms(&fast) < wall_ms(&slow), "{} ms and {} ms", wall_ms(&fast), wall_ms(&slow));
}

/// Proves: RES-1 io
#[test]
fn bandwidth_is_held_for_what_is_waited_for() {
    slowed_down("--io-bandwidth", ("1m", "1g"), &direct("64k", 48));
}

/// Proves: RES-1 io
#[test]
fn operations_are_held_for_what_is_waited_for() {
    slowed_down("--iops", ("20", "100000"), &direct("4k", 60));
}

/// Proves: RES-1 io, RES-1 unheld
#[test]
fn what_nobody_can_hold_is_an_error_unless_waived() {
    let world = World::new();
    for (option, value) in [("--io-bandwidth", "1m"), ("--iops", "100")] {
        let name = option.trim_start_matches('-');
        let output = world.sandbox_run(["--best-effort-limits", option, value], ["true"]).run();
        if output.code() == 0 {
            let limit = limit_of(&output, name);
            assert!(limit["holder"].as_str().unwrap().starts_with("cgroup-v"), "{limit:#}");
            continue;
        }
        assert!(!must_be_a_group("io"), "{}", output.err());
        output.assert_code(125);
        for words in [name, "only a control group can enforce it", &format!("--waive-limit {name}")]
        {
            assert!(output.err().contains(words), "no {words} in {}", output.err());
        }
        let waived = world.sandbox_run([option, value, "--waive-limit", name], ["true"]).run();
        waived.assert_code(0);
        let report = waived.report.as_ref().unwrap();
        assert!(report["relaxations"].to_string().contains(name), "{report:#}");
    }
}
