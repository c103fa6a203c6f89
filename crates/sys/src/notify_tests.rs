use super::*;
use crate::clone::{Forked, fork};
use crate::creds::set_no_new_privs;
use crate::fdpass::{recv_from_process, reveal_senders, socketpair};
use crate::other::{pidfd_of, read_string, take_descriptor};
use crate::proc::{Status, exit_now, wait_pid_rusage};
use crate::seccomp::{SeccompFlags, install};
use crate::test_child::{filter, in_child};

/// Forks a child whose calls of `number` are notified; it runs `body` and exits with what that says.
fn notified(number: libc::c_long, body: impl FnOnce() -> i32) -> (Pid, Listener) {
    let (ours, theirs) = socketpair().unwrap();
    reveal_senders(&ours).unwrap();
    match fork().unwrap() {
        Forked::Child => {
            drop(ours);
            set_no_new_privs().unwrap();
            let program = filter(number, libc::SECCOMP_RET_USER_NOTIF);
            let listener = install(&program, SeccompFlags::NEW_LISTENER).unwrap().unwrap();
            rustix::io::write(&theirs, &listener.as_raw_fd().to_ne_bytes()).unwrap();
            rustix::io::read(&theirs, &mut [0; 1]).unwrap();
            drop(listener);
            exit_now(body());
        }
        Forked::Parent { pid, .. } => {
            drop(theirs);
            let mut number = [0; 4];
            let (_, sender) = recv_from_process(&ours, &mut number).unwrap();
            assert_eq!(sender, Some(pid));
            let listener =
                take_descriptor(pidfd_of(pid).unwrap(), i32::from_ne_bytes(number)).unwrap();
            rustix::io::write(&ours, b"!").unwrap();
            (pid, Listener::new(listener))
        }
    }
}

fn exit_code(pid: Pid) -> i32 {
    match wait_pid_rusage(pid).unwrap().status {
        Status::Exited(code) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_received_with_its_arguments_and_answered() {
    in_child(|| {
        let (pid, listener) = notified(libc::SYS_mkdirat, || {
            let made = rustix::fs::mkdirat(rustix::fs::CWD, "/no/such/place", 0o751.into());
            i32::from(made == Err(Errno::XDEV))
        });
        let _ = listener.prefer_one_cpu();
        let call = listener.receive().unwrap();
        assert_eq!((call.thread, call.args[2]), (Some(pid), 0o751));
        assert_eq!(i64::from(call.number), libc::SYS_mkdirat);
        let mut path = [0; 4096];
        let length = read_string(pid, call.args[1], &mut path).unwrap();
        assert_eq!(&path[..length], b"/no/such/place");
        assert!(listener.is_waiting(call.id));
        listener.respond(call.id, Response::Fail(Errno::XDEV)).unwrap();
        assert!(!listener.is_waiting(call.id));
        assert_eq!(exit_code(pid), 1);
    });
}

#[test]
fn a_descriptor_can_be_given_before_the_answer() {
    in_child(|| {
        let (pid, listener) = notified(libc::SYS_openat, || {
            let flags = rustix::fs::OFlags::RDONLY;
            let file =
                rustix::fs::openat(rustix::fs::CWD, "/no/such/file", flags, 0.into()).unwrap();
            // Nobody else holds the other end, so it ends.
            i32::from(rustix::io::read(&file, &mut [0_u8; 4]) == Ok(0))
        });
        let call = listener.receive().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let number = listener.give(call.id, reader.as_fd(), true).unwrap();
        drop((reader, writer));
        listener.respond(call.id, Response::Value(number)).unwrap();
        assert_eq!(exit_code(pid), 1);
    });
}

#[test]
fn without_a_listener_the_call_fails() {
    in_child(|| {
        let (pid, listener) = notified(libc::SYS_getpgid, || {
            i32::from(rustix::process::getpgid(None) == Err(Errno::NOSYS))
        });
        drop(listener);
        assert_eq!(exit_code(pid), 1);
    });
}

#[test]
fn a_continued_call_is_the_kernels() {
    in_child(|| {
        let (pid, listener) =
            notified(libc::SYS_getpgid, || i32::from(rustix::process::getpgid(None).is_ok()));
        let call = listener.receive().unwrap();
        listener.respond(call.id, Response::Continue).unwrap();
        assert_eq!(exit_code(pid), 1);
    });
}
