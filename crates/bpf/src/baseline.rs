//! The filter that every sandboxed command gets unless its policy has its own list: an allow-list whose content
//! and reasons are in `resources/seccomp/baseline.txt`. It must never allow a number that the file does not
//! name.

use serde::{Deserialize, Serialize};

use crate::Arch;
use crate::groups::{BASELINE, Group, Switch};

pub(crate) const ENOSYS: u16 = 38;

/// What the plan may turn on or off; the file lists which calls each switch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BaselineOptions {
    pub arch: Arch,
    /// Tracing among the sandbox's own processes (PROC-5).
    pub debug: bool,
    /// Refuses file modes with a set-user-id or set-group-id bit: for commands started by root, whose files may belong
    /// to root outside.
    pub refuse_setid_modes: bool,
    /// The broker performs calls that change a file's owner to root: for commands started by root, whose own files
    /// belong to root outside and to another user inside.
    pub map_root_owner: bool,
    /// Refuses internet sockets: where there is no network namespace to confine them.
    pub deny_inet: bool,
    /// Refuses sockets that could be connected to a path. Without a mount view, any service of the host that the user
    /// may talk to (the session bus, a container engine) would run commands outside on request. Landlock has no rule
    /// for it. Socket pairs stay allowed.
    pub deny_unix: bool,
    /// Refuses limits, priorities and affinities of other processes. Without a pid namespace, those of the same user
    /// are reachable, and a CPU limit of zero kills. Landlock scopes signals only.
    pub deny_others: bool,
    /// Allows threads, but no further processes.
    pub deny_fork: bool,
    /// Refuses to change CPU affinity: where the initial mask is the limit.
    pub pin_cpus: bool,
    /// Refuses executable files in memory: where programs are allowed by path. Landlock, which enforces that, does not
    /// restrict files on internal mounts.
    pub deny_anonymous_programs: bool,
    /// Refuses all files in memory: where nothing that was written may be executed. One that is sealed against exec can still be
    /// mapped as code, by the loader or as a library.
    pub deny_memory_files: bool,
    /// The broker performs calls that create, open for writing or name a file.
    pub guard_writes: bool,
    /// The broker is notified of calls that name a path and write nothing, and lets them continue: at once if the path
    /// exists, else after somebody was asked. The mount view applies, whatever the answer.
    pub gate_paths: bool,
    /// The broker is notified of those of them that look a name up and nothing else: where a file system notices the others,
    /// and has a name for everything that is not granted.
    pub gate_stubs: bool,
    /// The broker is notified of those calls among them that only it can decide, whatever notices the others: exec, whose
    /// loader and interpreter have to be granted with it; `openat2`; and tests for writing.
    pub gate_programs: bool,
    /// The broker renames directories of an overlay, which the kernel answers with `EXDEV` in a user namespace.
    pub rename_directories: bool,
    /// The broker is notified of exec calls and decides about each: where exec is forbidden.
    pub guard_exec: bool,
    /// The broker is notified of exec calls and lets them continue: Landlock decides about programs but reports
    /// nothing.
    pub watch_exec: bool,
}

impl BaselineOptions {
    /// Everything off.
    pub fn new(arch: Arch) -> Self {
        Self {
            arch,
            debug: false,
            refuse_setid_modes: false,
            map_root_owner: false,
            deny_inet: false,
            deny_unix: false,
            deny_others: false,
            deny_fork: false,
            pin_cpus: false,
            deny_anonymous_programs: false,
            deny_memory_files: false,
            guard_writes: false,
            gate_paths: false,
            gate_stubs: false,
            gate_programs: false,
            rename_directories: false,
            guard_exec: false,
            watch_exec: false,
        }
    }

    pub(crate) fn is_on(&self, switch: Switch) -> bool {
        match switch {
            Switch::Debug => self.debug,
            Switch::RefuseSetidModes => self.refuse_setid_modes,
            Switch::MapRootOwner => self.map_root_owner,
            Switch::DenyInet => self.deny_inet,
            Switch::DenyUnix => self.deny_unix,
            Switch::DenyOthers => self.deny_others,
            Switch::DenyFork => self.deny_fork,
            Switch::PinCpus => self.pin_cpus,
            Switch::DenyAnonymousPrograms => self.deny_anonymous_programs,
            Switch::DenyMemoryFiles => self.deny_memory_files,
            Switch::GuardWrites => self.guard_writes,
            Switch::GatePaths => self.gate_paths,
            Switch::GateStubs => self.gate_stubs,
            Switch::GatePrograms => self.gate_programs,
            // Without the broker's writes, an approved change could not be performed.
            Switch::AskChanges => self.gate_programs && self.guard_writes,
            Switch::RenameDirectories => self.rename_directories,
            Switch::GuardExec => self.guard_exec,
            Switch::WatchExec => self.watch_exec,
        }
    }
}

/// The groups in the order of the file.
pub fn groups() -> &'static [Group] {
    BASELINE
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "gate_tests.rs"]
mod gate_tests;
