use super::*;
use crate::interp::SeccompData;
use crate::test_support::{BOTH, answer, ask};
use crate::{Action, Listening};

/// What ends a process of ours that has rights of the host beside a command.
const NEVER_BESIDE_A_COMMAND: [&str; 15] = [
    "execve",
    "execveat",
    "socket",
    "connect",
    "ptrace",
    "mount",
    "pivot_root",
    "chroot",
    "process_vm_readv",
    "pidfd_getfd",
    "kill",
    "capset",
    "setresuid",
    "bpf",
    "ioctl",
];

/// Proves: SYS-1 init
#[test]
fn init_may_reap_and_talk_and_dies_of_anything_else() {
    for arch in BOTH {
        let program = init_spec(arch).compile(Listening::No).expect("compiles");
        for name in ["wait4", "waitid", "kill", "read", "ppoll", "rt_sigreturn", "exit_group"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        for name in ["openat", "execve", "clone", "clone3", "socket", "ptrace", "mount", "setns"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::KillProcess, "{name}");
        }
        for nr in (0..600).filter(|nr| crate::table::name(arch, *nr).is_none()) {
            let data = SeccompData::new(arch, nr, [0; 6]);
            assert_eq!(answer(&program, &data), Action::KillProcess, "{nr}");
        }
    }
}

/// Proves: SYS-1 init
#[test]
fn init_may_only_hand_over_the_terminal() {
    for arch in BOTH {
        let program = init_spec(arch).compile(Listening::No).expect("compiles");
        for (command, expected) in [
            (0x5410, Action::Allow),           // TIOCSPGRP
            (0x5414, Action::Allow),           // TIOCSWINSZ
            (0x5412, Action::Errno(1)),        // TIOCSTI
            (0x1_0000_5412, Action::Errno(1)), // the same with a high bit
            (0x540e, Action::Errno(1)),        // TIOCSCTTY
        ] {
            assert_eq!(ask(&program, arch, "ioctl", &[0, command]), expected, "{command:#x}");
        }
    }
}

/// Proves: SYS-1 broker
#[test]
fn the_broker_may_perform_files_and_starts_nothing() {
    for arch in BOTH {
        let program = broker_spec(arch).compile(Listening::No).expect("compiles");
        for name in ["openat2", "renameat2", "linkat", "process_vm_readv", "pidfd_getfd", "bind"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        for name in ["execve", "execveat", "socket", "connect", "ptrace", "mount", "setns", "kill"]
        {
            assert_eq!(ask(&program, arch, name, &[]), Action::KillProcess, "{name}");
        }
        for namespace in [0x2_0000, 0x1000_0000, 0x4000_0000] {
            let flags = [namespace | 17];
            assert_eq!(ask(&program, arch, "clone", &flags), Action::Errno(1), "{flags:x?}");
        }
        assert_eq!(ask(&program, arch, "clone", &[17]), Action::Allow);
        assert_eq!(ask(&program, arch, "clone3", &[]), Action::Errno(38));
        assert_eq!(ask(&program, arch, "prctl", &[1, 9]), Action::Allow, "PR_SET_PDEATHSIG");
        assert_eq!(ask(&program, arch, "prctl", &[4, 1]), Action::Errno(1), "PR_SET_DUMPABLE");
        for nr in (0..600).filter(|nr| crate::table::name(arch, *nr).is_none()) {
            let data = SeccompData::new(arch, nr, [0; 6]);
            assert_eq!(answer(&program, &data), Action::KillProcess, "{nr}");
        }
    }
}

/// Proves: SYS-1 broker
#[test]
fn the_broker_steers_no_device_but_its_listener() {
    for arch in BOTH {
        let program = broker_spec(arch).compile(Listening::No).expect("compiles");
        // SECCOMP_IOCTL_NOTIF_RECV, _SEND, _ID_VALID, _ADDFD, _SET_FLAGS.
        for request in [0xc050_2100, 0xc018_2101, 0x4008_2102, 0x4018_2103, 0x4008_2104] {
            assert_eq!(ask(&program, arch, "ioctl", &[0, request]), Action::Allow, "{request:#x}");
        }
        for request in [0x5412, 0x541c, 0x5401, 0x1_0000_5412, 0x4020_ae46] {
            assert_eq!(ask(&program, arch, "ioctl", &[0, request]), Action::Errno(1));
        }
    }
}

/// Proves: SYS-1 keeper
#[test]
fn the_keeper_may_mount_and_starts_nothing() {
    for arch in BOTH {
        let program = keeper_spec(arch).compile(Listening::No).expect("compiles");
        for name in ["openat2", "open_tree", "mount_setattr", "move_mount", "umount2", "symlinkat"]
        {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        for name in NEVER_BESIDE_A_COMMAND {
            assert_eq!(ask(&program, arch, name, &[]), Action::KillProcess, "{name}");
        }
        // Between mount namespaces only, and a child only to make an id map.
        assert_eq!(ask(&program, arch, "setns", &[5, 0x2_0000]), Action::Allow);
        for kind in [0, 0x1000_0000, 0x2000_0000, 0x1002_0000] {
            assert_eq!(ask(&program, arch, "setns", &[5, kind]), Action::Errno(1), "{kind:#x}");
        }
        assert_eq!(ask(&program, arch, "clone", &[0x1000_1011]), Action::Allow);
        for flags in [0x11, 0x1002_1011, 0x1000_1111, 0x2000_1011] {
            assert_eq!(ask(&program, arch, "clone", &[flags]), Action::Errno(1), "{flags:#x}");
        }
        assert_eq!(ask(&program, arch, "clone3", &[]), Action::Errno(38));
        assert_eq!(ask(&program, arch, "prctl", &[4, 1]), Action::Errno(1), "PR_SET_DUMPABLE");
    }
}

/// Proves: SYS-1 gate-server
#[test]
fn the_server_of_the_gate_looks_and_starts_nothing() {
    for arch in BOTH {
        let program = gatefs_spec(arch).compile(Listening::No).expect("compiles");
        for name in ["openat2", "getdents64", "mkdirat", "renameat2", "writev", "sendmsg"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        let more =
            ["clone", "clone3", "open_tree", "move_mount", "mount_setattr", "setns", "unshare"];
        for name in NEVER_BESIDE_A_COMMAND.into_iter().chain(more) {
            assert_eq!(ask(&program, arch, name, &[]), Action::KillProcess, "{name}");
        }
        assert_eq!(ask(&program, arch, "prctl", &[1, 9]), Action::Allow, "PR_SET_PDEATHSIG");
        assert_eq!(ask(&program, arch, "prctl", &[4, 1]), Action::Errno(1), "PR_SET_DUMPABLE");
    }
}

/// Proves: SYS-1 egress
#[test]
fn the_egress_process_carries_bytes_and_opens_nothing_else() {
    const SOCK_CLOEXEC: u64 = 0x8_0000;
    for arch in BOTH {
        let program = egress_spec(arch).compile(Listening::No).expect("compiles");
        for name in ["connect", "accept4", "splice", "epoll_pwait", "getrandom", "sendmsg"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        for name in [
            "execve",
            "execveat",
            "openat",
            "openat2",
            "clone",
            "clone3",
            "ptrace",
            "mount",
            "setns",
            "unshare",
            "kill",
            "process_vm_readv",
            "pidfd_getfd",
            "capset",
            "setresuid",
            "bpf",
            "prctl",
            "io_uring_setup",
            "socketpair",
            "listen",
            "memfd_create",
        ] {
            assert_eq!(ask(&program, arch, name, &[]), Action::KillProcess, "{name}");
        }
        for (family, kind, expected) in [
            (2, 1 | SOCK_CLOEXEC, Action::Allow),
            (10, 2, Action::Allow),
            (2, 3, Action::Errno(1)),  // SOCK_RAW
            (1, 1, Action::Errno(1)),  // AF_UNIX
            (16, 3, Action::Errno(1)), // AF_NETLINK
            (17, 3, Action::Errno(1)), // AF_PACKET
        ] {
            assert_eq!(ask(&program, arch, "socket", &[family, kind]), expected, "{family} {kind}");
        }
        for name in ["mmap", "mprotect"] {
            assert_eq!(ask(&program, arch, name, &[0, 0, 3]), Action::Allow);
            assert_eq!(ask(&program, arch, name, &[0, 0, 5]), Action::Errno(1), "PROT_EXEC");
        }
        assert_eq!(ask(&program, arch, "ioctl", &[0, 0x5412]), Action::Errno(1), "TIOCSTI");
    }
}

/// Proves: SYS-1 egress
#[test]
fn the_maker_makes_tcp_sockets_and_connects_none() {
    for arch in BOTH {
        let program = maker_spec(arch).compile(Listening::No).expect("compiles");
        for (family, kind, expected) in [
            (2, 1, Action::Allow),
            (10, 1, Action::Allow),
            (2, 2, Action::Errno(1)),
            (1, 1, Action::Errno(1)),
        ] {
            assert_eq!(ask(&program, arch, "socket", &[family, kind]), expected, "{family} {kind}");
        }
        for name in ["connect", "bind", "openat", "execve", "clone", "setns", "read", "write"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::KillProcess, "{name}");
        }
    }
}

/// Proves: NET-10 confined
#[test]
fn a_proxy_alone_reads_files_and_writes_none_that_is_not_open() {
    for arch in BOTH {
        let program = proxy_spec(arch).compile(Listening::No).expect("compiles");
        for name in ["connect", "accept4", "splice", "read", "pwrite64", "flock", "statx"] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Allow, "{name}");
        }
        assert_eq!(ask(&program, arch, "openat", &[0, 0, 0x8_0000]), Action::Allow, "O_CLOEXEC");
        for flags in [0x1, 0x2, 0x40, 0x200, 0x40_0000] {
            let asked = ask(&program, arch, "openat", &[0, 0, flags]);
            assert_eq!(asked, Action::Errno(1), "{flags:#x}");
        }
        for name in [
            "execve",
            "execveat",
            "openat2",
            "clone",
            "clone3",
            "ptrace",
            "mount",
            "setns",
            "kill",
            "unlinkat",
            "renameat2",
            "process_vm_readv",
            "capset",
            "prctl",
        ] {
            assert_eq!(ask(&program, arch, name, &[]), Action::Errno(1), "{name}");
        }
        assert_eq!(ask(&program, arch, "socket", &[1, 1]), Action::Errno(1), "AF_UNIX");
    }
}
