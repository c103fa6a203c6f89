//! `/proc`, descriptors, and what of the host's kernel could be switched through files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use palisade_testkit::{Attack, World, am_root};

use crate::host::{
    PID_FILE, has_landlock, in_own_pid_namespace, probe, probe_at_pid_1, probe_at_stand_in,
    standing, strings, telling_its_pid,
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
        .held_by(standing(&[("mount-view", true), ("identity", am_root())]))
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
        .held_by(standing(&[
            ("mount-view", true),
            ("undumpable-init", true),
            ("landlock", has_landlock()),
            ("identity", am_root()),
        ]))
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
        .held_by(standing(&[
            ("mount-view", true),
            ("read-only-mounts", true),
            ("identity", am_root()),
        ]))
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
