//! A further command in a running sandbox: whatever the first one could not do, it cannot do either. Each attack here is
//! one that is known to be held in `sandbox run`, tried by a command that comes after another one (`palisade-client`).

use std::fs;

use palisade_testkit::control::interface::Event;
use palisade_testkit::{Attack, Demonstration, Session, World, client_program};

use crate::files::TO_WRITE_OUTSIDE;
use crate::host::{PID_FILE, probe, strings};
use crate::mounts;
use crate::processes::{HOLD_UP, TAKE_OVER, hold_up_of_pid_1, take_over_of_pid_1};

const UNTOUCHED: &str = "untouched";

/// Lets the attack be a further command. The bare run stays bare.
fn further(_: &World) -> Vec<String> {
    vec![client_program().to_string_lossy().into_owned()]
}

fn canary_was_written(world: &World) -> bool {
    fs::read_to_string(world.outside().join("canary")).is_ok_and(|text| text != UNTOUCHED)
}

fn write_to_the_canary(name: &str) -> Attack {
    Attack::new("P18", name)
        .surroundings(further)
        .prepare(|world| {
            world.write("outside/canary", UNTOUCHED);
        })
        .command(|world| vec![world.probe(), "write".into(), "../../outside/canary".into()])
        .succeeded(|world, _| canary_was_written(world))
}

/// Proves: FS-3 own-root
#[test]
fn p18_a_further_command_writes_nothing_outside() {
    write_to_the_canary("write outside of the project by a further command")
        .proves(&["FS-3 own-root"])
        .held_by(TO_WRITE_OUTSIDE)
        .check();
}

/// Landlock is one of the two layers that hold it.
///
/// Proves: FS-1 read-only
#[test]
fn p18_a_further_command_does_not_write_what_it_may_read() {
    write_to_the_canary(
        "write into a directory that was granted for reading, by a further command",
    )
    .proves(&["FS-1 read-only"])
    .held_by(&["read-only-mounts", "landlock"])
    .flags(|world| vec!["--ro".into(), world.outside().display().to_string()])
    .check();
}

/// Proves: SYS-1 io-uring
#[test]
fn p18_a_further_command_has_the_same_filter() {
    Attack::new("P18", "set up io_uring by a further command")
        .proves(&["SYS-1 io-uring"])
        .held_by(&["seccomp"])
        .surroundings(further)
        .command(|world| probe(world, &["io-uring"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Capabilities are one of the layers that hold it.
///
/// Proves: FS-3 locked-mounts
#[test]
fn p18_a_further_command_changes_no_mount() {
    Attack::new("P18", "take away a read-only mount by a further command, and write below it")
        .proves(&["FS-3 locked-mounts"])
        .held_by(mounts::TO_CHANGE_MOUNTS)
        .surroundings(further)
        .prepare(mounts::put_policy)
        .command(|world| mounts::attempt(world, "unmount-and-write"))
        .bare_command(|world| mounts::sealed(world, "unmount-and-write"))
        .succeeded(mounts::policy_was_written)
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: PROC-5 supervisor
#[test]
fn p18_a_further_command_does_not_take_pid_1_over() {
    for way in TAKE_OVER {
        take_over_of_pid_1("P18", "take over pid 1 by a further command", way)
            .surroundings(further)
            .check();
    }
}

/// Proves: PROC-5 pid-1
#[test]
fn p18_a_further_command_does_not_hold_pid_1_up() {
    for way in HOLD_UP {
        hold_up_of_pid_1("P18", "hold pid 1 up by a further command", way)
            .surroundings(further)
            .check();
    }
}

/// The spawner and the supervisor by their numbers on the host, which a command could guess.
///
/// Proves: PROC-1 host-invisible, PROC-5 supervisor-signals
#[test]
fn p18_the_spawner_has_no_number_inside() {
    let shown = Demonstration::of(
        "P18",
        "signal, trace or limit the spawner or the supervisor by a further command",
        "neither is in the sandbox's pid namespace, so its number names nobody",
    )
    .no_bare_run("shown by the attacks on pid 1");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let targets = [session.helper("sandbox-spawner"), session.pid()];
    for pid in targets {
        world.write_in_project(PID_FILE, pid.to_string());
        let signal = ["signal", PID_FILE, "9"];
        let attempts: [&[&str]; 5] = [
            &signal,
            &["trace", PID_FILE],
            &["write-memory", PID_FILE],
            &["steal-descriptor", PID_FILE],
            &["limit", PID_FILE],
        ];
        for words in attempts {
            let words = probe(&world, words);
            let said = session.output_of(&words);
            assert!(said.starts_with("refused 3 "), "{words:?}: {said}");
        }
    }
    // Everybody whom a signal can reach is inside, and the sandbox goes on.
    session.output_of(&strings(&["sh", "-c", "kill -9 -1"]));
    assert_eq!(session.output_of(&strings(&["echo", "still here"])), "still here\n");
    shown.held();
}

/// Before its exec the next command is a fork of the spawner, and others inside may look into it: nothing of the caller
/// may be in its memory.
///
/// Proves: PROC-5 supervisor
#[test]
fn p18_the_spawner_has_nothing_of_the_caller_in_its_memory() {
    let shown = Demonstration::of(
        "P18",
        "find the caller's secrets in the memory of a process that is about to be a command",
        "the spawner is executed with an empty environment and a memory of its own",
    )
    .only_as_root("nobody else may look into an undumpable process")
    .no_bare_run("there is no spawner");
    let Some(shown) = shown.begin() else { return };
    const SECRET: &str = "a-secret-that-is-nowhere-else";
    let world = World::new();
    let session = Session::start_with(&world, &[], &[("AWS_SECRET_ACCESS_KEY", SECRET)]);
    let holds = |pid: u32| palisade_testkit::memory_holds(pid, SECRET.as_bytes());
    assert!(holds(session.pid()), "the supervisor has it");
    assert!(!holds(session.helper("sandbox-spawner")));
    shown.held();
}

/// Proves: PROC-1 dies-together
#[test]
fn p18_nothing_outlives_the_sandbox() {
    let shown = Demonstration::of(
        "P18",
        "leave a daemon behind by a further command",
        "everybody in the pid namespace ends with pid 1, and the commands' ends are collected outside",
    )
    .no_bare_run("shown by P10");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    session.output_of(&strings(&["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo left"]));
    let inside = session.processes_inside();
    assert!(inside.len() >= 2, "{inside:?}");
    session.client.ask(&Session::end_at_once(), &[]).unwrap();
    while !matches!(session.client.next_event().unwrap(), Event::Ended { .. }) {}
    session.wait();
    let left: Vec<u32> =
        inside.into_iter().filter(|pid| palisade_testkit::is_alive(*pid)).collect();
    assert_eq!(left, [0; 0]);
    shown.held();
}
