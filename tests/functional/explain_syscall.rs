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
        &["number 165", "refused with EPERM, logged as suspicious", "group mounts", "is the wall"],
    );
    assert_says(&x86_64("clone3"), 1, &["refused with ENOSYS, not logged", "lie in memory"]);
    assert_says(
        &x86_64("ioctl"),
        2,
        &[
            "depends on its arguments",
            "if the request (argument 1) is TIOCSTI: refused with EPERM, logged as suspicious",
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

/// Proves: SYS-1 explained, SYS-1 namespaces
///
/// What it says is what the kernel does.
#[test]
fn the_explanation_is_what_happens() {
    let world = World::new();
    let explained = explain(&world, &["unshare"]);
    assert_says(&explained, 2, &["otherwise: refused with EPERM"]);
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
    assert_says(&list, 0, &["mounts: the mount view is the wall", "  refused: mount umount2"]);
    let list = explain(&world, &["--list", "--json"]);
    let calls: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    assert!(calls.len() > 300, "{}", calls.len());
}
