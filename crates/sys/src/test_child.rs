//! Runs a test's body in a forked child, where it may enter namespaces, drop privileges and die.
//! The test harness has threads, so this is libc's fork: it takes the allocator's locks over.

#![expect(unsafe_code, reason = "clone3 here refuses to fork the threaded test harness")]
#![expect(clippy::unwrap_used, reason = "only tests are built with this module")]

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Once, OnceLock};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clone::{CloneFlags, unshare};
use crate::creds::{IdKind, MapLine, deny_setgroups, set_pdeathsig, write_map};
use crate::proc::{Status, exit_now, poll, sig, wait_pid_rusage};
use crate::seccomp::SockFilter;

/// Runs `body` in a child and fails the test if it panicked or died.
pub fn in_child(body: impl FnOnce()) {
    let (status, said) = run(body);
    assert_eq!(status, Status::Exited(0), "in the child: {said}");
}

/// Runs `body` in a child that is expected to end in another way than by returning.
pub fn status_of_child(body: impl FnOnce()) -> Status {
    run(body).0
}

/// Where a panic in the child is told; empty in the harness itself.
static CHILD_REPORT: OnceLock<PipeWriter> = OnceLock::new();

/// The hook stands before the first fork: to set it in a child could wait for ever for a lock that
/// another test's panic held when we forked.
fn route_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match CHILD_REPORT.get() {
            None => usual(info),
            Some(mut report) => {
                let _ = writeln!(report, "{info}");
            }
        }));
    });
}

fn run(body: impl FnOnce()) -> (Status, String) {
    route_panics();
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: the child runs test code only, allocates under libc's fork-safe allocator, and leaves
    // by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    let Some(pid) = Pid::from_raw(pid) else {
        drop(reader);
        exit_now(report_panic(body, writer));
    };
    drop(writer);
    let said = read_until_end(&mut reader, pid);
    let status = wait_pid_rusage(pid).unwrap().status;
    (status, String::from_utf8_lossy(&said).into_owned())
}

/// Reads while the child runs: one that says more than a pipe holds (64 KiB, pipe(7)) would otherwise never end. Not until
/// the end of the pipe: a grandchild left behind would hold it open.
fn read_until_end(reader: &mut PipeReader, child: Pid) -> Vec<u8> {
    let end = pidfd_open(child, PidfdFlags::empty()).unwrap();
    rustix::io::ioctl_fionbio(&*reader, true).unwrap();
    let mut said = Vec::new();
    let (mut has_ended, mut is_open) = (false, true);
    while !has_ended {
        let mut set = [PollFd::new(&end, PollFlags::IN), PollFd::new(&*reader, PollFlags::IN)];
        poll(&mut set[..if is_open { 2 } else { 1 }], None).unwrap();
        has_ended = !set[0].revents().is_empty();
        // Would block, unless nobody holds the other end any more.
        is_open = is_open && reader.read_to_end(&mut said).is_err();
    }
    said
}

fn report_panic(body: impl FnOnce(), writer: PipeWriter) -> i32 {
    CHILD_REPORT.set(writer).unwrap();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => 0,
        Err(_) => 101,
    }
}

/// Waits in a grandchild to be killed, at the latest when the child that forked it ends.
pub fn park() -> ! {
    set_pdeathsig(sig::SIGKILL).unwrap();
    loop {
        std::thread::park();
    }
}

/// Enters a user namespace where we are root, and `others` besides.
pub fn become_namespace_root(others: CloneFlags) {
    let outside_uid = rustix::process::getuid().as_raw();
    let outside_gid = rustix::process::getgid().as_raw();
    unshare(CloneFlags::NEWUSER | others).unwrap();
    deny_setgroups(None).unwrap();
    write_map(None, IdKind::Uid, &[MapLine { inside: 0, outside: outside_uid, count: 1 }]).unwrap();
    write_map(None, IdKind::Gid, &[MapLine { inside: 0, outside: outside_gid, count: 1 }]).unwrap();
}

/// A seccomp filter that answers `action` to one syscall and lets every other pass.
pub fn filter(syscall: libc::c_long, action: u32) -> [SockFilter; 4] {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let k = u32::try_from(syscall).unwrap();
    [
        SockFilter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        SockFilter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k },
        SockFilter { code: RETURN, jt: 0, jf: 0, k: action },
        SockFilter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_fails_with_more_than_a_pipe_holds_is_heard_to_the_end() {
        let long = "x".repeat(1 << 20);
        let (status, said) = run(|| panic!("{long} and the end"));
        assert_eq!(status, Status::Exited(101));
        assert!(said.contains(&long) && said.trim_end().ends_with("and the end"));
    }

    /// The grandchild lives until the last copy of `tell` is closed, which is this process's.
    #[test]
    fn what_a_child_left_behind_is_not_waited_for() {
        let (mut told, tell) = std::io::pipe().unwrap();
        let (status, _) = run(move || {
            // SAFETY: as in `run`.
            if unsafe { libc::fork() } == 0 {
                drop(tell);
                let _ = told.read(&mut [0]);
                exit_now(0);
            }
        });
        assert_eq!(status, Status::Exited(0));
    }
}
