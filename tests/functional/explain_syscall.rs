//! `sandbox explain-syscall`: the answer, the rule and the reason, as a person or a script asks.

use palisade_testkit::{Output, World};
use serde_json::Value;

use crate::inside::inside;

fn explain(world: &World, arguments: &[&str]) -> Output {
    world.sandbox(["explain-syscall"]).args(arguments).run()
}

#[track_caller]
fn assert_says(output: &Output, code: i32, words: &[&str]) {
    output.assert_code(code);
    for word in words {
        assert!(output.out().contains(word), "no {word:?} in: {}", output.out());
    }
}

/// Proves: SYS-1 explained, SYS-1 reasons
#[test]
fn a_call_is_explained_with_its_number_rule_and_reason() {
    let world = World::new();
    let x86_64 = |name| explain(&world, &["--arch", "x86_64", name]);
    assert_says(&x86_64("read"), 0, &["read, number 0 on x86_64: allowed", "group file-data"]);
    assert_says(
        &x86_64("mount"),
        1,
        &["number 165", "denied with EPERM, logged as suspicious", "group mounts", "is the wall"],
    );
    assert_says(&x86_64("clone3"), 1, &["denied with ENOSYS, not logged", "lie in memory"]);
    assert_says(
        &x86_64("ioctl"),
        2,
        &[
            "depends on its arguments",
            "if the request (argument 1) is TIOCSTI: denied with EPERM, logged as suspicious",
            "otherwise: allowed",
        ],
    );
    assert_eq!(x86_64("165").out(), x86_64("mount").out(), "by number");
    assert_eq!(x86_64("0xa5").out(), x86_64("mount").out(), "by number");
    assert_says(&x86_64("4000"), 1, &["ENOSYS", "newer than the tables"]);
    let arm = |name| explain(&world, &["--arch", "aarch64", name]);
    assert_says(&arm("mount"), 1, &["number 40 on aarch64"]);
    assert_says(&arm("open"), 1, &["aarch64 has no such call"]);
}

/// Proves: SYS-1 explained
#[test]
fn an_unknown_name_is_an_error_with_the_nearest_one() {
    let world = World::new();
    let wrong = explain(&world, &["mout"]);
    wrong.assert_code(125);
    assert!(wrong.err().contains("`mout` is not a system call; did you mean `mount`?"));
    explain(&world, &[]).assert_code(125);
}

/// Proves: SYS-1 explained, PROC-5 no-debug
#[test]
fn the_policy_that_would_be_used_is_the_one_explained() {
    let world = World::new();
    explain(&world, &["ptrace"]).assert_code(0);
    assert_says(&explain(&world, &["--no-debug", "ptrace"]), 1, &["EPERM", "debugging is on"]);
    let policy = "syscalls: { mode: BLACKLIST, syscalls: [kill] }";
    let file = world.write("list.yaml", policy);
    let listed = explain(&world, &["--policy", file.to_str().unwrap(), "kill"]);
    assert_says(&listed, 1, &["the policy's list of refused calls names it", "EPERM, logged"]);
    let none = explain(&world, &["--level", "0", "--approve-no-isolation", "a test", "mount"]);
    assert_says(&none, 0, &["no filter"]);
}

/// Proves: SYS-1 explained
#[test]
fn the_key_behind_a_rule_is_named_with_the_place_that_set_it() {
    let world = World::new();
    let under = |text: &str, call: &str| {
        let file = world.write("p.yaml", text);
        explain(&world, &["--policy", file.to_str().unwrap(), "--arch", "x86_64", call])
    };
    let no_fork = "process:\n  allowFork: false\n";
    assert_says(&under(no_fork, "fork"), 1, &["process.allowFork: set by user, ", "p.yaml:2"]);
    let listed = "syscalls:\n  mode: BLACKLIST\n  syscalls: [kill]\n";
    assert_says(&under(listed, "kill"), 1, &["syscalls.syscalls: set by user, ", "p.yaml:3"]);
    let by_preset = explain(&world, &["ptrace"]);
    assert_says(&by_preset, 0, &["process.debug: set by built-in, preset default:", "group debug"]);
    let by_group = explain(&world, &["mount"]);
    assert_says(&by_group, 1, &["group mounts"]);
    assert!(!by_group.out().contains("set by"), "{}", by_group.out());
    let json = explain(&world, &["--json", "--no-debug", "ptrace"]);
    let told: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(told["setBy"][0]["key"], "process.debug");
    assert_eq!(told["setBy"][0]["sources"][0]["file"], "--no-debug");
}

/// Proves: SYS-1 explained, PROC-2 executables
///
/// The filter does not depend on the command, so none has to be on the list.
#[test]
fn a_policy_that_lists_executables_is_explained_too() {
    let world = World::new();
    let file = world.write("p.yaml", "process: { allowedExecutables: [cat] }\n");
    let explained = explain(&world, &["--policy", file.to_str().unwrap(), "memfd_create"]);
    assert_says(&explained, 2, &["process.allowedExecutables: set by user, ", "p.yaml:1"]);
}

/// Proves: SYS-1 explained, SYS-1 namespaces
///
/// What it says is what the kernel does.
#[test]
fn the_explanation_is_what_happens() {
    let world = World::new();
    let explained = explain(&world, &["unshare"]);
    assert_says(&explained, 2, &["otherwise: denied with EPERM"]);
    let tried = inside(&world, &[], "unshare --user true");
    assert_ne!(tried.code(), 0);
    assert!(tried.err().contains("Operation not permitted"), "{}", tried.err());
}

/// Proves: SYS-1 explained
#[test]
fn programs_get_json_and_people_a_list() {
    let world = World::new();
    let output = explain(&world, &["--json", "--arch", "x86_64", "mount"]);
    output.assert_code(1);
    let mount: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(mount["name"], "mount");
    assert_eq!((&mount["number"], &mount["arch"]), (&Value::from(165), &Value::from("x86_64")));
    assert_eq!((&mount["verdict"], &mount["group"]), (&"refused".into(), &"mounts".into()));
    assert_eq!(mount["rules"][0]["answer"]["refuse"]["errno"], 1);
    assert_eq!(mount["rules"][0]["answer"]["refuse"]["notice"], "suspicious");

    let list = explain(&world, &["--list"]);
    assert_says(&list, 0, &["mounts: the mount view is the wall", "  denied: mount umount2"]);
    let list = explain(&world, &["--list", "--json"]);
    let calls: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    assert!(calls.len() > 300, "{}", calls.len());
}
