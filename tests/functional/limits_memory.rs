//! Memory and swap: what fits runs, what does not is ended as a whole and told as what it was (RES-1, RES-4).

use palisade_testkit::{World, has_control_group};

use crate::limits_support::{
    MIB, Over, assert_holder, assert_over, assert_within, ended_the_run, limit_of, plan, python,
};

const LIMIT: u64 = 96 * MIB;
/// Far enough from it for the interpreter.
const FITS: u64 = 72 * MIB;
const TOO_MUCH: u64 = 104 * MIB;

const ANONYMOUS: &str = "held = b'x' * SIZE";
const TMPFS: &str = "held = open('/tmp/held', 'wb', buffering=0)\n\
                     for _ in range(SIZE >> 20): held.write(b'x' * (1 << 20))";
/// Nobody maps it: it is held by its descriptor alone.
const MEMFD: &str = "held = os.memfd_create('held')\n\
                     for _ in range(SIZE >> 20): os.write(held, b'x' * (1 << 20))";
/// None of them has much by itself.
const CHILDREN: &str = "for _ in range(8):\n if os.fork() == 0:\n  held = b'x' * (SIZE >> 3)\n  \
                        os.write(1, b'.')\n  signal.pause()";

fn filled(how: &str, size: u64) -> String {
    format!("import os, signal\nSIZE = {size}\n{how}\n")
}

fn flags() -> [String; 2] {
    ["--memory".to_owned(), LIMIT.to_string()]
}

/// Just under it runs; just over it, what is held until somebody ends it is ended.
fn bounded(how: &str) {
    let world = World::new();
    let flags = flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let fits = python(&world, &flags, &filled(how, FITS));
    assert_within(&world, &fits, "memory");
    let too_much = python(&world, &flags, &format!("{}signal.pause()", filled(how, TOO_MUCH)));
    let at_least = LIMIT - MIB;
    let over = Over { name: "memory", outcome: "out-of-memory", code: 137, at_least };
    assert_over(&world, &too_much, &over);
    assert!(ended_the_run(&too_much, "memory"));
    assert_holder(&limit_of(&too_much, "memory"), "memory", ("watchdog", "sampled"));
    assert!(too_much.err().contains("out of memory: the limit is 96m"), "{}", too_much.err());
}

/// Proves: RES-1 memory, RES-1 holder, RES-4 memory
#[test]
fn memory_of_a_process_is_bounded() {
    bounded(ANONYMOUS);
}

/// A group counts set-up too, and then pid 1 is gone before it could tell that the command started.
///
/// Proves: RES-4 memory
#[test]
fn a_limit_that_set_up_fills_is_told_as_such() {
    const GRANTS: usize = 4000;
    if !has_control_group() {
        println!("not tried: who only looks now and then may see set-up or not");
        return;
    }
    let world = World::new();
    let mut flags: Vec<String> =
        ["--memory", "4m", "--best-effort-limits"].map(String::from).into();
    for number in 0..GRANTS {
        let file = world.write(format!("outside/many/{number}/file"), "");
        flags.extend(["--ro".to_owned(), file.parent().unwrap().display().to_string()]);
    }
    let output = world.sandbox_run(flags, ["true"]).run();
    output.assert_code(137);
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "out-of-memory");
    assert!(ended_the_run(&output, "memory"));
    assert!(output.err().contains("raise it with --memory"), "{}", output.err());
}

/// Proves: RES-1 memory, RES-4 memory
#[test]
fn what_lies_in_private_files_is_memory() {
    bounded(TMPFS);
}

/// Proves: RES-1 memory, RES-4 memory
#[test]
fn memory_files_that_nobody_maps_count() {
    bounded(MEMFD);
}

/// Proves: RES-1 memory, RES-4 memory
#[test]
fn processes_are_counted_together() {
    let world = World::new();
    let flags = flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let script = format!("{}signal.pause()", filled(CHILDREN, TOO_MUCH));
    let output = python(&world, &flags, &script);
    let at_least = LIMIT - MIB;
    let over = Over { name: "memory", outcome: "out-of-memory", code: 137, at_least };
    assert_over(&world, &output, &over);
}

/// Whoever the kernel picks, the run is over: a parent that goes on without its child is not the run that was
/// asked for.
///
/// Proves: RES-4 memory
#[test]
fn a_child_that_runs_out_of_memory_ends_the_run() {
    let world = World::new();
    let flags = flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let script = format!(
        "import os, signal\nif os.fork() == 0:\n held = b'x' * {TOO_MUCH}\n signal.pause()\n\
         os.wait()\nwhile True: signal.pause()"
    );
    let output = python(&world, &flags, &script);
    let at_least = LIMIT - MIB;
    let over = Over { name: "memory", outcome: "out-of-memory", code: 137, at_least };
    assert_over(&world, &output, &over);
}

/// Proves: RES-1 swap
#[test]
fn swap_is_off_unless_it_is_asked_for() {
    let world = World::new();
    for (flags, swap) in [(&[][..], 0), (&["--swap", "32m"][..], 32 * MIB)] {
        let planned =
            plan(&world, &[&["--best-effort-limits", "--memory", "96m"][..], flags].concat());
        let limits = planned["limits"].as_array().unwrap();
        if limits[0]["holder"].as_str().unwrap().starts_with("cgroup-v") {
            assert_eq!(planned["group"]["settings"]["swap"], swap, "{planned:#}");
            assert!(limits.iter().any(|limit| limit["what"] == "swap" && limit["value"] == swap));
        } else {
            // What is swapped out counts as if it were not.
            assert_eq!(planned["watch"]["memory"], LIMIT + swap, "{planned:#}");
        }
    }
}

/// Only a group of version 2 slows anybody down before memory runs out.
///
/// Proves: RES-1 memory, RES-1 unheld
#[test]
fn the_soft_mark_slows_down_and_ends_nobody() {
    let world = World::new();
    // The interpreter needs some more than its data: a little above the mark, where it is slow but not for ever.
    let file = world.write("policy.yaml", "resources:\n  memoryHigh: 70m\n");
    let policy = file.to_str().unwrap();
    let script = filled(ANONYMOUS, 68 * MIB);
    let output = python(&world, &["--policy", policy], &script);
    let by_memory = plan(&world, &["--best-effort-limits", "--memory", "1g"]);
    if by_memory["limits"][0]["holder"] == "cgroup-v2" {
        output.assert_code(0);
        let limit = limit_of(&output, "memory-high");
        assert_eq!((&limit["holder"], &limit["grip"]), (&"cgroup-v2".into(), &"hard".into()));
        return;
    }
    output.assert_code(125);
    for words in ["resources.memoryHigh", "version 2", "--waive-limit memory-high"] {
        assert!(output.err().contains(words), "no {words} in {}", output.err());
    }
    let waived = python(&world, &["--policy", policy, "--waive-limit", "memory-high"], &script);
    waived.assert_code(0);
    let relaxations = waived.report.as_ref().unwrap()["relaxations"].to_string();
    assert!(relaxations.contains("RES-1"), "{relaxations}");
}
