use super::*;
use crate::interp::SeccompData;
use crate::test_support::{
    BOTH, LISTENING_OR_NOT, answer, ask, is_constantly_allowed, meaning, number,
};
use crate::{Action, CallAnswer, FilterSpec, Listening, Notice, Profile, Program, Refusal, table};

const EPERM: Action = Action::Errno(1);
const EACCES: Action = Action::Errno(13);
const NOT_IMPLEMENTED: Action = Action::Errno(ENOSYS);
const EPROTONOSUPPORT: Action = Action::Errno(93);
const ESOCKTNOSUPPORT: Action = Action::Errno(94);
const EAFNOSUPPORT: Action = Action::Errno(97);

const HIGH_BIT: u64 = 1 << 32;

fn spec(options: &BaselineOptions) -> FilterSpec {
    Profile::baseline(*options).spec()
}

fn compiled(options: &BaselineOptions) -> Program {
    spec(options).compile(Listening::No).expect("compiles")
}

fn plain(arch: Arch) -> Program {
    compiled(&BaselineOptions::new(arch))
}

/// No switch, all of them, and any two: rules of one call meet no more than that.
fn many_options(arch: Arch) -> impl Iterator<Item = BaselineOptions> {
    let few = (0..131_072_u32).filter(|bits| bits.count_ones() <= 2 || *bits == 131_071);
    few.map(move |bits| BaselineOptions {
        arch,
        debug: bits & 1 != 0,
        refuse_setid_modes: bits & 2 != 0,
        deny_inet: bits & 4 != 0,
        deny_fork: bits & 8 != 0,
        deny_unix: bits & 16 != 0,
        deny_others: bits & 32 != 0,
        guard_writes: bits & 64 != 0,
        guard_exec: bits & 128 != 0,
        deny_anonymous_programs: bits & 256 != 0,
        watch_exec: bits & 512 != 0,
        gate_paths: bits & 1024 != 0,
        pin_cpus: bits & 2048 != 0,
        map_root_owner: bits & 4096 != 0,
        gate_programs: bits & 8192 != 0,
        gate_stubs: bits & 16_384 != 0,
        rename_directories: bits & 32_768 != 0,
        deny_memory_files: bits & 65_536 != 0,
    })
}

/// Proves: SYS-1 filter-exact, SYS-1 unknown-enosys, SYS-1 architecture
///
/// Every number, x32 and i386 among them, with a listener and without.
#[test]
fn every_number_gets_its_declared_decision() {
    // Nothing, everything; TIOCSTI, CLONE_NEWUSER, set-id modes; O_CREAT | O_WRONLY, AF_ALG.
    let arguments =
        [[0; 6], [u64::MAX; 6], [0x5412; 6], [0x1000_0000; 6], [0o6777; 6], [0o101; 6], [38; 6]];
    const I386: u32 = 0x4000_0003;
    for arch in BOTH {
        for options in many_options(arch) {
            let spec = spec(&options);
            let execs = options.guard_exec || options.watch_exec;
            let gates = options.gate_paths || options.gate_stubs || options.gate_programs;
            let modes = options.refuse_setid_modes || options.map_root_owner;
            let writes = options.guard_writes || options.rename_directories;
            let brokers = writes || gates || execs || modes;
            for listening in LISTENING_OR_NOT {
                let compiled = spec.compile(listening);
                assert_eq!(compiled.is_err(), brokers && listening == Listening::No);
                let Ok(program) = compiled else { continue };
                for nr in (0..600).chain([0x4000_0000, 0x4000_0002, u32::MAX - 1, u32::MAX]) {
                    for args in arguments {
                        let data = SeccompData::new(arch, nr, args);
                        let expected = meaning(&spec, listening, &data);
                        assert_eq!(answer(&program, &data), expected, "{data:x?}");
                        if table::name(arch, nr).is_none() && nr < 0x4000_0000 {
                            assert_eq!(expected, NOT_IMPLEMENTED, "{data:x?}");
                        }
                    }
                    let foreign = SeccompData { arch: I386, ..SeccompData::new(arch, nr, [0; 6]) };
                    assert_eq!(answer(&program, &foreign), Action::KillProcess, "{foreign:x?}");
                }
            }
        }
    }
}

/// Proves: SYS-1 blocked-list
#[test]
fn every_call_of_the_isolation_models_list_is_refused() {
    for arch in BOTH {
        let program = plain(arch);
        for name in [
            "ptrace",
            "kexec_load",
            "open_by_handle_at",
            "perf_event_open",
            "bpf",
            "userfaultfd",
            "io_uring_setup",
            "mount",
            "umount2",
            "pivot_root",
            "chroot",
            "setns",
        ] {
            assert_eq!(ask(&program, arch, name, &[]), EPERM, "{name} on {arch:?}");
        }
    }
}

/// Proves: SYS-1 blocked-list
#[test]
fn the_rarely_needed_surface_of_the_kernel_is_closed() {
    for arch in BOTH {
        let program = plain(arch);
        for name in [
            "io_uring_enter",
            "io_uring_register",
            "keyctl",
            "add_key",
            "request_key",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "move_mount",
            "open_tree",
            "open_tree_attr",
            "mount_setattr",
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_file_load",
            "swapon",
            "reboot",
            "clock_settime",
            "fanotify_init",
            "sethostname",
            "syslog",
            "quotactl_fd",
            "lsm_set_self_attr",
            "process_vm_readv",
            "process_vm_writev",
            "pidfd_getfd",
            "kcmp",
        ] {
            assert_eq!(ask(&program, arch, name, &[]), EPERM, "{name} on {arch:?}");
        }
    }
    for name in ["iopl", "ioperm", "modify_ldt"] {
        assert_eq!(ask(&plain(Arch::X86_64), Arch::X86_64, name, &[]), EPERM, "{name}");
    }
}

/// Proves: SYS-1 ordinary-programs, SYS-1 filter-exact
#[test]
fn what_tools_call_all_the_time_is_allowed_without_reading_arguments() {
    for arch in BOTH {
        let program = plain(arch);
        for name in [
            "read",
            "write",
            "openat",
            "openat2",
            "close",
            "statx",
            "newfstatat",
            "faccessat2",
            "readlinkat",
            "mmap",
            "mprotect",
            "munmap",
            "brk",
            "futex",
            "execve",
            "wait4",
            "exit_group",
            "getrandom",
            "rt_sigaction",
            "rt_sigprocmask",
            "epoll_pwait2",
            "close_range",
            "copy_file_range",
            "landlock_restrict_self",
            "rseq",
            "prctl",
            "connect",
            "sendmsg",
            "memfd_create",
            "pidfd_open",
            "fchmodat2",
            "mseal",
            "futex_waitv",
            "membarrier",
            "sched_getaffinity",
            "shmget",
            "mq_open",
            "inotify_add_watch",
            "io_submit",
        ] {
            assert!(is_constantly_allowed(&program, arch, number(arch, name)), "{name}");
        }
    }
}

/// Proves: SYS-1 namespaces
#[test]
fn no_call_makes_a_namespace() {
    let namespaces = [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000].into_iter().chain([
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ]);
    for arch in BOTH {
        let program = plain(arch);
        for flag in namespaces.clone() {
            for disguise in [0, 17, HIGH_BIT, 0x0001_0f00] {
                let flags = [flag | disguise];
                assert_eq!(ask(&program, arch, "clone", &flags), EPERM, "{flags:x?}");
                assert_eq!(ask(&program, arch, "unshare", &flags), EPERM, "{flags:x?}");
            }
        }
        assert_eq!(ask(&program, arch, "unshare", &[0x80]), EPERM, "CLONE_NEWTIME");
        assert_eq!(ask(&program, arch, "clone3", &[]), NOT_IMPLEMENTED);
        // What glibc passes for fork() and for a thread.
        assert_eq!(ask(&program, arch, "clone", &[0x0120_0011]), Action::Allow);
        assert_eq!(ask(&program, arch, "clone", &[0x003d_0f00]), Action::Allow);
        assert_eq!(ask(&program, arch, "unshare", &[0x0004_0600]), Action::Allow);
    }
}

/// Proves: SYS-1 terminal-injection
#[test]
fn nothing_can_be_typed_into_a_terminal() {
    for arch in BOTH {
        let program = plain(arch);
        for command in [0x5412, 0x541c, 0x541d, 0x5423] {
            for disguise in [0, HIGH_BIT, 1 << 63, 0xffff_ffff << 32] {
                let args = [0, command | disguise];
                assert_eq!(ask(&program, arch, "ioctl", &args), EPERM, "{args:x?}");
            }
        }
        for harmless in [0x5401, 0x5413, 0x5410, 0x541b] {
            assert_eq!(ask(&program, arch, "ioctl", &[0, harmless]), Action::Allow);
        }
    }
}

/// Proves: SYS-1 socket-families
#[test]
fn only_ordinary_sockets_can_be_made() {
    const CLOEXEC_NONBLOCK: u64 = 0o2_004_000;
    for arch in BOTH {
        let program = plain(arch);
        let socket = |family, kind, protocol| {
            let plain = ask(&program, arch, "socket", &[family, kind, protocol]);
            let [family, kind, protocol] = [family, kind, protocol].map(|word| word | HIGH_BIT);
            let args = [family, kind | CLOEXEC_NONBLOCK, protocol];
            assert_eq!(ask(&program, arch, "socket", &args), plain, "high halves must not count");
            plain
        };
        for inet in [2, 10] {
            assert_eq!(socket(inet, 1, 0), Action::Allow);
            assert_eq!(socket(inet, 1, 262), Action::Allow, "MPTCP");
            assert_eq!(socket(inet, 2, 17), Action::Allow);
            assert_eq!(socket(inet, 2, 58), Action::Allow, "ping");
            assert_eq!(socket(inet, 3, 255), EPERM, "SOCK_RAW");
            assert_eq!(socket(inet, 10, 0), EPERM, "SOCK_PACKET");
            assert_eq!(socket(inet, 5, 0), ESOCKTNOSUPPORT, "SCTP by its type");
            assert_eq!(socket(inet, 6, 33), ESOCKTNOSUPPORT, "DCCP");
            assert_eq!(socket(inet, 1, 132), EPROTONOSUPPORT, "SCTP");
            assert_eq!(socket(inet, 1, 256), EPROTONOSUPPORT, "SMC");
            assert_eq!(socket(inet, 2, 115), EPROTONOSUPPORT, "L2TP");
        }
        assert_eq!(socket(1, 1, 0), Action::Allow);
        assert_eq!(socket(1, 5, 0), Action::Allow, "local SOCK_SEQPACKET");
        assert_eq!(socket(16, 3, 0), Action::Allow, "NETLINK_ROUTE");
        assert_eq!(socket(16, 3, 4), Action::Allow, "NETLINK_SOCK_DIAG");
        assert_eq!(socket(16, 3, 6), EAFNOSUPPORT, "NETLINK_XFRM");
        assert_eq!(socket(16, 3, 12), EAFNOSUPPORT, "NETLINK_NETFILTER");
        // Every other family: AF_PACKET 17, AF_RXRPC 33, AF_ALG 38, AF_VSOCK 40, AF_XDP 44 …
        for family in (0..64).filter(|family| ![1, 2, 10, 16].contains(family)) {
            assert_eq!(socket(family, 1, 0), EAFNOSUPPORT, "family {family}");
        }
        assert_eq!(ask(&program, arch, "socketpair", &[1, 1]), Action::Allow);
        assert_eq!(ask(&program, arch, "socketpair", &[40, 1]), EAFNOSUPPORT);
    }
}

/// Proves: SYS-1 no-inet
#[test]
fn internet_sockets_can_be_switched_off() {
    for arch in BOTH {
        let program = compiled(&BaselineOptions { deny_inet: true, ..BaselineOptions::new(arch) });
        for family in [2, 10] {
            assert_eq!(ask(&program, arch, "socket", &[family, 1, 0]), EACCES);
            assert_eq!(ask(&program, arch, "socket", &[family | HIGH_BIT, 1, 0]), EACCES);
        }
        assert_eq!(ask(&program, arch, "socket", &[1, 1, 0]), Action::Allow);
        assert_eq!(ask(&program, arch, "socket", &[16, 3, 0]), Action::Allow);
        assert_eq!(ask(&program, arch, "socket", &[16, 3, 4]), EAFNOSUPPORT, "it lists the host's");
    }
}

/// Proves: FS-2 sockets
#[test]
fn sockets_with_a_path_can_be_switched_off_and_pairs_stay() {
    for arch in BOTH {
        let program = compiled(&BaselineOptions { deny_unix: true, ..BaselineOptions::new(arch) });
        assert_eq!(ask(&program, arch, "socket", &[1, 1, 0]), EACCES);
        assert_eq!(ask(&program, arch, "socket", &[1 | HIGH_BIT, 5, 0]), EACCES);
        const CLOEXEC: u64 = 0o2_000_000;
        for (kind, answer) in [(1, Action::Allow), (5, Action::Allow), (2, EACCES), (3, EACCES)] {
            assert_eq!(ask(&program, arch, "socketpair", &[1, kind]), answer, "type {kind}");
            assert_eq!(ask(&program, arch, "socketpair", &[1, kind | CLOEXEC]), answer);
        }
        assert_eq!(ask(&program, arch, "socket", &[2, 1, 0]), Action::Allow);
    }
}

/// Proves: PROC-7 no-userns
#[test]
fn other_processes_can_be_put_out_of_reach() {
    const EPERM: Action = Action::Errno(1);
    for arch in BOTH {
        let program =
            compiled(&BaselineOptions { deny_others: true, ..BaselineOptions::new(arch) });
        for (name, other, own) in [
            ("prlimit64", [77, 0], [0, 0]),
            ("sched_setaffinity", [77, 0], [0, 8]),
            ("sched_setscheduler", [77, 0], [0, 0]),
            ("setpriority", [0, 77], [0, 0]),
            ("ioprio_set", [1, 77], [1, 0]),
        ] {
            assert_eq!(ask(&program, arch, name, &other), EPERM, "{name}");
            assert_eq!(ask(&program, arch, name, &own), Action::Allow, "{name}");
            assert_eq!(ask(&plain(arch), arch, name, &other), Action::Allow, "{name}");
        }
    }
}

/// Proves: PROC-5 pid-1
#[test]
fn pid_1_is_out_of_reach_of_what_changes_a_process() {
    const EPERM: Action = Action::Errno(1);
    for arch in BOTH {
        let program = plain(arch);
        for (name, refused, allowed) in [
            ("prlimit64", [1, 7], [2, 7]),
            ("prlimit64", [1 | HIGH_BIT, 7], [0, 7]),
            ("sched_setaffinity", [1, 8], [0, 8]),
            ("sched_setscheduler", [1, 0], [11, 0]),
            ("sched_setparam", [1, 0], [0, 0]),
            ("sched_setattr", [1, 0], [0, 0]),
            ("setpriority", [0, 1], [0, 0]),
            ("setpriority", [1, 1], [1, 0]),
            ("setpriority", [2, 0], [1, 77]),
            ("ioprio_set", [1, 1], [1, 0]),
            ("ioprio_set", [2, 1], [2, 0]),
            ("ioprio_set", [3, 0], [1, 77]),
            ("setpgid", [0, 1], [0, 0]),
        ] {
            assert_eq!(ask(&program, arch, name, &refused), EPERM, "{name} {refused:?}");
            assert_eq!(ask(&program, arch, name, &allowed), Action::Allow, "{name} {allowed:?}");
        }
    }
}

/// Proves: SYS-1 personality
#[test]
fn only_plain_personalities_pass() {
    for arch in BOTH {
        let program = plain(arch);
        for allowed in [0, 8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff, u64::MAX] {
            assert_eq!(ask(&program, arch, "personality", &[allowed]), Action::Allow);
        }
        // READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, PER_SVR4.
        for refused in [0x40_0000, 0x10_0000, 1, 0x44_0000] {
            assert_eq!(ask(&program, arch, "personality", &[refused]), EPERM, "{refused:#x}");
        }
    }
}

/// Proves: SYS-1 nested-listener
#[test]
fn programs_may_filter_themselves_without_a_listener() {
    for arch in BOTH {
        let program = plain(arch);
        assert_eq!(ask(&program, arch, "seccomp", &[1, 1]), Action::Allow);
        assert_eq!(ask(&program, arch, "seccomp", &[1, 8]), EPERM);
        assert_eq!(ask(&program, arch, "seccomp", &[1, 0x19 | HIGH_BIT]), EPERM);
    }
}

/// Proves: PROC-5 no-debug
#[test]
fn debugging_is_one_switch() {
    for arch in BOTH {
        let on = compiled(&BaselineOptions { debug: true, ..BaselineOptions::new(arch) });
        let off = plain(arch);
        for name in ["ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"] {
            assert_eq!(ask(&on, arch, name, &[]), Action::Allow, "{name}");
            assert_eq!(ask(&off, arch, name, &[]), EPERM, "{name}");
        }
        assert_eq!(ask(&on, arch, "perf_event_open", &[]), EPERM);
    }
}

type ArgumentsWithMode = fn(u64) -> Vec<u64>;

/// Proves: FS-1 no-setid-file
#[test]
fn set_id_modes_can_be_refused_wherever_a_mode_is_given() {
    const O_CREAT: u64 = 0o100;
    const O_TMPFILE: u64 = 0o20_000_000;
    let changes: [(&str, ArgumentsWithMode); 4] = [
        ("chmod", |mode| vec![0, mode]),
        ("fchmod", |mode| vec![0, mode]),
        ("fchmodat", |mode| vec![0, 0, mode]),
        ("fchmodat2", |mode| vec![0, 0, mode]),
    ];
    let makes: [(&str, ArgumentsWithMode); 7] = [
        ("mknod", |mode| vec![0, mode]),
        ("mknodat", |mode| vec![0, 0, mode]),
        ("creat", |mode| vec![0, mode]),
        ("open", |mode| vec![0, O_CREAT | 1, mode]),
        ("open", |mode| vec![0, O_TMPFILE | 2, mode]),
        ("openat", |mode| vec![0, 0, O_CREAT | 1, mode]),
        ("openat", |mode| vec![0, 0, O_TMPFILE | 2, mode]),
    ];
    for arch in BOTH {
        let plain = BaselineOptions::new(arch);
        let (refusing, ordinary) =
            (spec(&BaselineOptions { refuse_setid_modes: true, ..plain }), spec(&plain));
        let ask = |spec: &FilterSpec, name: &str, args: &[u64]| {
            let mut all = [0; 6];
            all[..args.len()].copy_from_slice(args);
            table::number(arch, name).map(|nr| spec.answer(&SeccompData::new(arch, nr, all)))
        };
        let is = |answer: Option<CallAnswer>, expected: CallAnswer| {
            answer.is_none_or(|it| it == expected)
        };
        let refused = CallAnswer::Refuse(Refusal { errno: 1, notice: Notice::Logged });
        for (name, args) in changes {
            for mode in [0o4755, 0o6000, 0o6755, 0o4000 | HIGH_BIT, 0o104_755] {
                assert!(is(ask(&refusing, name, &args(mode)), refused), "{name} {mode:o}");
            }
            // Only the broker sees whether it is a directory.
            for mode in [0o2755, 0o2000 | HIGH_BIT, 0o102_755] {
                assert!(
                    is(ask(&refusing, name, &args(mode)), CallAnswer::Broker),
                    "{name} {mode:o}"
                );
            }
        }
        for name in ["mkdir", "mkdirat"] {
            let answer = ask(&refusing, name, &[0o6755; 3]);
            assert!(is(answer, CallAnswer::Allow), "the kernel leaves the bits out: {name}");
        }
        for (name, args) in makes {
            for mode in [0o4755, 0o2755, 0o6000, 0o4000 | HIGH_BIT, 0o104_755] {
                assert!(is(ask(&refusing, name, &args(mode)), refused), "{name} {mode:o}");
            }
        }
        for (name, args) in makes.into_iter().chain(changes) {
            assert!(is(ask(&ordinary, name, &args(0o6755)), CallAnswer::Allow), "{name}");
            for mode in [0o755, 0o1777, 0o100_644] {
                assert!(is(ask(&refusing, name, &args(mode)), CallAnswer::Allow), "{name}");
            }
        }
        // Without O_CREAT the register holds whatever was there before.
        assert!(is(ask(&refusing, "openat", &[0, 0, 0, 0o6755]), CallAnswer::Allow));
        let no_such_call = CallAnswer::Refuse(Refusal { errno: 38, notice: Notice::Quiet });
        assert!(is(ask(&refusing, "openat2", &[]), no_such_call));
    }
}

/// Proves: PROC-2 no-fork
#[test]
fn forks_can_be_refused_while_threads_start() {
    for arch in BOTH {
        let program = compiled(&BaselineOptions { deny_fork: true, ..BaselineOptions::new(arch) });
        assert_eq!(ask(&program, arch, "clone", &[0x0120_0011]), EPERM);
        assert_eq!(ask(&program, arch, "clone", &[0x003d_0f00]), Action::Allow);
        for name in ["fork", "vfork"].into_iter().filter(|n| table::number(arch, n).is_some()) {
            assert_eq!(ask(&program, arch, name, &[]), EPERM, "{name}");
        }
    }
}

/// Proves: RES-2 affinity
#[test]
fn the_cpus_of_a_process_can_be_made_its_last() {
    for arch in BOTH {
        let program = compiled(&BaselineOptions { pin_cpus: true, ..BaselineOptions::new(arch) });
        for whose in [0, 77] {
            assert_eq!(ask(&program, arch, "sched_setaffinity", &[whose, 8]), EPERM);
        }
        assert_eq!(ask(&program, arch, "sched_getaffinity", &[0, 8]), Action::Allow);
        assert_eq!(ask(&program, arch, "sched_setscheduler", &[0, 0]), Action::Allow);
    }
}

/// Proves: PROC-2 executables
#[test]
fn files_in_memory_can_be_kept_from_being_programs() {
    const MFD_CLOEXEC: u64 = 0x1;
    const MFD_NOEXEC_SEAL: u64 = 0x8;
    for arch in BOTH {
        let options =
            BaselineOptions { deny_anonymous_programs: true, ..BaselineOptions::new(arch) };
        let (denying, plain) = (compiled(&options), plain(arch));
        assert_eq!(ask(&denying, arch, "memfd_create", &[0, MFD_CLOEXEC]), Action::Errno(13));
        let sealed = [0, MFD_CLOEXEC | MFD_NOEXEC_SEAL];
        assert_eq!(ask(&denying, arch, "memfd_create", &sealed), Action::Allow);
        assert_eq!(ask(&plain, arch, "memfd_create", &[0, MFD_CLOEXEC]), Action::Allow);
        let without = BaselineOptions { deny_memory_files: true, ..BaselineOptions::new(arch) };
        assert_eq!(ask(&compiled(&without), arch, "memfd_create", &sealed), Action::Errno(13));
    }
}

/// Proves: SYS-1 reasons
#[test]
fn every_group_says_why() {
    for group in groups() {
        assert!(group.reason.len() > 8, "{} has no reason", group.name);
        assert!(!group.entries.is_empty(), "{} decides nothing", group.name);
    }
}

/// Proves: SYS-1 filter-exact
///
/// The kernel translates and compiles every instruction at each start.
#[test]
fn the_program_stays_small() {
    for arch in BOTH {
        for options in many_options(arch) {
            let program = spec(&options).compile(Listening::Yes).expect("compiles");
            let length = program.instructions().len();
            // Without namespaces the filter has more to do, and so with a broker.
            let more = [
                options.deny_others,
                options.guard_writes,
                options.gate_paths,
                options.gate_programs,
            ];
            let most = 250 + 35 * more.into_iter().filter(|more| *more).count();
            assert!(length < most, "{length} instructions for {options:?}");
        }
    }
}
