//! Decides whether a sandbox can run further commands, before anything is started.
//!
//! A spawner starts every command of such a sandbox, under the same restrictions as the command. The filter
//! must therefore allow the calls that starting a command needs, and limits must apply to each command. This
//! module must never loosen a restriction to achieve that: if a plan cannot support further commands, it is
//! refused.

use crate::error::{PlanError, Result};
use crate::model::{Confinement, Plan, SandboxLifetime};
use palisade_bpf::{Arch, CallAnswer, FilterSpec, SeccompData, table};

/// clone(2): the flags of the spawner's fork, `CLONE_PIDFD` and `SIGCHLD`.
const FORK_FLAGS: u64 = 0x1000 | 17;

/// sendmsg(2): `MSG_NOSIGNAL` and `MSG_DONTWAIT`.
const SEND_FLAGS: u64 = 0x4040;
/// ioctl(2): `TCGETS`, by which a terminal is known.
const IS_TERMINAL: u64 = 0x5401;
/// By which streams are put into place: newer architectures lack dup2(2).
const DUPLICATE: &str = if cfg!(target_arch = "x86_64") { "dup2" } else { "dup3" };
/// fcntl(2): `F_GETFL`.
const GET_FLAGS: u64 = 3;

/// The calls that the spawner and its forks make under the filter before a command's exec, with the arguments that a
/// filter examines. What every program needs (memory, exec, exit) is not among them.
const SPAWNER_CALLS: [(&str, [u64; 6]); 20] = [
    ("clone", [FORK_FLAGS, 0, 0, 0, 0, 0]),
    ("wait4", [0; 6]),
    ("kill", [0; 6]),
    ("recvmsg", [0; 6]),
    ("sendmsg", [0, 0, SEND_FLAGS, 0, 0, 0]),
    ("ppoll", [0; 6]),
    ("socketpair", [1, 5, 0, 0, 0, 0]),
    ("read", [0; 6]),
    ("write", [0; 6]),
    ("close", [0; 6]),
    ("close_range", [0; 6]),
    (DUPLICATE, [0; 6]),
    ("ioctl", [0, IS_TERMINAL, 0, 0, 0, 0]),
    ("fstat", [0; 6]),
    ("fcntl", [0, GET_FLAGS, 0, 0, 0, 0]),
    ("setsid", [0; 6]),
    ("prctl", [0; 6]),
    ("prlimit64", [0; 6]),
    ("rt_sigaction", [0; 6]),
    ("rt_sigprocmask", [0; 6]),
];

impl Plan {
    /// The same sandbox where no command starts, and a process of ours works on files for a client. It has no streams to
    /// limit, and what it takes is bounded by what it does.
    #[must_use]
    pub fn for_files(mut self) -> Self {
        self.supervision.max_output = None;
        let watch = &mut self.supervision.watch;
        (watch.memory, watch.cpu_time_ms, watch.tasks) = (None, None, None);
        self
    }

    /// The same sandbox, kept until its supervisor ends it.
    pub fn until_ended(mut self) -> Result<Self> {
        let refused = |why: String, fix| Err(PlanError::NoFurtherCommands { why, fix });
        match &self.sandbox.confinement {
            Confinement::Namespaces(inside) if inside.namespaces.pid && inside.namespaces.mount => {
            }
            _ => {
                return refused(
                    "without a pid namespace of its own a command could kill the process that starts the others"
                        .to_owned(),
                    "use isolation level 2 with user namespaces",
                );
            }
        }
        if self.supervision.max_output.is_some() {
            return refused(
                "a limit on output covers only the streams of one command".to_owned(),
                "leave out --max-output, and limit what you read from each command",
            );
        }
        // Polling follows one command: its processes and, through it, the file systems of the run.
        let watch = &self.supervision.watch;
        if watch.needs_processes() || watch.disk.is_some() || watch.inodes.is_some() {
            return refused(
                "a limit is enforced by polling, which follows one command".to_owned(),
                "use a host with a delegated control group, or waive the limit",
            );
        }
        if let Some(seccomp) = &self.sandbox.seccomp
            && let Some(call) = refused_call(&seccomp.filter)
        {
            return refused(
                format!("the system call filter refuses {call}, which starting a command needs"),
                "allow it in the policy",
            );
        }
        self.sandbox.lifetime = SandboxLifetime::UntilEnded;
        Ok(self)
    }
}

fn refused_call(filter: &FilterSpec) -> Option<&'static str> {
    let arch = Arch::native();
    let is_allowed = |name: &str, args: [u64; 6]| {
        let Some(nr) = table::number(arch, name) else { return false };
        let call = SeccompData { nr, arch: arch.audit_value(), instruction_pointer: 0, args };
        filter.answer(&call) == CallAnswer::Allow
    };
    SPAWNER_CALLS.into_iter().find(|(name, args)| !is_allowed(name, *args)).map(|(name, _)| name)
}

#[cfg(test)]
#[path = "lifetime_tests.rs"]
mod tests;
