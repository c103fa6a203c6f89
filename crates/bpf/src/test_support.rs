//! What several tests need: the plain meaning of a specification, and a short way to ask a program.

use crate::interp::{self, SeccompData};
use crate::{
    Action, Arch, Arg, CallAnswer, Condition, FilterSpec, Listening, Notice, Program, Refusal,
    Rule, Test, Width, table,
};

pub(crate) const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
pub(crate) const LISTENING_OR_NOT: [Listening; 2] = [Listening::Yes, Listening::No];

pub(crate) fn number(arch: Arch, name: &str) -> u32 {
    table::number(arch, name).unwrap_or_else(|| panic!("{name} is not in the table of {arch:?}"))
}

pub(crate) fn answer(program: &Program, data: &SeccompData) -> Action {
    let raw = interp::run(program, data);
    Action::from_raw(raw).unwrap_or_else(|| panic!("{raw:#x} for {data:x?}"))
}

/// Asks about one call, by name and first arguments.
pub(crate) fn ask(program: &Program, arch: Arch, name: &str, args: &[u64]) -> Action {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    answer(program, &SeccompData::new(arch, number(arch, name), all))
}

pub(crate) fn condition(arg: Arg, width: Width, test: Test) -> Condition {
    Condition { arg, width, test }
}

pub(crate) fn rule(syscall: u32, conditions: &[Condition], answer: CallAnswer) -> Rule {
    Rule { syscall, conditions: conditions.to_vec(), answer }
}

pub(crate) fn quietly(errno: u16) -> CallAnswer {
    CallAnswer::Refuse(Refusal { errno, notice: Notice::Quiet })
}

pub(crate) fn logged(errno: u16) -> CallAnswer {
    CallAnswer::Refuse(Refusal { errno, notice: Notice::Logged })
}

pub(crate) fn suspicious(errno: u16) -> CallAnswer {
    CallAnswer::Refuse(Refusal { errno, notice: Notice::Suspicious })
}

/// The meaning of a specification under a listener or without, said as plainly as can be.
pub(crate) fn meaning(spec: &FilterSpec, listening: Listening, data: &SeccompData) -> Action {
    match (spec.answer(data), listening) {
        (CallAnswer::Allow, _) => Action::Allow,
        (CallAnswer::KillProcess, _) => Action::KillProcess,
        (CallAnswer::Broker, Listening::Yes) => Action::Notify,
        (CallAnswer::Broker, Listening::No) => panic!("compiled without a listener: {data:x?}"),
        (CallAnswer::Refuse(Refusal { notice, .. }), Listening::Yes) if notice > Notice::Quiet => {
            Action::Notify
        }
        (CallAnswer::Refuse(Refusal { errno, .. }), _) => Action::Errno(errno),
    }
}

/// What `seccomp_is_const_allow()` of the kernel finds: does the program allow this number without
/// looking at anything but number and architecture?
pub(crate) fn is_constantly_allowed(program: &Program, arch: Arch, nr: u32) -> bool {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let insn = program.instructions()[at];
        at += 1;
        let branch = |holds: bool| usize::from(if holds { insn.jt } else { insn.jf });
        match (insn.code, insn.k) {
            (0x20, 0) => accumulator = nr,
            (0x20, 4) => accumulator = arch.audit_value(),
            (0x06, k) => return Action::from_raw(k) == Some(Action::Allow),
            (0x05, k) => at += k as usize,
            (0x15, k) => at += branch(accumulator == k),
            (0x25, k) => at += branch(accumulator > k),
            (0x35, k) => at += branch(accumulator >= k),
            (0x45, k) => at += branch(accumulator & k != 0),
            (0x54, k) => accumulator &= k,
            _ => return false,
        }
    }
}
