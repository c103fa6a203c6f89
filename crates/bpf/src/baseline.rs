//! The filter that every sandboxed command gets unless its policy has its own list: an allow-list whose content
//! and reasons are in `resources/seccomp/baseline.txt`. It must never allow a number that the file does not
//! name.

use serde::{Deserialize, Serialize};

use crate::Arch;
use crate::groups::{BASELINE, Group, Switch};

pub(crate) const ENOSYS: u16 = 38;

/// What the plan may turn on or off; the file says which calls each switch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BaselineOptions {
    pub arch: Arch,
    /// Tracing among the sandbox's own processes (PROC-5).
    pub debug: bool,
    /// No file mode with a set-user-id or set-group-id bit: for commands started by root, whose files
    /// may belong to root outside.
    pub refuse_setid_modes: bool,
    /// What gives a file to root is performed by the broker: for commands started by root, whose own files are root's
    /// outside and somebody else's inside.
    pub map_root_owner: bool,
    /// No internet sockets: where there is no network namespace to hold them.
    pub deny_inet: bool,
    /// No sockets that could be connected to a path: where there is no mount view, any service of the
    /// host that the user may talk to (the session bus, a container engine) would run what it is told
    /// outside. Landlock has no rule for it. Pairs of connected sockets stay.
    pub deny_unix: bool,
    /// No limits, priorities or affinities of other processes: where there is no pid namespace, those
    /// of the same user are within reach, and a CPU limit of zero kills. Landlock scopes signals only.
    pub deny_others: bool,
    /// Threads, but no further processes.
    pub deny_fork: bool,
    /// No process changes the CPUs it may run on: where the mask it starts with is the limit.
    pub pin_cpus: bool,
    /// No file in memory that could be executed: where programs are told apart by path, and Landlock, which
    /// does it, lets everything on an internal mount pass.
    pub deny_anonymous_programs: bool,
    /// What creates, opens for writing or gives a name is performed by the broker.
    pub guard_writes: bool,
    /// What names a path and writes nothing is shown to the broker, which lets it go on: at once if the path is
    /// there, else when somebody was asked. The mount view holds, whatever it answers.
    pub gate_paths: bool,
    /// So is starting a program.
    pub guard_exec: bool,
    /// It is shown to the broker, which lets it go on: Landlock, which tells programs apart, tells nobody.
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
            guard_writes: false,
            gate_paths: false,
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
            Switch::GuardWrites => self.guard_writes,
            Switch::GatePaths => self.gate_paths,
            // Without the broker's writing a yes could not be carried out.
            Switch::AskChanges => self.gate_paths && self.guard_writes,
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
#[path = "removal_tests.rs"]
mod removal_tests;
