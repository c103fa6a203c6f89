use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::*;
use crate::clone::{CloneFlags, Forked, fork};
use crate::test_child::{become_namespace_root, in_child, park, status_of_child};

fn strings(words: &[&str]) -> Vec<CString> {
    words.iter().map(|word| CString::new(*word).unwrap()).collect()
}

fn shell(script: &str) -> Errno {
    exec(c"/bin/sh", &strings(&["sh", "-c", script]), &strings(&["ANSWER=42"]))
}

#[test]
fn exec_passes_arguments_and_environment_or_says_why_not() {
    let status = status_of_child(|| exit_now(shell("exit $ANSWER").raw_os_error()));
    assert_eq!(status, Status::Exited(42));
    assert_eq!(exec(c"/nonexistent", &[], &[]), Errno::NOENT);
}

#[test]
fn every_change_of_a_child_is_told() {
    in_child(|| {
        let Forked::Parent { pid, pidfd } = fork().unwrap() else { park() };
        let all = WaitFlags::UNTRACED | WaitFlags::CONTINUED;
        assert_eq!(wait_any(all | WaitFlags::NOHANG).unwrap(), None);
        kill(pid, sig::SIGSTOP).unwrap();
        let stopped = wait_any(all).unwrap().unwrap();
        assert_eq!((stopped.pid, stopped.status), (pid, Status::Stopped(sig::SIGSTOP)));
        pidfd_send_signal(&pidfd, sig::SIGCONT).unwrap();
        assert_eq!(wait_any(all).unwrap().unwrap().status, Status::Continued);
        pidfd_send_signal(&pidfd, sig::SIGKILL).unwrap();
        let killed = Status::Signaled { signal: sig::SIGKILL, core_dumped: false };
        assert_eq!(wait_pid_rusage(pid).unwrap().status, killed);
        assert_eq!(wait_any(all).unwrap_err().errno, Errno::CHILD);
        assert_eq!(pidfd_send_signal(&pidfd, 0).unwrap_err().errno, Errno::SRCH);
    });
}

fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec there.
    let got = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(got, 0);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[test]
fn usage_counts_the_work_of_a_child() {
    in_child(|| {
        let Forked::Parent { pid, .. } = fork().unwrap() else {
            while processor_time() < Duration::from_millis(20) {}
            exit_now(0);
        };
        let reaped = wait_pid_rusage(pid).unwrap();
        let worked = reaped.usage.user_time + reaped.usage.system_time;
        assert!(worked >= Duration::from_millis(20), "{reaped:?}");
        assert!(reaped.usage.max_rss_bytes > 100 * 1024, "{reaped:?}");
    });
}

#[test]
fn a_group_is_signalled_as_one() {
    in_child(|| {
        let Forked::Parent { pid: first, .. } = fork().unwrap() else { park() };
        setpgid(Some(first), None).unwrap();
        let Forked::Parent { pid: second, .. } = fork().unwrap() else { park() };
        setpgid(Some(second), Some(first)).unwrap();
        kill_group(first, sig::SIGKILL).unwrap();
        for _ in 0..2 {
            let status = wait_any(WaitFlags::NONE).unwrap().unwrap().status;
            assert!(matches!(status, Status::Signaled { signal: sig::SIGKILL, .. }));
        }
    });
}

/// `kill_all` is tried as pid 1 of a namespace, where it can hurt nobody else.
#[test]
fn the_init_of_a_namespace_can_end_everything_in_it() {
    in_child(|| {
        let init = crate::clone::clone3(CloneFlags::NEWUSER | CloneFlags::NEWPID).unwrap();
        let Forked::Parent { pid, .. } = init else {
            let Forked::Parent { .. } = fork().unwrap() else { park() };
            kill_all(sig::SIGKILL).unwrap();
            let reaped = wait_any(WaitFlags::NONE).unwrap().unwrap();
            assert!(matches!(reaped.status, Status::Signaled { signal: sig::SIGKILL, .. }));
            exit_now(23);
        };
        assert_eq!(wait_pid_rusage(pid).unwrap().status, Status::Exited(23));
    });
}

#[test]
fn blocked_signals_are_read_as_data() {
    in_child(|| {
        let signals = [sig::SIGTERM, sig::SIGUSR1];
        block_signals(&signals).unwrap();
        let fd = signalfd(&signals).unwrap();
        assert_eq!(read_signalfd(&fd).unwrap(), None);
        let us = rustix::process::getpid();
        kill(us, sig::SIGUSR1).unwrap();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        assert_eq!(poll(&mut fds, None).unwrap(), 1);
        let info = read_signalfd(&fd).unwrap().unwrap();
        assert_eq!((info.signo, info.pid, info.code), (sig::SIGUSR1, Some(us), libc::SI_USER));
        assert_eq!(info.uid, rustix::process::getuid().as_raw());
    });
    assert_eq!(block_signals(&[4000]).unwrap_err().errno, Errno::INVAL);
}

#[test]
fn an_unblocked_and_reset_signal_acts_as_if_untouched() {
    let status = status_of_child(|| {
        block_signals(&[sig::SIGPIPE]).unwrap();
        assert!(is_ignored(sig::SIGPIPE) && !is_ignored(sig::SIGTERM));
        reset_action(sig::SIGPIPE);
        unblock_all().unwrap();
        exit_now(shell("kill -PIPE $$; exit 1").raw_os_error());
    });
    assert!(matches!(status, Status::Signaled { signal: sig::SIGPIPE, .. }), "{status:?}");
}

#[test]
fn poll_gives_up_in_time() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut fds = [PollFd::new(&reader, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(Duration::from_millis(5))).unwrap(), 0);
    writer.write_all(b"x").unwrap();
    assert_eq!(poll(&mut fds, Some(Duration::from_secs(60))).unwrap(), 1);
}

#[test]
fn descriptors_are_closed_at_once_or_at_exec() {
    in_child(|| {
        let file = File::open("/dev/null").unwrap();
        let inherited = rustix::io::fcntl_dupfd_cloexec(&file, 100).unwrap();
        let raw = inherited.as_raw_fd();
        let flags = rustix::io::FdFlags::empty();
        rustix::io::fcntl_setfd(&inherited, flags).unwrap();
        close_range_cloexec(100, raw).unwrap();
        let now = rustix::io::fcntl_getfd(&inherited).unwrap();
        assert!(now.contains(rustix::io::FdFlags::CLOEXEC));
        std::mem::forget(inherited);
        close_range(100, RawFd::MAX).unwrap();
        assert!(!Path::new(&format!("/proc/self/fd/{raw}")).exists());
    });
}

#[test]
fn a_limit_holds() {
    in_child(|| {
        let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
        set_rlimit(Resource::Nofile, ResourceLimit { soft: Some(0), hard }).unwrap();
        let now = rustix::process::getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.maximum), (Some(0), hard));
        let refused = File::open("/dev/null").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));
    });
}

#[test]
fn a_host_name_is_the_namespaces_own() {
    let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let outside = name();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWUTS);
        sethostname("palisade-test").unwrap();
        assert_eq!(name(), "palisade-test\n");
    });
    assert_eq!(name(), outside);
}

#[test]
fn a_session_leader_leads_itself() {
    in_child(|| assert_eq!(setsid().unwrap(), rustix::process::getpid()));
}
