//! Other processes: the supervisor, pid 1, everybody, and those that would stay or gain.

use std::fs::{File, TryLockError};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use palisade_testkit::layers::LANDLOCK_SCOPES;
use palisade_testkit::{Attack, Demonstration, World};

use crate::host::{
    PID_FILE, allows_tracing, in_own_pid_namespace, probe, probe_at_pid_1, probe_at_stand_in,
    strings, telling_its_pid,
};

const NO_NAMESPACES: [&str; 3] = ["--level", "1", "--no-userns"];
const ROOT_IS_NOT_OFFERED_IT: &str =
    "without a user namespace root would stay root, so that level is refused to root";

/// Yama would forbid it to everybody, sandbox or not.
const NO_YAMA: &str = "a kernel that lets a process trace another, as without Yama";

pub(crate) const TAKE_OVER: [&str; 3] = ["trace", "write-memory", "steal-descriptor"];
pub(crate) const HOLD_UP: [&str; 3] = ["limit", "slow-down", "pin"];

pub(crate) fn take_over_of_pid_1(id: &'static str, name: &str, way: &'static str) -> Attack {
    at_pid_1(id, name, way)
        .needs(NO_YAMA, allows_tracing())
        .proves(&["PROC-5 supervisor"])
        .held_by(&["undumpable-init", "landlock"])
}

pub(crate) fn hold_up_of_pid_1(id: &'static str, name: &str, way: &'static str) -> Attack {
    at_pid_1(id, name, way).proves(&["PROC-5 pid-1"]).held_by(&["seccomp"])
}

fn at_pid_1(id: &'static str, name: &str, way: &'static str) -> Attack {
    Attack::new(id, format!("{name}: {way}"))
        .command(move |world| probe_at_pid_1(world, &[way, "1"]))
        .bare_command(move |world| probe_at_stand_in(world, &[way, PID_FILE]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
}

/// Proves: PROC-5 supervisor
#[test]
fn p07_pid_1_cannot_be_taken_over() {
    for way in TAKE_OVER {
        take_over_of_pid_1("P07", "take over the sandbox's own pid 1", way).check();
    }
}

/// The kernel lets every process of a user change the limits and priorities of his others: pid 1 is one of them.
///
/// Proves: PROC-5 pid-1
#[test]
fn p07_pid_1_is_not_held_up() {
    for way in HOLD_UP {
        hold_up_of_pid_1("P07", "hold the sandbox's own pid 1 up", way).check();
    }
}

/// With a user namespace the kernel itself keeps tracers in, whatever layer is off, so the wall is
/// shown where there is none.
///
/// Proves: PROC-5 supervisor
#[test]
fn p07_the_supervisor_cannot_be_taken_over_without_namespaces() {
    for way in TAKE_OVER {
        Attack::new("P07", format!("take over the supervisor, without namespaces: {way}"))
            .needs(NO_YAMA, allows_tracing())
            .proves(&["PROC-5 supervisor"])
            .only_as_user(ROOT_IS_NOT_OFFERED_IT)
            .held_by(&["landlock", "undumpable-init"])
            .flags(|_| strings(&NO_NAMESPACES))
            .surroundings(telling_its_pid)
            .command(move |world| probe(world, &[way, PID_FILE]))
            .bare_command(move |world| probe_at_stand_in(world, &[way, PID_FILE]))
            .succeeded(|_, output| output.out().starts_with("done"))
            .check();
    }
}

/// Proves: PROC-5 supervisor
#[test]
fn p07_the_supervisor_does_not_exist_for_tracers() {
    let shown = Demonstration::of(
        "P07",
        "find the supervisor in order to take it over",
        "its number names nobody in the sandbox's pid namespace",
    )
    .no_bare_run("shown by the attacks that take over a stand-in");
    let Some(shown) = shown.begin() else { return };
    for way in TAKE_OVER {
        let world = World::new();
        let output = world
            .sandbox_run([""; 0], probe(&world, &[way, PID_FILE]))
            .started_by(&telling_its_pid(&world))
            .run();
        assert!(output.out().starts_with("refused 3 "), "{way}: {}{}", output.out(), output.err());
    }
    shown.held();
}

/// Proves: PROC-5 supervisor-signals
#[test]
fn p08_the_supervisor_cannot_be_killed() {
    let attempt = ["signal", PID_FILE, "9"];
    Attack::new("P08", "kill the supervisor")
        .proves(&["PROC-5 supervisor-signals"])
        .held_by(&["pid-namespace", LANDLOCK_SCOPES, "identity"])
        .surroundings(telling_its_pid)
        .command(move |world| probe(world, &attempt))
        .bare_command(move |world| probe_at_stand_in(world, &attempt))
        .succeeded(|_, output| output.status.signal() == Some(9))
        .contained(|_, output| output.out().starts_with("refused 3 "))
        .check();
}

/// Proves: PROC-5 supervisor-signals
#[test]
fn p08_a_signal_to_everyone_stays_inside() {
    Attack::new("P08", "kill every process there is")
        .proves(&["PROC-5 supervisor-signals"])
        .held_by(&["pid-namespace", LANDLOCK_SCOPES, "identity"])
        // A pid namespace around all of it: without the layers everyone of this machine would die.
        .surroundings(|world| {
            [in_own_pid_namespace(), probe(world, &["with-bystander", "--"])].concat()
        })
        .command(|world| probe(world, &["signal-everyone", "9"]))
        .succeeded(|_, output| output.out().contains("bystander killed"))
        .check();
}

/// Whether the daemon still holds its lock; lets it go, and waits until it is gone.
fn daemon_is_alive(world: &World) -> bool {
    let lock = File::open(world.project().join("alive")).unwrap();
    let alive = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
    world.write_in_project("stop", "");
    let deadline = Instant::now() + Duration::from_secs(10);
    while lock.try_lock_shared().is_err() {
        assert!(Instant::now() < deadline, "the daemon does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
    alive
}

/// Proves: PROC-1 dies-together
#[test]
fn p10_a_daemon_does_not_outlive_the_command() {
    Attack::new("P10", "leave a daemon behind")
        .proves(&["PROC-1 dies-together"])
        .held_by(&["pid-namespace"])
        .command(|world| probe(world, &["outlive", "."]))
        .succeeded(|world, _| daemon_is_alive(world))
        .contained(|_, output| output.out().starts_with("done left a daemon behind"))
        .check();
}

/// Proves: PROC-1 dies-together, PROC-7 no-userns
#[test]
fn p10_a_daemon_does_not_outlive_the_command_without_namespaces_either() {
    let shown = Demonstration::of(
        "P10",
        "leave a daemon behind where there are no namespaces",
        "the sandbox's own first process adopts every orphan and ends it",
    );
    let Some(mut shown) = shown.only_as_user(ROOT_IS_NOT_OFFERED_IT).begin() else { return };
    let world = World::new();
    world.bare(world.probe()).args(["outlive", "."]).run().assert_code(0);
    assert!(daemon_is_alive(&world));
    shown.worked_bare();
    let world = World::new();
    let output = world.sandbox_run(NO_NAMESPACES, probe(&world, &["outlive", "."])).run();
    output.assert_code(0);
    assert!(!daemon_is_alive(&world));
    shown.held();
}

/// `passwd -S` is set-user-id root, asks for no password and tells what only `/etc/shadow` knows: the
/// third word is a date, which is missing if it could not be read.
///
/// In a user namespace that maps one id only, set-user-id programs gain nothing whatever layer is
/// off, so the wall is shown where there is none.
///
/// Proves: PROC-6 no-new-privs
#[test]
fn p11_a_set_user_id_program_gains_nothing() {
    Attack::new("P11", "read the shadow file by a set-user-id program")
        .proves(&["PROC-6 no-new-privs"])
        .only_as_user("root has nothing to gain")
        .held_by(&["no-new-privs", "landlock", "seccomp"])
        .only_together("the kernel takes no filter from a process that could gain privileges")
        .flags(|_| strings(&NO_NAMESPACES))
        .command(|_| strings(&["/usr/bin/passwd", "-S"]))
        .succeeded(|_, output| output.out().split_whitespace().count() > 2)
        .check();
}

/// Proves: PROC-6 no-new-privs
#[test]
fn p11_no_new_privileges_holds_at_every_level() {
    for level in ["1", "2"] {
        let world = World::new();
        let status = ["grep", "NoNewPrivs", "/proc/self/status"];
        let output = world.sandbox_run(["--level", level], status).run();
        output.assert_code(0);
        assert_eq!(output.out(), "NoNewPrivs:\t1\n", "level {level}");
    }
}

/// Proves: PROC-5 supervisor-signals
#[test]
fn p08_the_sandboxs_own_pid_1_cannot_be_killed() {
    Attack::new("P08", "kill the process that ends the sandbox")
        .proves(&["PROC-5 supervisor-signals"])
        .held_by(&["pid-namespace", LANDLOCK_SCOPES])
        .command(|world| probe(world, &["kill-parent"]))
        .bare_command(|world| {
            let kill = probe(world, &["kill-parent"]).join(" ");
            // The pipe's reader stays until the probe, which outlives its parent, has said its last.
            strings(&["sh", "-c", &format!("{{ {kill} & wait; }} | cat"), "sh"])
        })
        // Inside, what outlives pid 1 is ended by the supervisor, perhaps before it has said so.
        .succeeded(|_, output| {
            output.out().contains("without a parent")
                || output.err().contains("the sandbox's pid 1 went away")
        })
        .check();
}
