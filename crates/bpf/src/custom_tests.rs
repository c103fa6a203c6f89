use super::*;
use crate::Program;
use crate::interp::SeccompData;
use crate::test_support::{BOTH, answer, ask};

/// A8.2 of the isolation model, by the names it uses; `clone` stands there for disabled forks.
const BLOCKED_SYSCALLS: [&str; 13] = [
    "ptrace",
    "kexec_load",
    "open_by_handle_at",
    "perf_event_open",
    "bpf",
    "userfaultfd",
    "io_uring_setup",
    "mount",
    "umount",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
];

const APPENDIX: [&str; 12] = [
    "read",
    "write",
    "open",
    "close",
    "stat",
    "fstat",
    "lstat",
    "mmap",
    "munmap",
    "brk",
    "exit",
    "exit_group",
];

fn compiled(mode: ListMode, names: &[&str], arch: Arch) -> Program {
    custom(mode, names, &BaselineOptions::new(arch))
        .expect("known names")
        .compile()
        .expect("compiles")
}

/// Proves: SYS-1 allow-list, POL-2 appendix-policy
#[test]
fn a_white_list_allows_exactly_its_names() {
    for arch in BOTH {
        let program = compiled(ListMode::Whitelist, &APPENDIX, arch);
        for (name, nr) in table::entries(arch) {
            let allowed = answer(&program, &SeccompData::new(arch, nr, [0; 6])) == Action::Allow;
            assert_eq!(allowed, APPENDIX.contains(&name), "{name} on {arch:?}");
        }
        assert_eq!(ask(&program, arch, "openat", &[]), Action::Errno(1));
        assert_eq!(ask(&program, arch, "clone3", &[]), Action::Errno(38));
        let unknown = SeccompData::new(arch, 1234, [0; 6]);
        assert_eq!(answer(&program, &unknown), Action::Errno(38));
    }
}

/// Proves: SYS-1 allow-list
#[test]
fn a_white_list_does_not_lift_conditions_on_arguments() {
    let names = ["clone", "ioctl", "socket", "clone3", "adjtimex"];
    for arch in BOTH {
        let program = compiled(ListMode::Whitelist, &names, arch);
        assert_eq!(ask(&program, arch, "clone", &[0x11]), Action::Allow);
        assert_eq!(ask(&program, arch, "clone", &[0x1000_0011]), Action::Errno(1));
        assert_eq!(ask(&program, arch, "ioctl", &[0, 0x5412]), Action::Errno(1));
        assert_eq!(ask(&program, arch, "socket", &[38]), Action::Errno(97), "AF_ALG");
        assert_eq!(ask(&program, arch, "clone3", &[]), Action::Errno(38));
        assert_eq!(ask(&program, arch, "adjtimex", &[]), Action::Allow, "opened by name");
    }
}

/// Proves: SYS-1 blocked-list
#[test]
fn a_white_list_can_not_open_what_is_always_refused() {
    let options = BaselineOptions::new(Arch::X86_64);
    for name in BLOCKED_SYSCALLS.into_iter().filter(|name| *name != "unshare") {
        match custom(ListMode::Whitelist, [name], &options) {
            Err(Error::AlwaysRefused { reason, .. }) => assert!(!reason.is_empty()),
            other => panic!("{name}: {other:?}"),
        }
    }
    let debugging = BaselineOptions { debug: true, ..options };
    assert!(custom(ListMode::Whitelist, ["ptrace"], &debugging).is_ok());
}

/// Proves: SYS-1 deny-list
#[test]
fn a_black_list_refuses_its_names_and_what_is_always_refused() {
    for arch in BOTH {
        let program = compiled(ListMode::Blacklist, &["mkdirat", "kill"], arch);
        for name in ["mkdirat", "kill"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Errno(1), "{name}");
        }
        for name in BLOCKED_SYSCALLS.map(|name| if name == "umount" { "umount2" } else { name }) {
            let new_user_namespace = [0x1000_0000];
            assert_eq!(ask(&program, arch, name, &new_user_namespace), Action::Errno(1), "{name}");
        }
        for name in ["openat", "tgkill", "settimeofday", "fanotify_init"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        assert_eq!(ask(&program, arch, "clone3", &[]), Action::Errno(38));
        let unknown = SeccompData::new(arch, 1234, [0; 6]);
        assert_eq!(answer(&program, &unknown), Action::Errno(38));
    }
}

/// Proves: SYS-1 deny-list
#[test]
fn the_names_of_the_isolation_model_can_be_black_listed_as_written() {
    for arch in BOTH {
        let names = BLOCKED_SYSCALLS.into_iter().chain(["clone"]).collect::<Vec<_>>();
        let program = compiled(ListMode::Blacklist, &names, arch);
        assert_eq!(ask(&program, arch, "clone", &[0x11]), Action::Errno(1));
        assert_eq!(ask(&program, arch, "unshare", &[0x200]), Action::Errno(1));
        assert_eq!(ask(&program, arch, "umount2", &[]), Action::Errno(1));
    }
}

/// Proves: POL-2 unknown-key
#[test]
fn an_unknown_name_is_refused_with_the_nearest_one() {
    let options = BaselineOptions::new(Arch::native());
    let refused = custom(ListMode::Blacklist, ["ptrase"], &options).expect_err("unknown");
    assert_eq!(refused.to_string(), "`ptrase` is not a system call; did you mean `ptrace`?");
    let hopeless = custom(ListMode::Whitelist, ["💥"], &options).expect_err("unknown");
    assert_eq!(hopeless.to_string(), "`💥` is not a system call");
}
