use super::*;
use crate::clone::{CloneFlags, Forked, fork};
use crate::proc::{Status, exit_now, sig};
use crate::test_child::{become_namespace_root, in_child, status_of_child};

const SYS_ADMIN_BIT: u64 = 1 << 21;

#[test]
fn dropped_capabilities_are_gone_for_good() {
    in_child(|| {
        become_namespace_root(CloneFlags::NONE);
        assert_ne!(capability_sets().unwrap().permitted & SYS_ADMIN_BIT, 0);
        try_regain_capability().unwrap();
        drop_all_capabilities().unwrap();
        let empty = Capabilities { effective: 0, permitted: 0, inheritable: 0 };
        assert_eq!(capability_sets().unwrap(), empty);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(status.contains("\nCapBnd:\t0000000000000000\n"), "{status}");
        assert_eq!(try_regain_capability(), Err(Errno::PERM));
        drop_all_capabilities().unwrap();
    });
}

#[test]
fn locked_securebits_cannot_be_taken_back() {
    in_child(|| {
        become_namespace_root(CloneFlags::NONE);
        lock_securebits().unwrap();
        let bits = rustix::thread::capabilities_secure_bits().unwrap();
        assert!(bits.contains(CapabilitiesSecureBits::NO_ROOT));
        let none = CapabilitiesSecureBits::empty();
        let undone = rustix::thread::set_capabilities_secure_bits(none);
        assert_eq!(undone, Err(Errno::PERM));
    });
}

/// As ping(8) and setpriv(1) do when they start.
#[test]
fn keeping_capabilities_is_possible_and_keeps_none() {
    in_child(|| {
        become_namespace_root(CloneFlags::NONE);
        lock_securebits().unwrap();
        drop_all_capabilities().unwrap();
        rustix::thread::set_keep_capabilities(true).unwrap();
        let empty = Capabilities { effective: 0, permitted: 0, inheritable: 0 };
        assert_eq!(capability_sets().unwrap(), empty);
        assert_eq!(try_regain_capability(), Err(Errno::PERM));
    });
}

#[test]
fn no_new_privs_is_set() {
    in_child(|| {
        set_no_new_privs().unwrap();
        assert!(rustix::thread::no_new_privs().unwrap());
    });
}

#[test]
fn a_map_makes_us_root_inside_only() {
    in_child(|| {
        become_namespace_root(CloneFlags::NONE);
        assert!(rustix::process::getuid().is_root());
        let again = write_map(None, IdKind::Uid, &[MapLine { inside: 0, outside: 0, count: 1 }]);
        assert_eq!(again.unwrap_err().errno, Errno::PERM);
        assert_eq!(setgroups_empty().unwrap_err().errno, Errno::PERM);
        assert_eq!(setresuid(12).unwrap_err().errno, Errno::INVAL);
        setresgid(0).unwrap();
        setresuid(0).unwrap();
    });
}

#[test]
fn the_id_minus_one_is_no_id() {
    assert_eq!(setresuid(u32::MAX).unwrap_err().errno, Errno::INVAL);
    assert_eq!(setresgid(u32::MAX).unwrap_err().errno, Errno::INVAL);
}

#[test]
fn dumpability_can_be_given_up() {
    in_child(|| {
        let behavior = || rustix::process::dumpable_behavior().unwrap();
        assert_eq!(behavior(), DumpableBehavior::Dumpable);
        set_dumpable(false).unwrap();
        assert_eq!(behavior(), DumpableBehavior::NotDumpable);
    });
}

#[test]
fn an_orphan_goes_to_the_subreaper_and_dies_with_its_parent() {
    in_child(|| {
        set_child_subreaper().unwrap();
        let Forked::Parent { pid: middle, .. } = fork().unwrap() else {
            let (reader, writer) = std::io::pipe().unwrap();
            let Forked::Parent { .. } = fork().unwrap() else {
                set_pdeathsig(sig::SIGKILL).unwrap();
                drop(writer);
                loop {
                    std::thread::park();
                }
            };
            drop(writer);
            std::io::read_to_string(reader).unwrap();
            exit_now(0);
        };
        let first = crate::proc::wait_pid_rusage(middle).unwrap();
        assert_eq!(first.status, Status::Exited(0));
        let orphan = crate::proc::wait_any(crate::proc::WaitFlags::NONE).unwrap().unwrap();
        let killed = Status::Signaled { signal: sig::SIGKILL, core_dumped: false };
        assert_eq!(orphan.status, killed);
    });
    let status = status_of_child(|| set_pdeathsig(999).unwrap());
    assert_eq!(status, Status::Exited(101));
}

#[test]
fn who_acts_as_somebody_else_has_only_their_files() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let secret = place.path().join("secret");
    std::fs::write(&secret, "root's").unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    in_child(|| {
        setgroups_empty().unwrap();
        act_as(65_533, 65_533).unwrap();
        assert!(std::fs::read(&secret).is_err(), "root's capabilities are put aside");
        act_as(0, 0).unwrap();
        assert_eq!(std::fs::read(&secret).unwrap(), b"root's");
        keep_only_mounting().unwrap();
        let kept = capability_sets().unwrap();
        assert_eq!((kept.effective, kept.permitted), (1 << 21 | 1 << 18, 1 << 21 | 1 << 18));
        let refused = act_as(65_533, 65_533).unwrap_err();
        assert_eq!(refused.errno, Errno::PERM);
    });
}
