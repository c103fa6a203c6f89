use super::*;
use crate::interp::SeccompData;
use crate::test_support::{BOTH, answer, ask};

/// Proves: SYS-1 init
#[test]
fn init_may_reap_and_talk_and_dies_of_anything_else() {
    for arch in BOTH {
        let program = init_spec(arch).compile().expect("compiles");
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
        let program = init_spec(arch).compile().expect("compiles");
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
