//! Installs a compiled filter in the kernel, for a run and for the checks of `doctor`. Must never change what
//! the filter says.

use crate::error::{During as _, LaunchError, Result};
use palisade_bpf::{Arch, CallAnswer, FilterSpec, Insn, Listening, Program, SeccompData, table};
use palisade_plan::model::Plan;
use palisade_sys::seccomp::{self, SeccompFlags, SockFilter};
use palisade_sys::{Errno, SysError};
use std::os::fd::OwnedFd;

pub(crate) const STEP: &str = "installing the system call filter";

/// Translates a filter for the kernel.
pub(crate) fn compile(filter: &FilterSpec, listening: Listening) -> Result<Program> {
    filter.compile(listening).map_err(|error| LaunchError::new(STEP, error.to_string()))
}

/// The filter of the command, if the plan has one.
pub(crate) fn of_plan(plan: &Plan) -> Result<Option<Program>> {
    let seccomp = plan.sandbox.seccomp.as_ref();
    seccomp.map(|seccomp| compile(&seccomp.filter, Listening::Yes)).transpose()
}

/// Whether a process under the command's filter may give back memory, without being refused or reported for it.
pub(crate) fn lets_give_back_memory(plan: &Plan) -> bool {
    let arch = Arch::native();
    let Some(nr) = table::number(arch, "madvise") else { return false };
    let call = SeccompData { nr, arch: arch.audit_value(), instruction_pointer: 0, args: [0; 6] };
    let answer = plan.sandbox.seccomp.as_ref().map(|seccomp| seccomp.filter.answer(&call));
    matches!(answer, None | Some(CallAnswer::Allow))
}

/// Installs a filter on this process and all its children to come.
pub(crate) fn install(program: &[Insn], flags: SeccompFlags) -> Result<Option<OwnedFd>, SysError> {
    let filter: Vec<SockFilter> = program
        .iter()
        .map(|insn| SockFilter { code: insn.code, jt: insn.jt, jf: insn.jf, k: insn.k })
        .collect();
    seccomp::install(&filter, flags)
}

/// From now on this process can make only the calls that the filter allows.
pub(crate) fn confine(filter: &FilterSpec) -> Result<()> {
    let program = compile(filter, Listening::No)?;
    install(program.instructions(), SeccompFlags::NONE).map(drop).during(STEP)
}

/// Installs a filter and returns the descriptor on which its notifications arrive. Where the kernel supports it
/// (5.19), only a fatal signal interrupts a call that is being answered: a restart would perform everything
/// twice.
pub(crate) fn install_with_listener(program: &[Insn]) -> Result<OwnedFd> {
    let both = SeccompFlags::NEW_LISTENER | SeccompFlags::WAIT_KILLABLE_RECV;
    let listener = match install(program, both) {
        Err(error) if error.errno == Errno::INVAL => install(program, SeccompFlags::NEW_LISTENER),
        installed => installed,
    };
    match listener {
        Ok(Some(listener)) => Ok(listener),
        Ok(None) => Err(LaunchError::new(STEP, "the kernel gave no listener")),
        Err(error) if error.errno == Errno::BUSY => Err(LaunchError::new(STEP, error.to_string())
            .with_fix("another sandbox around this one listens already; run outside of it")),
        Err(error) => Err(LaunchError::new(STEP, error.to_string())),
    }
}
