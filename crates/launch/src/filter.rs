//! Hands a compiled filter to the kernel, in a run and in what `doctor` tries.
//! Must never change what the filter says.

use crate::error::LaunchError;
use palisade_bpf::{FilterSpec, Insn, Program};
use palisade_sys::Result;
use palisade_sys::seccomp::{self, SeccompFlags, SockFilter};
use std::os::fd::OwnedFd;

pub(crate) const STEP: &str = "installing the system call filter";

/// Translates a filter for the kernel.
pub(crate) fn compile(filter: &FilterSpec) -> std::result::Result<Program, LaunchError> {
    filter.compile().map_err(|error| LaunchError::new(STEP, error.to_string()))
}

/// Installs a filter on this process and all its children to come.
pub(crate) fn install(program: &[Insn], flags: SeccompFlags) -> Result<Option<OwnedFd>> {
    let filter: Vec<SockFilter> = program
        .iter()
        .map(|insn| SockFilter { code: insn.code, jt: insn.jt, jf: insn.jf, k: insn.k })
        .collect();
    seccomp::install(&filter, flags)
}
