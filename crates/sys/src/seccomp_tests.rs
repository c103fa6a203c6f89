use super::*;
use crate::creds::set_no_new_privs;
use crate::proc::{Status, sig};
use crate::test_child::{filter, in_child, status_of_child};

#[test]
fn a_filter_answers_with_its_errno() {
    in_child(|| {
        set_no_new_privs().unwrap();
        rustix::process::getpgid(None).unwrap();
        let errno = libc::SECCOMP_RET_ERRNO | libc::EXDEV.unsigned_abs();
        let listener = install(&filter(libc::SYS_getpgid, errno), SeccompFlags::NONE).unwrap();
        assert!(listener.is_none());
        assert_eq!(rustix::process::getpgid(None), Err(Errno::XDEV));
    });
}

#[test]
fn a_filter_kills() {
    let status = status_of_child(|| {
        set_no_new_privs().unwrap();
        install(&filter(libc::SYS_getpgid, libc::SECCOMP_RET_KILL_PROCESS), SeccompFlags::LOG)
            .unwrap();
        let _ = rustix::process::getpgid(None);
    });
    assert!(matches!(status, Status::Signaled { signal: sig::SIGSYS, .. }), "{status:?}");
}

#[test]
fn a_listener_comes_back_when_asked_for() {
    in_child(|| {
        set_no_new_privs().unwrap();
        let program = filter(libc::SYS_getpgid, libc::SECCOMP_RET_USER_NOTIF);
        let listener = install(&program, SeccompFlags::NEW_LISTENER).unwrap();
        assert!(listener.is_some());
        let second = install(&program, SeccompFlags::NEW_LISTENER).unwrap_err();
        assert_eq!(second.errno, Errno::BUSY);
    });
}

#[test]
fn a_bad_filter_is_refused() {
    in_child(|| {
        set_no_new_privs().unwrap();
        let empty = install(&[], SeccompFlags::NONE).unwrap_err();
        assert_eq!(empty.errno, Errno::INVAL);
    });
}

#[test]
fn the_kernel_tells_its_sizes() {
    let sizes = notify_sizes().unwrap();
    assert!(usize::from(sizes.notification) >= 80, "{sizes:?}");
}
