//! `/proc`, descriptors and other processes.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use palisade_testkit::{Attack, World, am_root};

use crate::host::{
    allows_tracing, has_landlock, in_own_pid_namespace, landlock_scopes_signals, standing, strings,
};

const CANARY: &str = "a canary outside";
const NO_NAMESPACES: [&str; 3] = ["--level", "1", "--no-userns"];
const ROOT_IS_NOT_OFFERED_IT: &str =
    "without a user namespace root would stay root, so that level is refused to root";

/// What a process id written to a file in the project is called.
const PID_FILE: &str = "supervisor.pid";
/// Tells its own process id and becomes the program: the id is then the supervisor's.
const TELL_PID: &str = r#"echo $$ > "$0"; exec "$@""#;

fn canary(world: &World) -> String {
    let path = world.write("outside/canary", CANARY);
    path.to_string_lossy().into_owned()
}

fn probe(world: &World, words: &[&str]) -> Vec<String> {
    [vec![world.probe()], strings(words)].concat()
}

/// The same attempt at a process that is there to be attacked, for the bare run.
fn probe_at_stand_in(world: &World, words: &[&str]) -> Vec<String> {
    [probe(world, &["stand-in", PID_FILE, "--"]), probe(world, words)].concat()
}

fn telling_its_pid(_: &World) -> Vec<String> {
    strings(&["sh", "-c", TELL_PID, PID_FILE])
}

/// Proves: FS-3 old-root-gone
#[test]
fn p01_proc_self_root_does_not_lead_outside() {
    Attack::new("P01", "read a file outside through /proc/self/root")
        .proves(&["FS-3 old-root-gone"])
        .held_by(standing(&[("mount-view", true), ("identity", am_root())]))
        .command(|world| probe(world, &["read", &format!("/proc/self/root{}", canary(world))]))
        .succeeded(|_, output| output.out().contains(CANARY))
        .check();
}

/// Proves: FS-3 old-root-gone
#[test]
fn p01_proc_1_root_does_not_lead_outside() {
    let attempt =
        |world: &World| probe(world, &["read", &format!("/proc/1/root{}", canary(world))]);
    Attack::new("P01", "read a file outside through the root of pid 1")
        .proves(&["FS-3 old-root-gone"])
        .held_by(standing(&[
            ("mount-view", true),
            ("undumpable-init", true),
            ("landlock", has_landlock()),
            ("identity", am_root()),
        ]))
        .command(attempt)
        // The host's own pid 1 is root's; in a pid namespace the attacker is pid 1 itself.
        .bare_command(move |world| [in_own_pid_namespace(), attempt(world)].concat())
        .succeeded(|_, output| output.out().contains(CANARY))
        .check();
}

/// Proves: PROC-1 host-invisible, FS-7 private-proc
#[test]
fn p01_the_supervisor_is_not_in_proc() {
    let attempt = ["read-proc", PID_FILE, "cmdline"];
    Attack::new("P01", "read the supervisor's command line")
        .proves(&["PROC-1 host-invisible", "FS-7 private-proc"])
        .held_by(&["private-proc"])
        .surroundings(telling_its_pid)
        .command(move |world| probe(world, &attempt))
        .bare_command(move |world| probe_at_stand_in(world, &attempt))
        .succeeded(|_, output| output.out().starts_with("done"))
        .check();
}

/// Copies a program and becomes the copy.
const BECOME_COPY: &str = r#"cp "$1" "$0"; copy=$0; shift; exec "$copy" "$@""#;

/// Proves: PROC-6 sealed-binary
#[test]
fn p02_the_runtime_is_out_of_reach_through_proc_exe() {
    let runtime = |world: &World| world.outside().join("runtime");
    Attack::new("P02", "open the sandbox's own program for writing")
        .proves(&["PROC-6 sealed-binary"])
        .held_by(standing(&[
            ("undumpable-init", true),
            ("landlock", has_landlock()),
            ("identity", am_root()),
        ]))
        // A copy that belongs to the caller, as `cargo install` leaves it.
        .surroundings(move |world| {
            let copy = runtime(world).to_string_lossy().into_owned();
            [strings(&["sh", "-c", BECOME_COPY]), vec![copy]].concat()
        })
        .command(|world| probe(world, &["reach-executable", "/proc/1/exe"]))
        .bare_command(|world| probe(world, &["reach-executable", "/proc/self/exe"]))
        .succeeded(move |world, output| {
            let inode = fs::metadata(runtime(world)).unwrap().ino();
            output.out().contains(&format!("inode {inode}\n"))
        })
        .check();
}

/// Leaves a directory open and becomes the program.
const LEAK: &str = r#"exec 9<"$0"; exec "$@""#;

fn leaking_a_directory(world: &World) -> Vec<String> {
    let directory = world.outside().to_string_lossy().into_owned();
    [strings(&["sh", "-c", LEAK]), vec![directory]].concat()
}

/// Proves: PROC-6 no-leaked-fds
#[test]
fn p03_a_leaked_directory_can_not_be_entered() {
    Attack::new("P03", "enter a directory the caller left open and read there")
        .proves(&["PROC-6 no-leaked-fds"])
        .held_by(&["closed-descriptors"])
        .prepare(|world| {
            canary(world);
        })
        .surroundings(leaking_a_directory)
        .command(|world| probe(world, &["read-by-descriptor", "canary"]))
        .succeeded(|_, output| output.out().contains(CANARY))
        .check();
}

/// The form of CVE-2024-21626: the working directory itself is named by a leaked descriptor.
///
/// Proves: PROC-8 working-directory
#[test]
fn p03_a_leaked_directory_is_no_working_directory() {
    for directory in ["/proc/self/fd/9", "/proc/self/fd/9/../.."] {
        let world = World::new();
        canary(&world);
        let output = world
            .sandbox_run(["--cwd", directory], probe(&world, &["read", "canary"]))
            .started_by(&leaking_a_directory(&world))
            .run();
        assert_ne!(output.code(), 0, "{directory}: {}", output.out());
        assert!(!output.out().contains(CANARY), "{directory}: {}", output.out());
    }
}

/// Proves: PROC-6 no-leaked-fds
#[test]
fn p04_no_descriptor_but_the_three_is_open() {
    Attack::new("P04", "find open descriptors of the caller's")
        .proves(&["PROC-6 no-leaked-fds"])
        .held_by(&["closed-descriptors"])
        .surroundings(leaking_a_directory)
        .command(|world| probe(world, &["descriptors"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .check();
}

/// Files that make the host's kernel run a program or reboot; which of them exist depends on how it
/// was built.
fn host_switches() -> impl Iterator<Item = &'static str> {
    ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register"]
        .into_iter()
        .filter(|path| Path::new(path).exists())
}

/// Proves: FS-7 proc-sys-read-only
#[test]
fn p05_switches_of_the_host_are_on_a_read_only_mount() {
    for path in host_switches() {
        Attack::new("P05", "find a switch of the host on a writable mount")
            .proves(&["FS-7 proc-sys-read-only"])
            .held_by(&["private-proc"])
            .command(move |world| probe(world, &["writable-mount", path]))
            .succeeded(|_, output| output.out().starts_with("done"))
            .contained(|_, output| output.out().starts_with("refused 30 "))
            .check();
    }
}

/// Proves: FS-7 proc-sys-read-only
#[test]
fn p05_switches_of_the_host_can_not_be_opened_for_writing() {
    for path in host_switches() {
        Attack::new("P05", "open a switch of the host for writing")
            .proves(&["FS-7 proc-sys-read-only"])
            .only_as_root("they are root's own files on the host")
            .held_by(&["private-proc", "identity"])
            // Opened and never written: in the bare run it is this machine's.
            .command(move |world| probe(world, &["open-for-writing", path]))
            .succeeded(|_, output| output.out().starts_with("done"))
            .check();
    }
}

/// Proves: FS-7 sys-read-only
#[test]
fn p05_the_hosts_sys_is_not_there() {
    Attack::new("P05", "find /sys on a writable mount")
        .proves(&["FS-7 sys-read-only"])
        .held_by(&["mount-view", "read-only-mounts"])
        .command(|world| probe(world, &["writable-mount", "/sys/kernel"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// Since 5.17 the kernel lets only the initial user namespace set a `release_agent`, so the attack
/// ends where the layers still decide: at a hierarchy of its own.
///
/// Proves: SYS-1 mounting
#[test]
fn p06_no_control_group_hierarchy_can_be_mounted() {
    Attack::new("P06", "mount a control group hierarchy for its release_agent")
        .proves(&["SYS-1 mounting"])
        .held_by(standing(&[("seccomp", true), ("landlock", has_landlock())]))
        .prepare(|world| fs::create_dir(world.project().join("hierarchy")).unwrap())
        .command(|world| probe(world, &["mount-cgroup", "hierarchy"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

const TAKE_OVER: [&str; 3] = ["trace", "write-memory", "steal-descriptor"];

/// Proves: PROC-5 supervisor
#[test]
fn p07_pid_1_can_not_be_taken_over() {
    if !allows_tracing() {
        return;
    }
    for way in TAKE_OVER {
        Attack::new("P07", "take over the sandbox's own pid 1")
            .proves(&["PROC-5 supervisor"])
            .held_by(standing(&[("undumpable-init", true), ("landlock", has_landlock())]))
            .command(move |world| probe(world, &[way, "1"]))
            .bare_command(move |world| probe_at_stand_in(world, &[way, PID_FILE]))
            .succeeded(|_, output| output.out().starts_with("done"))
            .contained(|_, output| output.out().starts_with("refused 1 "))
            .check();
    }
}

/// With a user namespace the kernel itself keeps tracers in, whatever layer is off, so the wall is
/// shown where there is none.
///
/// Proves: PROC-5 supervisor
#[test]
fn p07_the_supervisor_can_not_be_taken_over_without_namespaces() {
    if !allows_tracing() {
        return;
    }
    for way in TAKE_OVER {
        Attack::new("P07", "take over the supervisor")
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
    for way in TAKE_OVER {
        let world = World::new();
        let output = world
            .sandbox_run([""; 0], probe(&world, &[way, PID_FILE]))
            .started_by(&telling_its_pid(&world))
            .run();
        assert!(output.out().starts_with("refused 3 "), "{way}: {}{}", output.out(), output.err());
    }
}

/// Proves: PROC-5 supervisor-signals
#[test]
fn p08_the_supervisor_can_not_be_killed() {
    let attempt = ["signal", PID_FILE, "9"];
    Attack::new("P08", "kill the supervisor")
        .proves(&["PROC-5 supervisor-signals"])
        .held_by(standing(&[
            ("pid-namespace", true),
            ("landlock", landlock_scopes_signals()),
            ("identity", am_root()),
        ]))
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
        .held_by(standing(&[
            ("pid-namespace", true),
            ("landlock", landlock_scopes_signals()),
            ("identity", am_root()),
        ]))
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
    if am_root() {
        println!("tested as an ordinary user only: {ROOT_IS_NOT_OFFERED_IT}");
        return;
    }
    let world = World::new();
    let output = world.sandbox_run(NO_NAMESPACES, probe(&world, &["outlive", "."])).run();
    output.assert_code(0);
    assert!(!daemon_is_alive(&world));
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
        .held_by(standing(&[
            ("no-new-privs", true),
            ("landlock", has_landlock()),
            ("seccomp", true),
        ]))
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
