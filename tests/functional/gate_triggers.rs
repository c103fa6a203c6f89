//! The two triggers of the gate: what each costs where nothing is decided, and that both come to the same decisions (GATE-9).

use std::fs;

use palisade_testkit::{World, gate_is_fuse};
use serde_json::Value;

use crate::gate::hidden;
use crate::inside::host_script;

/// Calls by which the gate's file system answers, and the broker receives.
const TRACED: &str = "trace=writev,ioctl";

/// Looks at and opens what was granted, so many times, without starting a program.
const WORK: &str = r#"
i=0
while [ $i -lt "$1" ]; do
    test -e src/lib && test -r /usr/bin/env && read -r line < src/lib && cd src && cd ..
    i=$((i + 1))
done
"#;

/// How often the command's work came to one of our processes.
fn interruptions(world: &World, trigger: &str, rounds: u32) -> usize {
    let trace = world.path().join("trace");
    let script = format!(
        r#"strace -f -qq -e signal=none -e {TRACED} -o "$TRACE" \
           "$PALISADE" run --quiet --gate "$TRIGGER" -- sh work "$ROUNDS""#
    );
    let run = host_script(world, &script)
        .env("TRACE", &trace)
        .env("TRIGGER", trigger)
        .env("ROUNDS", rounds.to_string());
    run.run().assert_code(0);
    let trace = fs::read_to_string(trace).unwrap();
    let is_ours =
        |line: &&str| line.contains("writev(") || line.contains("SECCOMP_IOCTL_NOTIF_RECV");
    trace.lines().filter(is_ours).count()
}

/// Over notifications the same work is seen each time, so what is counted is there to be counted.
/// Proves: GATE-9 native
#[test]
fn what_is_granted_is_used_without_one_of_our_processes() {
    let world = World::new();
    world.write_in_project("src/lib", "line\n");
    world.write_in_project("work", WORK);
    if gate_is_fuse() {
        let (few, many) = (interruptions(&world, "fuse", 2), interruptions(&world, "fuse", 200));
        assert!(many < few + 10, "{few} with 2 rounds, {many} with 200");
    }
    let (few, many) = (interruptions(&world, "notify", 2), interruptions(&world, "notify", 200));
    assert!(many > few + 198, "{few} with 2 rounds, {many} with 200");
}

/// What the command saw, and what was decided about which path.
fn decisions(
    world: &World,
    trigger: &str,
    policy: &str,
    script: &str,
) -> (String, Vec<[Value; 3]>) {
    let flags = ["--gate", trigger, "--policy", policy];
    let output = world.sandbox_run(flags, ["sh", "-c", script]).run();
    let report = output.report.as_ref().unwrap();
    let of = |list: &str| report[list].as_array().cloned().unwrap_or_default();
    let told = of("grantedPaths").into_iter().chain(of("deniedPaths"));
    let mut told: Vec<[Value; 3]> =
        told.map(|path| ["path", "access", "by"].map(|field| path[field].clone())).collect();
    told.sort_by_key(|path| path[0].to_string());
    (format!("{}{}", output.out(), output.err()), told)
}

/// Proves: GATE-9 same-decisions
#[test]
fn both_triggers_decide_alike() {
    if !gate_is_fuse() {
        eprintln!("skipped: there is only one trigger here");
        return;
    }
    let world = World::new();
    let [allowed, denied, unruled] =
        ["allowed", "denied", "unruled"].map(|name| hidden(&world, name));
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let policy = world.write(
        "rules.yaml",
        format!("filesystem:\n  rules:\n    - allow: {allowed:?}\n    - deny: {denied:?}\n"),
    );
    let policy = policy.to_string_lossy();
    let script = format!(
        "for path in {allowed} {denied} {unruled} {secret} /nothing/here; do
            cat $path; test -e $path; echo $?; cd $path; readlink $path; echo more >> $path
        done 2>&1"
    );
    let [by_fuse, by_notify] =
        ["fuse", "notify"].map(|trigger| decisions(&world, trigger, &policy, &script));
    assert_eq!(by_fuse, by_notify);
    assert!(by_fuse.0.contains("content of allowed") && !by_fuse.0.contains("content of denied"));
    assert!(by_fuse.1.iter().any(|path| path[0] == denied.as_str()), "{:?}", by_fuse.1);
}

/// Proves: GATE-9 said
#[test]
fn the_plan_says_which_trigger_was_chosen_and_why() {
    let world = World::new();
    let plan = |flags: &[&str]| {
        let arguments = [&["plan", "--full"], flags, &["--", "true"]].concat();
        let output = world.sandbox(arguments).run();
        output.assert_code(0);
        output.out().into_owned()
    };
    let chosen = plan(&["--gate", "auto"]);
    let is_fuse = chosen.contains("noticed by fuse (auto: /dev/fuse can be opened)");
    let is_notify = chosen.contains("noticed by notify (auto: /dev/fuse cannot be opened");
    assert!(is_fuse != is_notify, "{chosen}");
    let can_open = fs::File::options().read(true).write(true).open("/dev/fuse").is_ok();
    assert!(can_open || is_notify, "{chosen}");
    let asked = plan(&["--gate", "notify"]);
    assert!(asked.contains("noticed by notify (the policy says so)"), "{asked}");
}
