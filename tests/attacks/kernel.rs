//! The kernel's surface: what the filter and the namespaces keep away from the command.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use palisade_testkit::{Attack, Demonstration, World};

use crate::host::{may_read_kernel_log, probe, strings};
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

/// An attempt that the filter alone refuses, with this errno.
fn refused_by_filter(
    id: &'static str,
    name: impl Into<String>,
    clauses: &'static [&'static str],
    attempt: &'static str,
    errno: i32,
) {
    Attack::new(id, name)
        .proves(clauses)
        .held_by(&["seccomp"])
        .command(move |world| probe(world, &[attempt]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(move |_, output| output.out().starts_with(&format!("refused {errno} ")))
        .check();
}

const EPERM: i32 = 1;
const ENOSYS: i32 = 38;
/// The probe's word for `EAFNOSUPPORT`.
const REFUSED_FAMILY: &str = "refused 97 ";
/// 128 and SIGSYS.
#[cfg(target_arch = "x86_64")]
const KILLED_BY_FILTER: i32 = 159;

/// Proves: SYS-1 io-uring
#[test]
fn k01_io_uring_is_closed() {
    refused_by_filter("K01", "set up io_uring", &["SYS-1 io-uring"], "io-uring", EPERM);
}

/// Proves: SYS-1 architecture
#[cfg(target_arch = "x86_64")]
#[test]
fn k02_calls_of_other_architectures_kill() {
    for attempt in ["int-0x80", "x32"] {
        let bare = World::new();
        let answered = bare.bare(bare.probe()).arg(attempt).run().code() == 0;
        Attack::new(
            "K02",
            format!("call the kernel as a program of another architecture: {attempt}"),
        )
        .needs("a kernel with a gate for 32-bit programs", answered || attempt == "x32")
        .proves(&["SYS-1 architecture"])
        .held_by(&["seccomp"])
        .command(move |world| probe(world, &[attempt]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.code() == KILLED_BY_FILTER)
        .check();
    }
}

/// Proves: SYS-1 namespaces
#[test]
fn k03_no_new_namespace_by_clone3() {
    refused_by_filter(
        "K03",
        "a child in a new user namespace by clone3",
        &["SYS-1 namespaces"],
        "clone3-namespace",
        ENOSYS,
    );
}

/// Proves: SYS-1 namespaces
#[test]
fn k03_no_new_namespace_by_unshare() {
    refused_by_filter(
        "K03",
        "enter a new user namespace by unshare",
        &["SYS-1 namespaces"],
        "unshare-namespace",
        EPERM,
    );
}

/// Asking for a family makes the kernel load its module, which stays: without a sandbox only those are
/// tried that are there already.
///
/// Proves: SYS-1 socket-families
#[test]
fn k04_rare_sockets_of_this_kernel_are_closed() {
    let families = fs::read_to_string("/proc/net/protocols").unwrap();
    let protocols = fs::read_to_string("/proc/net/netlink").unwrap();
    let has_family = |name: &str| families.lines().any(|line| line.starts_with(name));
    let has_protocol =
        |number: &str| protocols.lines().any(|line| line.split_whitespace().nth(1) == Some(number));
    let there = [
        ("netlink-xfrm", has_protocol("6")),
        ("netlink-kobject-uevent", has_protocol("15")),
        ("netlink-generic", has_protocol("16")),
        ("alg", has_family("ALG ")),
        ("vsock", has_family("AF_VSOCK ")),
    ];
    for (name, is_there) in there {
        Attack::new("K04", format!("open a socket of a rare family: {name}"))
            .needs("a kernel that has loaded this family", is_there)
            .proves(&["SYS-1 socket-families"])
            .held_by(&["seccomp"])
            .command(move |world| probe(world, &["rare-socket", name]))
            .succeeded(|_, output| output.out().starts_with("done"))
            .contained(|_, output| output.out().starts_with(REFUSED_FAMILY))
            .check();
    }
}

/// Proves: SYS-1 socket-families
#[test]
fn k04_every_rare_family_is_refused_alike() {
    let shown = Demonstration::of(
        "K04",
        "make the kernel load the code of any rare family",
        "the filter, which is asked before the kernel looks for the family",
    )
    .no_bare_run("it would load modules into the host's kernel, and they stay");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    for name in [
        "ax25",
        "packet",
        "netlink-netfilter",
        "rds",
        "can",
        "tipc",
        "bluetooth",
        "rxrpc",
        "alg",
        "vsock",
        "qipcrtr",
        "smc",
        "xdp",
    ] {
        let output = world.sandbox_run([""; 0], probe(&world, &["rare-socket", name])).run();
        assert!(output.out().starts_with(REFUSED_FAMILY), "{name}: {}", output.out());
    }
    shown.held();
}

const KEY: &str = "palisade-test-key";
const KEY_CONTENT: &str = "content-of-the-key";

fn with_session_key(world: &World) -> Vec<String> {
    probe(world, &["with-session-key", KEY, KEY_CONTENT, "--"])
}

/// Proves: SYS-1 keyring
#[test]
fn k05_the_callers_keys_cannot_be_read() {
    Attack::new("K05", "read a key of the caller's session keyring")
        .proves(&["SYS-1 keyring"])
        .held_by(&["seccomp"])
        .surroundings(with_session_key)
        .command(|world| probe(world, &["read-session-key", KEY]))
        .succeeded(|_, output| output.out().contains(KEY_CONTENT))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: SYS-1 keyring
#[test]
fn k05_no_key_is_left_for_the_next_run() {
    Attack::new("K05", "leave a key in the caller's session keyring")
        .proves(&["SYS-1 keyring"])
        .held_by(&["seccomp"])
        .surroundings(with_session_key)
        .command(|world| probe(world, &["leave-session-key", "message"]))
        .succeeded(|_, output| output.out().contains("left message"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

const MESSAGE: &str = "message-of-the-host";

/// A name that no other run on this machine has.
fn own_name(world: &World) -> String {
    world.path().file_name().unwrap().to_string_lossy().into_owned()
}

fn own_key(world: &World) -> String {
    let mut hasher = DefaultHasher::new();
    world.path().hash(&mut hasher);
    (hasher.finish() & 0x7fff_ffff).to_string()
}

fn with_queues(world: &World) -> Vec<String> {
    let name = format!("/{}", own_name(world));
    probe(world, &["with-queues", &name, &own_key(world), MESSAGE, "--"])
}

/// Proves: FS-7 private-shm
#[test]
fn k06_shared_memory_of_the_host_is_not_there() {
    let path = |world: &World| format!("/dev/shm/{}", own_name(world));
    Attack::new("K06", "read shared memory of the host")
        .proves(&["FS-7 private-shm"])
        .held_by(&["minimal-dev"])
        .surroundings(move |world| {
            probe(world, &["with-shared-memory", &path(world), MESSAGE, "--"])
        })
        .command(move |world| probe(world, &["read", &path(world)]))
        .succeeded(|_, output| output.out().contains(MESSAGE))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// Proves: PROC-4 ipc
#[test]
fn k06_system_v_queues_of_the_host_are_not_there() {
    Attack::new("K06", "receive from a System V queue of the host")
        .proves(&["PROC-4 ipc"])
        .held_by(&["ipc-namespace"])
        .surroundings(with_queues)
        .command(|world| probe(world, &["receive-system-v", &own_key(world)]))
        .succeeded(|_, output| output.out().contains(MESSAGE))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// Proves: PROC-4 ipc
#[test]
fn k06_posix_queues_of_the_host_are_not_there() {
    Attack::new("K06", "receive from a POSIX queue of the host")
        .proves(&["PROC-4 ipc"])
        .held_by(&["ipc-namespace"])
        .surroundings(with_queues)
        .command(|world| probe(world, &["receive-posix", &format!("/{}", own_name(world))]))
        .succeeded(|_, output| output.out().contains(MESSAGE))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// Proves: SYS-1 blocked-list
#[test]
fn k11_tools_of_kernel_exploits_are_closed() {
    let calls = ["call-setns", "call-chroot", "call-mount", "call-umount", "set-clock", "fanotify"];
    for attempt in ["bpf", "userfaultfd", "perf-event", "fsopen"].into_iter().chain(calls) {
        refused_by_filter(
            "K11",
            format!("reach a part of the kernel that exploits are made with: {attempt}"),
            &["SYS-1 blocked-list"],
            attempt,
            EPERM,
        );
    }
}

/// Where the kernel has modules or kexec it asks for a capability of the host's, which no layer
/// being off hands out; where it has none it answers `ENOSYS`. Inside neither question is reached.
///
/// Proves: SYS-1 blocked-list
#[test]
fn k11_code_cannot_be_loaded_into_the_kernel() {
    let shown = Demonstration::of(
        "K11",
        "load code into the kernel, or another kernel",
        "the filter, and behind it the kernel itself: a user namespace gives no such capability",
    )
    .no_bare_run("it would change the host's kernel, where that has modules at all");
    let Some(shown) = shown.begin() else { return };
    for attempt in ["load-module", "unload-module", "kexec"] {
        let world = World::new();
        let output = world.sandbox_run([""; 0], probe(&world, &[attempt])).run();
        assert!(output.out().starts_with("refused 1 "), "{attempt}: {}", output.out());
    }
    shown.held();
}

/// Proves: PROC-5 no-debug
#[test]
fn k11_nothing_can_be_traced_where_debugging_is_off() {
    Attack::new("K11", "trace a child where debugging is off")
        .proves(&["PROC-5 no-debug"])
        .held_by(&["seccomp"])
        .flags(|_| strings(&["--no-debug"]))
        .command(|world| probe(world, &["trace-child"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// CVE-2024-32462: what stands where a command belongs is a command, whatever it looks like.
///
/// Proves: FS-3 strange-paths
#[test]
fn k12_a_command_named_like_an_option_is_a_command() {
    let shown = Demonstration::of(
        "K12",
        "a command that is named like an option",
        "words after `--` are the command, whatever they look like",
    )
    .no_bare_run("there is no option to mistake it for");
    let Some(shown) = shown.begin() else { return };
    for name in ["--rw", "--bind", "-h", "--level=0"] {
        let world = World::new();
        fs::rename(world.probe(), world.project().join(name)).unwrap();
        let outside = world.outside().to_string_lossy().into_owned();
        let path = format!("PATH={}", world.project().display());
        let command = [name, "arguments", "--rw", &outside, "--", "--static"];
        let output = world.sandbox_run(["--env", &path], command).run();
        output.assert_code(0);
        let literal = ["--rw", &outside, "--", "--static"];
        assert_eq!(output.out(), format!("done {literal:?}\n"), "{name}");
    }
    shown.held();
}

/// A directory named like an option is what it is granted as, and changes nothing else.
///
/// Proves: FS-3 strange-paths
#[test]
fn k12_a_path_named_like_an_option_is_a_path() {
    let shown = Demonstration::of(
        "K12",
        "a path that is named like an option",
        "paths are values, never words of another program's command line",
    )
    .no_bare_run("there is no option to mistake it for");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    let file = world.write_in_project("--level=0/file", "as it was");
    let command = ["sh", "-c", "echo changed > ./--level=0/file; cat ./--level=0/file"];
    let output = world.sandbox_run(["--overlay=--level=0"], command).run();
    output.assert_code(0);
    assert_eq!(output.out(), "changed\n");
    assert_eq!(fs::read_to_string(file).unwrap(), "as it was");
    assert_eq!(output.report.unwrap()["walls"]["level"], "LEVEL_2");
    shown.held();
}

/// Proves: SYS-1 nested-listener
#[test]
fn k10_no_second_listener() {
    refused_by_filter(
        "K10",
        "answer notifications of one's own filter",
        &["SYS-1 nested-listener"],
        "listener",
        EPERM,
    );
}

/// Proves: SYS-1 blocked-list
#[test]
fn k11_the_kernels_log_is_closed() {
    Attack::new("K11", "read the kernel's log")
        .proves(&["SYS-1 blocked-list"])
        .needs("a kernel whose log everybody may read", may_read_kernel_log())
        .held_by(&["seccomp"])
        .command(|world| probe(world, &["kernel-log"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// A program that no path leads to meets the same walls as any other.
///
/// Proves: FS-3 own-root
#[test]
fn k07_a_program_in_memory_is_inside_all_the_same() {
    const CANARY: &str = "a canary outside";
    Attack::new("K07", "run a program from memory, and read a file outside")
        .proves(&["FS-3 own-root"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(|world| {
            world.write("outside/canary", CANARY);
        })
        .command(|world| {
            let canary = world.outside().join("canary").display().to_string();
            probe(world, &["run-from-memory", "read", &canary])
        })
        .succeeded(|_, output| output.out().contains(CANARY))
        .contained(|_, output| output.out().starts_with("refused 2 "))
        .check();
}

/// A denied program is not there, neither for exec nor for whoever would read it.
///
/// Proves: FS-1 blacklist
#[test]
fn k08_a_denied_program_is_not_run_by_another() {
    for interpreter in ["sh", "dynamic loader"] {
        Attack::new("K08", format!("run a denied program by another: {interpreter}"))
            .held_by(TO_READ_WHAT_IS_HIDDEN)
            .needs("a loader at its usual place", interpreter == "sh" || loader().is_some())
            .prepare(|world| {
                world.write("outside/tools/script", "echo it ran");
                world.write("outside/tools/harmless", "");
                let program = world.outside().join("tools/echo").display().to_string();
                world.bare("cp").args(["/bin/echo", &program]).run().assert_code(0);
            })
            .flags(|world| {
                let tools = world.outside().join("tools");
                let in_tools = |name: &str| tools.join(name).display().to_string();
                let denied = [in_tools("script"), in_tools("echo")];
                let denials = denied.into_iter().flat_map(|path| ["--blacklist".into(), path]);
                ["--ro".into(), tools.display().to_string()].into_iter().chain(denials).collect()
            })
            .command(move |world| {
                let tools = world.outside().join("tools");
                match loader().filter(|_| interpreter != "sh") {
                    None => vec!["sh".into(), tools.join("script").display().to_string()],
                    Some(loader) => {
                        let program = tools.join("echo").display().to_string();
                        // The loader's own exit code for a missing file is also the sandbox's.
                        let script = r#""$@" || echo "refused by $0""#;
                        strings(&["sh", "-c", script, "loader", loader, &program, "it ran"])
                    }
                }
            })
            .succeeded(|_, output| output.out() == "it ran\n")
            .check();
    }
}

pub(crate) fn loader() -> Option<&'static str> {
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
}

const HOSTS_OWN: &str =
    "the user namespace: the kernel asks for a capability of the host's own, whatever layer is off";

/// Proves: PROC-6 capabilities-empty
#[test]
fn k13_nobody_goes_before_the_hosts_processes() {
    Attack::new("K13", "take a real-time priority")
        .by_design(HOSTS_OWN)
        .only_as_root("nobody else may without a sandbox")
        .command(|world| probe(world, &["real-time"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Proves: PROC-6 capabilities-empty
#[test]
fn k13_no_limit_can_be_raised() {
    let world = World::new();
    let may = world.bare(world.probe()).arg("raise-limit").run().code() == 0;
    Attack::new("K13", "raise a hard limit again that was lowered")
        .needs("a root that may raise limits", may)
        .by_design(HOSTS_OWN)
        .only_as_root("nobody else may without a sandbox")
        .command(|world| probe(world, &["raise-limit"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}
