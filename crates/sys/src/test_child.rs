//! Runs a test's body in a forked child, where it may enter namespaces, drop privileges and die.
//! The test harness has threads, so this is libc's fork: it takes the allocator's locks over.

#![expect(unsafe_code, reason = "clone3 here refuses to fork the threaded test harness")]

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;

use crate::clone::{CloneFlags, unshare};
use crate::creds::{IdKind, MapLine, deny_setgroups, write_map};
use crate::proc::{Status, exit_now, wait_pid_rusage};

/// Runs `body` in a child and fails the test if it panicked or died.
pub(crate) fn in_child(body: impl FnOnce()) {
    let (status, said) = run(body);
    assert_eq!(status, Status::Exited(0), "in the child: {said}");
}

/// Runs `body` in a child that is expected to end in another way than by returning.
pub(crate) fn status_of_child(body: impl FnOnce()) -> Status {
    run(body).0
}

fn run(body: impl FnOnce()) -> (Status, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: the child runs test code only, allocates under libc's fork-safe allocator, and leaves
    // by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    let Some(pid) = Pid::from_raw(pid) else {
        drop(reader);
        let code = report_panic(body, OwnedFd::from(writer));
        exit_now(code);
    };
    drop(writer);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    (wait_pid_rusage(pid).unwrap().status, said)
}

fn report_panic(body: impl FnOnce(), writer: OwnedFd) -> i32 {
    let pipe = writer.as_fd().try_clone_to_owned().unwrap();
    std::panic::set_hook(Box::new(move |info| {
        let mut pipe = std::fs::File::from(pipe.try_clone().unwrap());
        let _ = writeln!(pipe, "{info}");
    }));
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => 0,
        Err(_) => 101,
    }
}

/// Enters a user namespace where we are root, and `others` besides.
pub(crate) fn become_namespace_root(others: CloneFlags) {
    let outside_uid = rustix::process::getuid().as_raw();
    let outside_gid = rustix::process::getgid().as_raw();
    unshare(CloneFlags::NEWUSER | others).unwrap();
    deny_setgroups(None).unwrap();
    write_map(None, IdKind::Uid, &[MapLine { inside: 0, outside: outside_uid, count: 1 }]).unwrap();
    write_map(None, IdKind::Gid, &[MapLine { inside: 0, outside: outside_gid, count: 1 }]).unwrap();
}
