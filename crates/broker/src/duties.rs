//! What a broker has to do, and with whose identity.

use palisade_bpf::FilterSpec;
use palisade_plan::model::{Executables, Gate, Guard};
use std::path::PathBuf;

/// What the broker is to do.
#[derive(Clone, Debug)]
pub struct Duties<'p> {
    /// None: refused calls are only reported.
    pub guard: Option<&'p Guard>,
    /// The programs that Landlock allows. None: every notified exec is refused.
    pub executables: Option<&'p Executables>,
    /// Overlays in which directories are renamed, as the sandbox has them.
    pub transactions: Vec<PathBuf>,
    /// Writable mounts of the run's own where Landlock gives the command all rights, as the sandbox has them.
    pub own_mounts: Vec<PathBuf>,
    /// None: nothing is asked about.
    pub gate: Option<&'p Gate>,
    /// The command's filter, as a description.
    pub filter: &'p FilterSpec,
    pub identity: CommandIdentity,
    /// Whether Landlock handles truncation in this run.
    pub landlock_truncates: bool,
    /// Whether performed calls are told, for the audit log.
    pub records_operations: bool,
    /// Trees of the host whose files are not root's there, as the sandbox has them.
    pub trees_of_others: Vec<PathBuf>,
}

/// Who the command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandIdentity {
    /// The caller, in the caller's namespaces.
    Caller,
    /// The caller, in a user namespace that maps only it.
    CallerMapped,
    /// Another one, given by root.
    Given { uid: u32, gid: u32 },
}
