use std::sync::mpsc;

use super::*;
use crate::proc::{PollFd, PollFlags, Status, exit_now, poll, wait_pid_rusage};
use crate::test_child::in_child;

#[test]
fn a_process_with_threads_is_not_forked() {
    let (release, parked) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || parked.recv());
    assert!(!is_single_threaded().unwrap());
    let error = fork().unwrap_err();
    assert_eq!(error.errno, Errno::INVAL);
    assert!(error.subject.contains("threads"), "{error}");
    drop(release);
    assert!(thread.join().unwrap().is_err());
}

#[test]
fn a_fork_gives_a_pidfd_of_the_child() {
    in_child(|| {
        assert!(is_single_threaded().unwrap());
        match fork().unwrap() {
            Forked::Child => exit_now(7),
            Forked::Parent { pid, pidfd } => {
                // Readable at the end of the very process.
                let mut watched = [PollFd::new(&pidfd, PollFlags::IN)];
                assert_eq!(poll(&mut watched, None).unwrap(), 1);
                assert_eq!(wait_pid_rusage(pid).unwrap().status, Status::Exited(7));
            }
        }
    });
}

#[test]
fn the_child_is_pid_one_of_a_new_pid_namespace() {
    in_child(|| match clone3(CloneFlags::NEWUSER | CloneFlags::NEWPID).unwrap() {
        Forked::Child => exit_now(rustix::process::getpid().as_raw_pid()),
        Forked::Parent { pid, .. } => {
            assert_ne!(pid, Pid::INIT);
            assert_eq!(wait_pid_rusage(pid).unwrap().status, Status::Exited(1));
        }
    });
}

#[test]
fn unshare_enters_a_new_namespace() {
    in_child(|| {
        let before = std::fs::read_link("/proc/self/ns/user").unwrap();
        unshare(CloneFlags::NEWUSER).unwrap();
        assert_ne!(std::fs::read_link("/proc/self/ns/user").unwrap(), before);
    });
}

/// Proves: PROC-7 works
#[test]
fn a_profile_that_forbids_clone3_leaves_the_older_call() {
    for errno in [libc::ENOSYS, libc::EPERM] {
        in_child(|| {
            crate::creds::set_no_new_privs().unwrap();
            let refuse = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
            let filter = crate::test_child::filter(libc::SYS_clone3, refuse);
            crate::seccomp::install(&filter, crate::seccomp::SeccompFlags::NONE).unwrap();
            match clone3(CloneFlags::NEWUSER | CloneFlags::NEWPID).unwrap() {
                Forked::Child => exit_now(rustix::process::getpid().as_raw_pid()),
                Forked::Parent { pid, .. } => {
                    assert_eq!(wait_pid_rusage(pid).unwrap().status, Status::Exited(1));
                }
            }
            let refused = clone3(CloneFlags::NEWUSER | CloneFlags::NEWTIME).unwrap_err();
            assert_eq!(refused.errno, Errno::NOSYS);
        });
    }
}

#[test]
fn a_directory_that_is_no_cgroup_makes_no_process() {
    in_child(|| {
        let directory = std::fs::File::open("/").unwrap();
        let refused = clone3_into(CloneFlags::NONE, &directory).unwrap_err();
        assert_eq!(refused.errno, Errno::BADF);
        assert_eq!(refused.call, "clone3");
    });
}

#[test]
fn a_kernel_that_forbids_clone3_does_not_quietly_leave_the_cgroup_out() {
    in_child(|| {
        crate::creds::set_no_new_privs().unwrap();
        let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
        let filter = crate::test_child::filter(libc::SYS_clone3, refuse);
        crate::seccomp::install(&filter, crate::seccomp::SeccompFlags::NONE).unwrap();
        let directory = std::fs::File::open("/").unwrap();
        let refused = clone3_into(CloneFlags::NONE, &directory).unwrap_err();
        assert_eq!(refused.errno, Errno::NOSYS);
    });
}
