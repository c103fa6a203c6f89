//! Chooses the command's system call filter, and the notes about it.

use crate::error::Result;
use crate::model::{Seccomp, Trigger};
use palisade_bpf::BaselineOptions;
use palisade_bpf::{Arch, ListMode, Profile, Switch};
use palisade_policy::model::{Policy, SyscallMode};

/// Calls that a policy's own whitelist cannot exclude: the command's first exec, its exit, and its last
/// messages to pid 1 and the broker, on sockets that exec closes.
const FIRST_EXEC: [&str; 5] = ["execve", "exit", "exit_group", "read", "write"];

/// What no namespace restricts, so that the filter must.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unheld {
    pub(crate) inet: bool,
    pub(crate) unix: bool,
    pub(crate) processes: bool,
    /// The broker performs what creates names: it judges them, or asks about them.
    pub(crate) creations: bool,
    /// There is an overlay whose directories the kernel does not rename.
    pub(crate) directories: bool,
    /// Paths are asked about if they are missing, and this notices their use.
    pub(crate) paths: Option<Trigger>,
    /// Using other CPUs than those a process starts with.
    pub(crate) cpus: bool,
    /// Files that belong to root, for a command that root started.
    pub(crate) root_files: bool,
}

pub(crate) fn choose(policy: &Policy, unheld: Unheld) -> Result<Seccomp> {
    let arch = Arch::native();
    let options = BaselineOptions {
        arch,
        debug: policy.process.debug,
        // Also for ordinary users: another user who runs such a file would get the caller's rights, and neither
        // git nor tar needs the bits (F14).
        refuse_setid_modes: true,
        map_root_owner: unheld.root_files,
        deny_inet: unheld.inet,
        deny_unix: unheld.unix,
        deny_others: unheld.processes,
        deny_fork: !policy.process.allow_fork,
        pin_cpus: unheld.cpus,
        deny_anonymous_programs: !policy.process.allowed_executables.is_empty(),
        deny_memory_files: !policy.filesystem.execute_written,
        guard_writes: unheld.creations,
        gate_paths: unheld.paths == Some(Trigger::Notify),
        gate_stubs: unheld.paths == Some(Trigger::Fuse),
        gate_programs: unheld.paths.is_some(),
        rename_directories: unheld.directories,
        guard_exec: !policy.process.allow_exec,
        watch_exec: !policy.process.allowed_executables.is_empty(),
    };
    let (profile, rules) = choose_profile(policy, options)?;
    let filter = rules.spec();
    let max_blocked = policy.syscalls.max_blocked;
    Ok(Seccomp { profile, max_blocked, rules, filter })
}

/// The policy key that determines a switch in [`choose`]; `None` if the switch does not depend on the policy.
pub fn key_of(switch: Switch) -> Option<&'static str> {
    match switch {
        Switch::Debug => Some("process.debug"),
        Switch::RefuseSetidModes | Switch::MapRootOwner => None,
        Switch::DenyInet => Some("network.mode"),
        Switch::DenyUnix | Switch::DenyOthers => Some("process.userNamespace"),
        Switch::DenyFork => Some("process.allowFork"),
        Switch::PinCpus => Some("resources.cpus"),
        Switch::DenyAnonymousPrograms | Switch::WatchExec => Some("process.allowedExecutables"),
        Switch::DenyMemoryFiles => Some("filesystem.executeWritten"),
        Switch::GatePaths | Switch::GatePrograms | Switch::AskChanges => Some("mode"),
        Switch::GateStubs => Some("gate"),
        Switch::GuardWrites => Some("filesystem.protectNames"),
        Switch::RenameDirectories => Some("filesystem.project"),
        Switch::GuardExec => Some("process.allowExec"),
    }
}

fn choose_profile(policy: &Policy, options: BaselineOptions) -> Result<(String, Profile)> {
    let names = policy.syscalls.syscalls.iter().map(String::as_str);
    Ok(match policy.syscalls.mode {
        SyscallMode::Whitelist if policy.syscalls.syscalls.is_empty() => {
            ("baseline".to_owned(), Profile::baseline(options))
        }
        SyscallMode::Whitelist => {
            let names = names.chain(FIRST_EXEC);
            let rules = Profile::with_list(options, ListMode::Whitelist, names)?;
            (format!("only {} named calls", policy.syscalls.syscalls.len()), rules)
        }
        SyscallMode::Blacklist => {
            let rules = Profile::with_list(options, ListMode::Blacklist, names)?;
            (format!("all but {} named calls", policy.syscalls.syscalls.len()), rules)
        }
    })
}
