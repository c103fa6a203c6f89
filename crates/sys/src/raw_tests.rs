use super::*;
use crate::clone::{Forked, fork};
use crate::test_child::in_child;

/// A probe that cannot succeed proves nothing when it fails.
#[test]
fn every_probe_succeeds_where_nothing_forbids_it() {
    let place = tempfile::tempdir().unwrap();
    let canary = place.path().join("canary");
    std::fs::write(&canary, "").unwrap();
    assert_eq!(try_open_read(&canary), Ok(()));
    let new = place.path().join("new");
    assert_eq!(try_create(&new), Ok(()));
    assert!(!new.exists());
    assert_eq!(try_kill0(rustix::process::getpid()), Ok(()));
}

#[test]
fn a_probe_tells_the_errno_of_the_wall_it_met() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(try_open_read(&place.path().join("absent")), Err(Errno::NOENT));
    assert_eq!(try_create(place.path()), Err(Errno::EXIST));
    in_child(|| {
        let Forked::Parent { pid, .. } = fork().unwrap() else { crate::proc::exit_now(0) };
        crate::proc::wait_pid_rusage(pid).unwrap();
        assert_eq!(try_kill0(pid), Err(Errno::SRCH));
    });
}

#[test]
fn the_keyring_probe_meets_a_filter() {
    use crate::seccomp::{SeccompFlags, SockFilter, install};
    in_child(|| {
        assert_ne!(try_keyctl(), Err(Errno::XDEV));
        crate::creds::set_no_new_privs().unwrap();
        let keyctl = u32::try_from(libc::SYS_keyctl).unwrap();
        let answer = libc::SECCOMP_RET_ERRNO | libc::EXDEV.unsigned_abs();
        let filter = [
            SockFilter { code: 0x20, jt: 0, jf: 0, k: 0 },
            SockFilter { code: 0x15, jt: 0, jf: 1, k: keyctl },
            SockFilter { code: 0x06, jt: 0, jf: 0, k: answer },
            SockFilter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
        ];
        install(&filter, SeccompFlags::NONE).unwrap();
        assert_eq!(try_keyctl(), Err(Errno::XDEV));
    });
}
