//! What the sender gives up before it talks to a collector: everything but connections, memory and clocks.

use palisade_bpf::{Arch, Listening, egress_spec};
use palisade_sys::seccomp::{self, SeccompFlags, SockFilter};
use palisade_sys::{SysError, creds};

#[derive(Debug, thiserror::Error)]
pub(super) enum ConfineError {
    #[error(transparent)]
    System(#[from] SysError),
    #[error("the filter does not compile: {0}")]
    Filter(String),
}

/// The filter is that of the process that carries a sandbox's connections out (`resources/seccomp/egress.txt`): it needs the same, and any
/// other call ends it. For a process with one thread.
pub(super) fn confine() -> Result<(), ConfineError> {
    creds::set_no_new_privs()?;
    let program = egress_spec(Arch::native()).compile(Listening::No);
    let program = program.map_err(|error| ConfineError::Filter(error.to_string()))?;
    let filter: Vec<SockFilter> = program
        .instructions()
        .iter()
        .map(|insn| SockFilter { code: insn.code, jt: insn.jt, jf: insn.jf, k: insn.k })
        .collect();
    seccomp::install(&filter, SeccompFlags::NONE)?;
    Ok(())
}
