use super::*;
use crate::test_support::{BOTH, logged, number, quietly, suspicious};

const EPERM: u16 = 1;

fn answer(profile: &Profile, name: &str, args: &[u64]) -> CallAnswer {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    let arch = profile.arch();
    profile.spec().answer(&SeccompData::new(arch, number(arch, name), all))
}

/// Proves: SYS-1 filter-exact
#[test]
fn what_leads_out_is_suspicious() {
    for arch in BOTH {
        let plain = Profile::baseline(BaselineOptions::new(arch));
        for name in [
            "mount",
            "setns",
            "pivot_root",
            "open_by_handle_at",
            "bpf",
            "kexec_load",
            "init_module",
            "io_uring_enter",
            "userfaultfd",
            "perf_event_open",
            "add_key",
        ] {
            assert_eq!(answer(&plain, name, &[]), suspicious(EPERM), "{name}");
        }
        let new_user = 0x1000_0000;
        assert_eq!(answer(&plain, "clone", &[new_user]), suspicious(EPERM));
        assert_eq!(answer(&plain, "unshare", &[new_user]), suspicious(EPERM));
        assert_eq!(answer(&plain, "ioctl", &[0, 0x5412]), suspicious(EPERM), "TIOCSTI");
        // KEYCTL_READ
        assert_eq!(answer(&plain, "keyctl", &[11]), suspicious(EPERM));
        for family in [17, 38, 40] {
            assert_eq!(answer(&plain, "socket", &[family, 3]), suspicious(97), "family {family}");
        }
        for (name, args) in [("ptrace", [0, 0]), ("process_vm_readv", [0, 0]), ("seccomp", [1, 8])]
        {
            assert_eq!(answer(&plain, name, &args), logged(EPERM), "{name}");
        }
    }
}

/// Proves: SYS-1 filter-exact, SYS-1 ordinary-programs
///
/// Each would be there for every start of an ordinary program, and end a long build as an attack.
#[test]
fn what_ordinary_programs_try_is_quiet_or_at_least_not_suspicious() {
    for arch in BOTH {
        let options = BaselineOptions {
            refuse_setid_modes: true,
            deny_inet: true,
            deny_unix: true,
            deny_others: true,
            ..BaselineOptions::new(arch)
        };
        let strict = Profile::baseline(options);
        for (name, args, expected) in [
            ("clone3", [0, 0, 0], quietly(ENOSYS)),
            ("openat2", [0, 0, 0], quietly(ENOSYS)),
            ("socket", [1, 1, 0], quietly(13)),
            ("socket", [2, 2, 0], quietly(13)),
            ("socket", [16, 3, 15], quietly(97)),
            ("sched_setaffinity", [77, 8, 0], quietly(EPERM)),
            ("move_pages", [0, 0, 0], quietly(EPERM)),
            ("kcmp", [0, 0, 0], quietly(EPERM)),
            ("io_uring_setup", [0, 0, 0], logged(EPERM)),
            ("fchmod", [0, 0o4755, 0], logged(EPERM)),
        ] {
            assert_eq!(answer(&strict, name, &args), expected, "{name}");
        }
        let beyond_the_tables = SeccompData::new(arch, 1234, [0; 6]);
        assert_eq!(strict.spec().answer(&beyond_the_tables), quietly(ENOSYS));
    }
}

/// Proves: SYS-1 filter-exact
///
/// It is tried with the filter installed and before anybody listens.
#[test]
fn the_forbidden_call_of_the_self_check_is_refused_quietly_by_every_profile() {
    const KEYCTL_GET_KEYRING_ID: u64 = 0;
    for arch in BOTH {
        let options = BaselineOptions::new(arch);
        let white = Profile::with_list(options, ListMode::Whitelist, ["read"]).expect("known");
        let black = Profile::with_list(options, ListMode::Blacklist, ["keyctl"]).expect("known");
        let whole = BaselineOptions { guard_writes: true, guard_exec: true, ..options };
        for profile in [Profile::baseline(options), Profile::baseline(whole), white, black] {
            assert_eq!(answer(&profile, "keyctl", &[KEYCTL_GET_KEYRING_ID]), quietly(EPERM));
        }
    }
}

/// Proves: SYS-1 filter-exact
#[test]
fn whatever_gives_a_name_is_brokered_and_nothing_else() {
    const O_PATH: u64 = 0o10_000_000;
    for arch in BOTH {
        let options = BaselineOptions {
            guard_writes: true,
            refuse_setid_modes: true,
            ..BaselineOptions::new(arch)
        };
        let guarding = Profile::baseline(options);
        let exists = |name: &&str| table::number(arch, name).is_some();
        for name in [
            "creat",
            "mkdir",
            "mkdirat",
            "mknod",
            "mknodat",
            "rename",
            "renameat",
            "renameat2",
            "link",
            "linkat",
            "symlink",
            "symlinkat",
            "bind",
            "umask",
        ]
        .iter()
        .filter(|name| exists(name))
        {
            assert_eq!(answer(&guarding, name, &[]), CallAnswer::Broker, "{name}");
        }
        for (name, before_flags) in
            [("open", 1), ("openat", 2)].into_iter().filter(|(name, _)| exists(name))
        {
            let open = |flags, mode| {
                let args = [vec![0; before_flags], vec![flags, mode]].concat();
                answer(&guarding, name, &args)
            };
            for writing in [0o1, 0o2, 0o3, 0o100, 0o1000, 0o20_200_000, 0o1 | 1 << 32] {
                assert_eq!(open(writing, 0o644), CallAnswer::Broker, "{name} {writing:o}");
            }
            for reading in [0, 0o2_000_000, 0o200_000, O_PATH, 1 << 32] {
                assert_eq!(open(reading, 0), CallAnswer::Allow, "{name} {reading:o}");
            }
            assert_eq!(open(0o101, 0o4755), logged(EPERM), "set-id modes come first");
        }
        assert_eq!(answer(&guarding, "openat2", &[]), quietly(ENOSYS));
        for name in ["unlinkat", "ftruncate", "write", "execve", "connect"] {
            assert_eq!(answer(&guarding, name, &[]), CallAnswer::Allow, "{name}");
        }
        let unhidden = BaselineOptions { refuse_setid_modes: false, ..options };
        assert_eq!(answer(&Profile::baseline(unhidden), "openat2", &[]), quietly(ENOSYS));
    }
}

/// Proves: SYS-1 filter-exact
#[test]
fn starting_programs_can_be_brokered() {
    for arch in BOTH {
        let plain = BaselineOptions::new(arch);
        let guarding = BaselineOptions { guard_exec: true, ..plain };
        let watching = BaselineOptions { watch_exec: true, ..plain };
        for name in ["execve", "execveat"] {
            for options in [guarding, watching] {
                let given = answer(&Profile::baseline(options), name, &[]);
                assert_eq!(given, CallAnswer::Broker, "{name}");
            }
        }
    }
}

/// Proves: SYS-1 explained
#[test]
fn the_option_behind_a_rule_is_known_for_a_name_and_for_a_call() {
    const CLONE_NEWUSER: u64 = 0x1000_0000;
    for arch in BOTH {
        let options = BaselineOptions { deny_fork: true, ..BaselineOptions::new(arch) };
        let profile = Profile::baseline(options);
        let behind = |name: &str, flags: u64| {
            let number = table::number(arch, name).expect("known");
            let call = SeccompData::new(arch, number, [flags, 0, 0, 0, 0, 0]);
            profile.switch_behind(&call)
        };
        assert_eq!(profile.explain("clone").expect("known").switches, [Switch::DenyFork]);
        assert_eq!(behind("clone", 17), Some(Switch::DenyFork));
        assert_eq!(behind("clone", CLONE_NEWUSER), None, "refused in any case");
        assert_eq!(behind("ptrace", 0), Some(Switch::Debug));
        assert_eq!(behind("mount", 0), None);
        let forking = Profile::baseline(BaselineOptions::new(arch));
        assert!(forking.explain("clone").expect("known").switches.is_empty());
    }
}

/// Proves: SYS-1 explained, SYS-1 reasons
#[test]
fn an_explanation_names_group_reason_and_each_rule_in_words() {
    let profile = Profile::baseline(BaselineOptions::new(Arch::X86_64));
    let mount = profile.explain("mount").expect("known");
    assert_eq!((mount.number, mount.verdict), (Some(165), CallVerdict::Refused));
    assert_eq!((mount.group, mount.list), ("mounts", None));
    assert!(mount.reason.contains("mount view"));
    assert_eq!(profile.explain_number(165), Some(mount));

    let ioctl = profile.explain("ioctl").expect("known");
    assert_eq!(ioctl.verdict, CallVerdict::ByArgument);
    assert_eq!(ioctl.rules[0].when, "the request (argument 1) is TIOCSTI");
    let last = ioctl.rules.last().expect("never empty");
    assert_eq!((last.when, last.answer), ("", CallAnswer::Allow));

    assert_eq!(profile.explain("open").expect("known").verdict, CallVerdict::Allowed);
    let other = profile.on(Arch::Aarch64);
    assert_eq!(other.explain("open").expect("known").number, None);
    assert_eq!(other.explain("mount").expect("known").number, Some(40));
    assert_eq!(other.explain_number(9999), None);
    let wrong = other.explain("mout").expect_err("unknown");
    assert_eq!(wrong.to_string(), "`mout` is not a system call; did you mean `mount`?");
}

/// Proves: SYS-1 explained
#[test]
fn an_explanation_says_when_the_policys_own_list_decides() {
    let options = BaselineOptions::new(Arch::X86_64);
    let white = Profile::with_list(options, ListMode::Whitelist, ["read"]).expect("known");
    let verdict = |name| {
        let explained = white.explain(name).expect("known");
        (explained.verdict, explained.list.is_some())
    };
    assert_eq!(verdict("read"), (CallVerdict::Allowed, true));
    assert_eq!(verdict("write"), (CallVerdict::Refused, true));
    assert_eq!(verdict("mount"), (CallVerdict::Refused, false));
    let black = Profile::with_list(options, ListMode::Blacklist, ["read"]).expect("known");
    let explained = black.explain("read").expect("known");
    assert_eq!(explained.verdict, CallVerdict::Refused);
    assert_eq!(explained.list, Some("the policy's list of refused calls names it"));
}

/// Proves: SYS-1 explained, SYS-1 filter-exact
#[test]
fn explanations_agree_with_the_filter() {
    for arch in BOTH {
        for guard_writes in [false, true] {
            let options = BaselineOptions { guard_writes, ..BaselineOptions::new(arch) };
            let profile = Profile::baseline(options);
            let spec = profile.spec();
            let known = profile.explanations().filter(|explained| explained.number.is_some());
            let mut count = 0;
            for explained in known {
                count += 1;
                let nr = explained.number.expect("filtered");
                let rules = spec.rules().iter().filter(|rule| rule.syscall == nr);
                let answers: Vec<CallAnswer> = rules.map(|rule| rule.answer).collect();
                let told: Vec<CallAnswer> =
                    explained.rules.iter().map(|rule| rule.answer).collect();
                assert_eq!(told, answers, "{}", explained.name);
            }
            assert_eq!(count, table::entries(arch).count());
        }
    }
}
