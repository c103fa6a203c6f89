//! `/proc`, descriptors, and what of the host's kernel could be switched through files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use palisade_testkit::{Attack, Demonstration, World, sandbox_program};

use crate::host::{
    PID_FILE, in_own_pid_namespace, may_read_kernel_log, probe, probe_at_pid_1, probe_at_stand_in,
    strings, telling_its_pid,
};

const CANARY: &str = "a canary outside";

fn canary(world: &World) -> String {
    let path = world.write("outside/canary", CANARY);
    path.to_string_lossy().into_owned()
}

/// Proves: FS-3 old-root-gone
#[test]
fn p01_proc_self_root_does_not_lead_outside() {
    Attack::new("P01", "read a file outside through /proc/self/root")
        .proves(&["FS-3 old-root-gone"])
        .held_by(&["mount-view", "identity"])
        .command(|world| probe(world, &["read", &format!("/proc/self/root{}", canary(world))]))
        .succeeded(|_, output| output.out().contains(CANARY))
        .check();
}

/// Proves: FS-3 old-root-gone
#[test]
fn p01_proc_1_root_does_not_lead_outside() {
    let path = |world: &World| format!("/proc/1/root{}", canary(world));
    Attack::new("P01", "read a file outside through the root of pid 1")
        .proves(&["FS-3 old-root-gone"])
        .held_by(&["mount-view", "undumpable-init", "landlock", "identity"])
        .command(move |world| probe_at_pid_1(world, &["read", &path(world)]))
        // The host's own pid 1 is root's; in a pid namespace the attacker is pid 1 itself.
        .bare_command(move |world| {
            [in_own_pid_namespace(), probe(world, &["read", &path(world)])].concat()
        })
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

/// What somebody typed behind `sandbox run` may hold a password.
///
/// Proves: PROC-1 host-invisible
#[test]
fn p01_pid_1_does_not_tell_what_was_typed() {
    const PASSWORD: &str = "typed-and-secret";
    Attack::new("P01", "read the caller's command line from pid 1")
        .proves(&["PROC-1 host-invisible"])
        .held_by(&["undumpable-init"])
        .flags(|_| {
            let upstream = format!("http://somebody:{PASSWORD}@proxy.example:3128");
            strings(&["--allow-host", "web.example", "--upstream-proxy", &upstream])
        })
        .command(|_| strings(&["cat", "/proc/1/cmdline"]))
        .bare_command(|_| strings(&["sh", "-c", "cat /proc/$$/cmdline", PASSWORD]))
        .succeeded(|_, output| output.out().contains(PASSWORD))
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
        .held_by(&["undumpable-init", "landlock", "identity"])
        // A copy that belongs to the caller, as `cargo install` leaves it.
        .surroundings(move |world| {
            let copy = runtime(world).to_string_lossy().into_owned();
            [strings(&["sh", "-c", BECOME_COPY]), vec![copy]].concat()
        })
        .command(|world| probe_at_pid_1(world, &["reach-executable", "/proc/1/exe"]))
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
fn p03_a_leaked_directory_cannot_be_entered() {
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
    let shown = Demonstration::of(
        "P03",
        "name a leaked descriptor as the working directory",
        "the working directory is resolved in the view, after every descriptor is closed",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    canary(&world);
    let enter = ["-c", "cd /proc/self/fd/9 && cat canary"];
    let bare = world.bare("sh").args(enter).started_by(&leaking_a_directory(&world)).run();
    assert_eq!(bare.assert_code(0).out(), CANARY);
    shown.worked_bare();
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
    shown.held();
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
const HOST_SWITCHES: [&str; 4] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sysrq-trigger",
    "/proc/sys/fs/binfmt_misc/register",
];

fn at_switch(name: &str, path: &'static str) -> Attack {
    let is_there = Path::new(path).exists();
    Attack::new("P05", format!("{name}: {path}")).needs("this file in /proc", is_there)
}

/// Proves: FS-7 proc-sys-read-only
#[test]
fn p05_switches_of_the_host_are_on_a_read_only_mount() {
    for path in HOST_SWITCHES {
        at_switch("find a switch of the host on a writable mount", path)
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
fn p05_switches_of_the_host_cannot_be_opened_for_writing() {
    for path in HOST_SWITCHES {
        at_switch("open a switch of the host for writing", path)
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
fn p05_what_there_is_of_the_hosts_sys_is_read_only() {
    Attack::new("P05", "find /sys on a writable mount")
        .proves(&["FS-7 sys-read-only"])
        .held_by(&["mount-view", "read-only-mounts", "identity"])
        .command(|world| probe(world, &["writable-mount", "/sys/kernel"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 30 "))
        .check();
}

/// Proves: SYS-1 mounting
#[test]
fn p06_no_hierarchy_of_the_first_version_can_be_mounted() {
    let attempt = |world: &World| probe(world, &["mount-cgroup-v1", "hierarchy"]);
    let make = |world: &World| fs::create_dir(world.project().join("hierarchy")).unwrap();
    let world = World::new();
    make(&world);
    let command = attempt(&world);
    let may = world.bare(&command[0]).args(&command[1..]).run().code() == 0;
    Attack::new("P06", "set the release_agent of a hierarchy of the first version")
        .by_design("the user namespace: only the host's own root may name such a program (5.17)")
        .only_as_root("nobody else may without a sandbox")
        .needs("a kernel with control groups of the first version", may)
        .prepare(make)
        .command(attempt)
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
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
        .held_by(&["seccomp", "landlock"])
        .prepare(|world| fs::create_dir(world.project().join("hierarchy")).unwrap())
        .command(|world| probe(world, &["mount-cgroup", "hierarchy"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn with_token(_: &World) -> Vec<String> {
    strings(&["env", &format!("GH_TOKEN={TOKEN}")])
}

/// Proves: PROC-8 scrubbed
#[test]
fn p13_secrets_of_the_environment_stay_outside() {
    Attack::new("P13", "read a token from the environment")
        .held_by(&["env-scrub"])
        .surroundings(with_token)
        .command(|world| probe(world, &["variable", "GH_TOKEN"]))
        .succeeded(|_, output| output.out().contains(TOKEN))
        .check();
}

/// Pid 1 is a copy of the supervisor, and has its environment.
///
/// Proves: PROC-5 supervisor
#[test]
fn p13_the_environment_of_pid_1_cannot_be_read() {
    let attempt = ["read-proc", "1", "environ"];
    Attack::new("P13", "read a token from the environment of pid 1")
        .proves(&["PROC-5 supervisor"])
        .held_by(&["undumpable-init", "landlock"])
        .surroundings(with_token)
        .command(move |world| probe_at_pid_1(world, &attempt))
        .bare_command(move |world| [in_own_pid_namespace(), probe(world, &attempt)].concat())
        .succeeded(|_, output| output.out().contains(TOKEN))
        .check();
}

/// Proves: PROC-4 uts, FS-7 hostname
#[test]
fn p14_the_hosts_name_is_not_known() {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Attack::new("P14", "learn the host's name")
        .held_by(&["uts-namespace"])
        .command(|world| probe(world, &["host-name"]))
        .succeeded(move |_, output| output.out() == format!("done {name}\n"))
        .contained(|_, output| output.out() == "done sandbox\n")
        .check();
}

/// What every run has open is a way to the file itself, and the caller opened it for reading only.
///
/// Proves: FS-1 read-only
#[test]
fn p16_the_input_cannot_be_opened_again_for_writing() {
    Attack::new("P16", "open standard input again, for writing")
        .proves(&["FS-1 read-only"])
        .held_by(&["landlock", "identity"])
        .prepare(|world| {
            canary(world);
        })
        .surroundings(|world| {
            let canary = world.outside().join("canary").display().to_string();
            strings(&["sh", "-c", r#"exec "$@" < "$0""#, &canary])
        })
        .command(|world| probe(world, &["reopen-input"]))
        .succeeded(|world, _| fs::read_to_string(world.outside().join("canary")).unwrap() != CANARY)
        .check();
}

fn at_device(path: &'static str) -> Attack {
    Attack::new("P17", format!("open a device of the host: {path}"))
        .proves(&["FS-7 no-device-nodes"])
        .needs("this device, open to the caller", fs::File::open(path).is_ok())
        .command(move |world| probe(world, &["open-device", path]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 2 "))
}

/// Proves: FS-7 no-device-nodes, FS-7 minimal-dev
#[test]
fn p17_a_device_that_everybody_may_open_is_not_there() {
    at_device("/dev/kmsg")
        .needs("a kernel whose log everybody may read", may_read_kernel_log())
        .held_by(&["minimal-dev", "mount-flags"])
        .check();
}

/// Proves: FS-7 no-device-nodes, FS-7 minimal-dev
#[test]
fn p17_a_device_of_roots_is_not_there() {
    at_device("/dev/loop-control")
        .held_by(&["minimal-dev", "mount-flags", "identity"])
        .only_as_root("it is closed to everybody else")
        .check();
}

const OTHERS_SECRET: &str = "private to another sandbox";

/// Starts a sandbox that keeps something in its own `/tmp`, and then the program. Without the gate's file system, through
/// which nobody outside its user namespace gets.
const BESIDE_ANOTHER: &str = r#"
    mkfifo hold && exec 9<> hold
    "$0" run --quiet --gate notify -- sh -c 'echo "$0" > /tmp/kept; touch up; read line' "$SECRET" < hold &
    until [ -e up ]; do sleep 0.02; done
    "$@"; code=$?
    echo >&9; wait; exit $code"#;

fn beside_another(_: &World) -> Vec<String> {
    let sandbox = sandbox_program().display().to_string();
    let secret = format!("SECRET={OTHERS_SECRET}");
    strings(&["env", &secret, "sh", "-c", BESIDE_ANOTHER, &sandbox])
}

/// Proves: FS-8 read
#[test]
fn f28_another_sandbox_of_the_same_user_cannot_be_looked_into() {
    Attack::new("F28", "read another sandbox's /tmp through its root in /proc")
        .proves(&["FS-8 read"])
        .by_design("the user namespaces: one is looked into only from a namespace above it")
        .surroundings(beside_another)
        .command(|world| probe(world, &["read-through-proc", "/tmp/kept"]))
        .succeeded(|_, output| output.out().contains(OTHERS_SECRET))
        .check();
}
