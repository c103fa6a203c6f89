//! What this version can not enforce, as data: asking for it refuses the run, nothing is ignored.
//!
//! When a later version enforces a key, its entry goes; nothing else has to change.

use crate::diagnostic::{Diagnostic, Problem};
use crate::layers::Merged;
use crate::model::{NetworkMode, Policy};

struct Unenforced {
    key: &'static str,
    /// Whether the policy asks for something here; "nothing" is always held.
    asked: fn(&Policy) -> bool,
    why: &'static str,
    instead: &'static str,
}

#[rustfmt::skip] // A table.
const UNENFORCED: &[Unenforced] = &[
    Unenforced {
        key: "filesystem.maxTotalSize", asked: |p| p.filesystem.max_total_size.is_some(),
        why: "space held outside /tmp and /var/tmp is not counted", instead: "set `tmpSize` and `maxFileSize`",
    },
    Unenforced {
        key: "filesystem.maxInodes", asked: |p| p.filesystem.max_inodes.is_some(),
        why: "inodes are not counted", instead: "remove the key",
    },
    Unenforced {
        key: "process.allowFork", asked: |p| !p.process.allow_fork,
        why: "fork can not be forbidden yet", instead: "set `maxProcesses`",
    },
    Unenforced {
        key: "process.allowExec", asked: |p| !p.process.allow_exec,
        why: "exec can not be forbidden yet", instead: "remove the key",
    },
    Unenforced {
        key: "process.allowedExecutables", asked: |p| !p.process.allowed_executables.is_empty(),
        why: "executables are not told apart yet", instead: "hide programs with `deniedPaths`",
    },
    Unenforced {
        key: "process.uid", asked: |p| p.process.uid.is_some(),
        why: "the user id inside can not be chosen yet", instead: "remove the key",
    },
    Unenforced {
        key: "process.gid", asked: |p| p.process.gid.is_some(),
        why: "the group id inside can not be chosen yet", instead: "remove the key",
    },
    Unenforced {
        key: "network.mode", asked: |p| matches!(p.network.mode, NetworkMode::Proxy | NetworkMode::Nat),
        why: "there is no egress by proxy or NAT yet", instead: "use `network.mode: none`, or `host` with its approval",
    },
    Unenforced {
        key: "network.allowedHosts", asked: |p| !p.network.allowed_hosts.is_empty(),
        why: "hosts are not filtered yet", instead: "remove the list",
    },
    Unenforced {
        key: "network.deniedHosts", asked: |p| !p.network.denied_hosts.is_empty() && p.network.mode != NetworkMode::None,
        why: "hosts are not filtered yet", instead: "use `network.mode: none`",
    },
    Unenforced {
        key: "network.allowedPorts", asked: |p| !p.network.allowed_ports.is_empty(),
        why: "ports are not filtered yet", instead: "remove the list",
    },
    Unenforced {
        key: "network.maxConnections", asked: |p| p.network.max_connections.is_some_and(|most| most > 0 || p.network.mode != NetworkMode::None),
        why: "connections are not counted yet", instead: "remove the key",
    },
    Unenforced {
        key: "resources.maxCPU", asked: |p| p.resources.max_cpu.is_some(),
        why: "CPU time is not limited yet", instead: "set `timeout`",
    },
    Unenforced {
        key: "resources.maxMemory", asked: |p| p.resources.max_memory.is_some(),
        why: "memory is not limited yet", instead: "remove the key",
    },
    Unenforced {
        key: "resources.cpus", asked: |p| p.resources.milli_cpus.is_some(),
        why: "the CPU quota is not set yet", instead: "remove the key",
    },
    Unenforced {
        key: "resources.maxIOBandwidth", asked: |p| p.resources.max_io_bandwidth.is_some(),
        why: "I/O is not limited yet", instead: "remove the key",
    },
    Unenforced {
        key: "resources.maxIOPS", asked: |p| p.resources.max_iops.is_some(),
        why: "I/O is not limited yet", instead: "remove the key",
    },
    Unenforced {
        key: "resources.maxOutputSize", asked: |p| p.resources.max_output_size.is_some(),
        why: "output is not cut off yet", instead: "remove the key",
    },
];

/// Everything the merged policy asks for that this version can not hold.
pub fn not_enforced(merged: &Merged) -> Vec<Diagnostic> {
    let asked = UNENFORCED.iter().filter(|entry| (entry.asked)(&merged.policy));
    let mut found: Vec<Diagnostic> = asked
        .filter_map(|entry| {
            let origin = &merged.settings.get(entry.key)?.origin;
            let message = format!("`{}` is not enforced in this version: {}", entry.key, entry.why);
            let problem = Diagnostic::new(Problem::NotEnforced, origin, entry.key, message);
            Some(problem.suggest(entry.instead))
        })
        .collect();
    found.extend(merged.refused.iter().cloned());
    found
}

#[cfg(test)]
#[path = "enforced_tests.rs"]
mod tests;
