use super::*;
use crate::interp::SeccompData;
use crate::test_support::{BOTH, answer, ask, logged, number, quietly, suspicious};
use crate::{Action, Listening, Profile, Program};

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

fn profile(mode: ListMode, names: &[&str], arch: Arch) -> Profile {
    Profile::with_list(BaselineOptions::new(arch), mode, names).expect("known names")
}

fn compiled(mode: ListMode, names: &[&str], arch: Arch) -> Program {
    profile(mode, names, arch).spec().compile(Listening::No).expect("compiles")
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
fn a_white_list_cannot_open_what_is_always_refused() {
    let options = BaselineOptions::new(Arch::X86_64);
    for name in BLOCKED_SYSCALLS.into_iter().filter(|name| *name != "unshare") {
        match Profile::with_list(options, ListMode::Whitelist, [name]) {
            Err(Error::AlwaysRefused { reason, .. }) => assert!(!reason.is_empty()),
            other => panic!("{name}: {other:?}"),
        }
    }
    let debugging = BaselineOptions { debug: true, ..options };
    assert!(Profile::with_list(debugging, ListMode::Whitelist, ["ptrace"]).is_ok());
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
    let refused =
        Profile::with_list(options, ListMode::Blacklist, ["ptrase"]).expect_err("unknown");
    assert_eq!(refused.to_string(), "`ptrase` is not a system call; did you mean `ptrace`?");
    let hopeless = Profile::with_list(options, ListMode::Whitelist, ["💥"]).expect_err("unknown");
    assert_eq!(hopeless.to_string(), "`💥` is not a system call");
}

/// Proves: SYS-1 filter-exact
///
/// What a list adds is logged; what the baseline refuses keeps its errno and its mark, the probing of
/// ordinary programs stays quiet.
#[test]
fn refusals_of_a_list_are_logged_and_those_of_the_baseline_keep_their_marks() {
    for arch in BOTH {
        let white = profile(ListMode::Whitelist, &APPENDIX, arch).spec();
        let black = profile(ListMode::Blacklist, &["mkdirat"], arch).spec();
        for (spec, name, expected) in [
            (&white, "openat", logged(EPERM)),
            (&white, "ioctl", logged(EPERM)),
            (&white, "mount", suspicious(EPERM)),
            (&white, "clone3", quietly(ENOSYS)),
            (&white, "keyctl", quietly(EPERM)),
            (&black, "mkdirat", logged(EPERM)),
            (&black, "mount", suspicious(EPERM)),
            (&black, "clone3", quietly(ENOSYS)),
            (&black, "openat", CallAnswer::Allow),
        ] {
            let data = SeccompData::new(arch, number(arch, name), [0; 6]);
            assert_eq!(spec.answer(&data), expected, "{name}");
        }
    }
}

/// Proves: SYS-1 filter-exact, SYS-1 no-inet
///
/// The second is what the self-check tries without namespaces, before anybody listens.
#[test]
fn what_the_baseline_refuses_of_a_closed_call_keeps_its_mark() {
    let options = BaselineOptions { deny_inet: true, ..BaselineOptions::new(Arch::native()) };
    let profile = Profile::with_list(options, ListMode::Whitelist, ["read"]).expect("known");
    let spec = profile.spec();
    for (family, expected) in [(38, suspicious(97)), (2, quietly(13)), (1, logged(EPERM))] {
        let args = [family, 1, 0, 0, 0, 0];
        let data = SeccompData::new(Arch::native(), number(Arch::native(), "socket"), args);
        assert_eq!(spec.answer(&data), expected, "family {family}");
    }
}

/// Proves: SYS-1 allow-list
#[test]
fn a_call_whose_flags_cannot_be_seen_may_be_named_and_still_falls_back() {
    let options =
        BaselineOptions { refuse_setid_modes: true, ..BaselineOptions::new(Arch::native()) };
    for names in [["openat2"], ["read"]] {
        let profile = Profile::with_list(options, ListMode::Whitelist, names).expect("accepted");
        let explained = profile.explain("openat2").expect("known");
        let [only] = explained.rules[..] else { panic!("{explained:?}") };
        assert_eq!(only.answer, quietly(ENOSYS));
    }
}

/// Proves: SYS-1 allow-list
#[test]
fn a_white_list_leaves_calls_to_the_broker() {
    let options = BaselineOptions { guard_writes: true, ..BaselineOptions::new(Arch::native()) };
    let profile =
        Profile::with_list(options, ListMode::Whitelist, ["openat", "mkdirat"]).expect("known");
    let spec = profile.spec();
    let ask = |name, args| {
        spec.answer(&SeccompData::new(Arch::native(), number(Arch::native(), name), args))
    };
    assert_eq!(ask("mkdirat", [0; 6]), CallAnswer::Broker);
    assert_eq!(ask("openat", [0, 0, 1, 0, 0, 0]), CallAnswer::Broker);
    assert_eq!(ask("openat", [0; 6]), CallAnswer::Allow);
    assert_eq!(ask("renameat2", [0; 6]), logged(EPERM));
}
