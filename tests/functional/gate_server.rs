//! What the process of the gate's file system could do if the command took it over. It reads what the command sends to it,
//! so that must be little.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use palisade_testkit::{Output, Running, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gate_filesystem::{FUSE, server, world};
use crate::inside::eventually;

const PYTHON: &str = "/usr/bin/python3";
const AT_FDCWD: i32 = -100;
const O_WRONLY: i32 = 1;

/// Only root may attach to the server.
fn world_of_root() -> Option<World> {
    world().filter(|_| rustix::process::geteuid().is_root())
}

/// Lets a process perform calls: one of no particular kind, or the server of a run.
fn inject(world: &World, process: &str, calls: &[Value]) -> Output {
    let script = world.write("scripts/inject_calls.py", include_str!("inject_calls.py"));
    let calls = calls.iter().map(Value::to_string);
    let words = [script.display().to_string(), process.to_owned()].into_iter().chain(calls);
    let output = world.bare(PYTHON).args(words).run();
    output.assert_code(0);
    output
}

fn served(world: &World) -> Running {
    let run = world.sandbox_run(FUSE, ["sh", "-c", "echo ready; read line"]);
    let run = run.keep_stdin_open().spawn();
    eventually("the server's filter", || {
        let status = |pid| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        server(&run).is_some_and(|pid| status(pid.as_raw_nonzero()).contains("Seccomp:\t2"))
    });
    run
}

/// A directory that everybody may change, with a file that everybody may change.
fn open_to_all() -> TempDir {
    // The directory of tests is open to their user alone.
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "content\n").unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    directory
}

/// Proves: SYS-1 gate-server
///
/// Root's server, with the rights it has while the command runs. Each call works in a process of no particular kind.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_server_that_was_taken_over_changes_nothing_of_the_host() {
    let Some(world) = world_of_root() else { return };
    let directory = open_to_all();
    let [file, made] = ["file", "made"].map(|name| directory.path().join(name));
    let by_link = format!("/proc/self/root{}", file.display());
    let calls = [
        json!(["openat", AT_FDCWD, file, O_WRONLY, 0]),
        json!(["mkdirat", AT_FDCWD, made, 0o777]),
        json!(["openat", AT_FDCWD, by_link, O_WRONLY, 0]),
        json!(["openat", AT_FDCWD, "/dev/zero", 0, 0]),
        json!(["unlinkat", AT_FDCWD, file, 0]),
    ];
    let run = served(&world);
    let pid = server(&run).unwrap().as_raw_nonzero().to_string();
    let taken_over = inject(&world, &pid, &calls);
    assert_eq!(
        taken_over.out().lines().collect::<Vec<_>>(),
        ["openat EROFS", "mkdirat EROFS", "openat ELOOP", "openat EACCES", "unlinkat EROFS"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "content\n");
    let bare = inject(&world, "bare", &calls);
    let works =
        |line: &str| line.split_once(' ').is_some_and(|(_, text)| text.parse::<u32>().is_ok());
    assert!(bare.out().lines().all(works), "{}", bare.out());
    assert!(!file.exists() && made.exists());
}

/// Proves: SYS-1 gate-server, LIFE-4 helper-death
#[test]
#[cfg(target_arch = "x86_64")]
fn a_server_that_was_taken_over_starts_nothing_and_reaches_nobody() {
    let Some(world) = world_of_root() else { return };
    for call in [
        json!(["execve", "/bin/sh", 0, 0]),
        json!(["socket", 2, 1, 0]),
        json!(["mount", "none", "/mnt", "tmpfs", 0, 0]),
        json!(["process_vm_readv", 1, 0, 0, 0, 0, 0]),
    ] {
        let run = served(&world);
        let pid = server(&run).unwrap().as_raw_nonzero().to_string();
        let injected = inject(&world, &pid, std::slice::from_ref(&call));
        assert!(injected.out().contains(" SIGSYS"), "{call}: {}", injected.out());
        let output = run.wait();
        assert_eq!(output.code(), 125, "{call}: {}", output.err());
        assert_eq!(output.report.as_ref().unwrap()["outcome"], "failed", "{call}");
    }
    let bare = inject(&world, "bare", &[json!(["socket", 2, 1, 0])]);
    assert!(!bare.out().contains("SIG"), "{}", bare.out());
}

/// Proves: SYS-1 gate-server
///
/// Another process of the same user would have the server's view of the host.
#[test]
#[cfg(target_arch = "x86_64")]
fn nobody_of_the_same_user_takes_the_server_over() {
    let Some(world) = world() else { return };
    if rustix::process::geteuid().is_root() {
        return;
    }
    let run = served(&world);
    let pid = server(&run).unwrap().as_raw_nonzero().to_string();
    let call = [json!(["close", -1])];
    assert_eq!(inject(&world, &pid, &call).out(), "attach EPERM\n");
    assert_eq!(inject(&world, "bare", &call).out(), "close EBADF\n");
}
