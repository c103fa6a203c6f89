//! Which namespaces a level has, and what is not possible without them (POL-1, PROC-4, NET-1).

use crate::error::{PlanError, Result};
use crate::model::{Identity, Namespaces};
use palisade_policy::model::{Level, NetworkMode, OnAsk, Policy};

/// The host name if the policy sets none.
pub(crate) const DEFAULT_HOSTNAME: &str = "sandbox";
/// The lowest port that the command may bind. Lower ports belong to the listeners that the packet rules lead to
/// (`launch/src/network.rs`).
const LOWEST_PORT: u16 = 3;

/// Refuses settings about questions in a run that never asks any: they would have no effect.
pub(crate) fn refuse_unasked(policy: &Policy, asks: bool) -> Result<()> {
    let needs = "dynamic mode, the host view and namespaces; leave it out or use deny";
    match policy.on_ask {
        OnAsk::Allow if !asks => Err(PlanError::NothingIsAsked { what: "--on-ask allow", needs }),
        OnAsk::Wait if !asks => Err(PlanError::NothingIsAsked { what: "--on-ask wait", needs }),
        OnAsk::Ask | OnAsk::Deny | OnAsk::Allow | OnAsk::Wait => Ok(()),
    }
}

pub(crate) fn choose(policy: &Policy) -> Result<Namespaces> {
    let full = policy.isolation_level == Level::Full;
    if !full {
        if policy.process.hostname != DEFAULT_HOSTNAME {
            return Err(PlanError::NeedsNamespaces {
                what: "a host name of its own",
                fix: "use LEVEL_2",
            });
        }
        if policy.process.time_offset.is_some() {
            return Err(PlanError::NeedsNamespaces { what: "a time offset", fix: "use LEVEL_2" });
        }
    }
    Ok(Namespaces {
        mount: true,
        pid: true,
        net: policy.network.mode != NetworkMode::Host,
        uts: full,
        ipc: full,
        cgroup: full,
        time_offset: policy.process.time_offset,
    })
}

/// Settings in which a new network namespace differs from a host in use.
pub(crate) fn network_settings(
    policy: &Policy,
    identity: &Identity,
) -> Vec<(&'static str, String)> {
    let mode = policy.network.mode;
    let mut settings = Vec::new();
    // Not with a proxy: there every address belongs to the namespace, so an unreachable one would seem to
    // reply.
    if matches!(mode, NetworkMode::None | NetworkMode::Nat) {
        // In a new namespace nobody may send a ping, while systemd allows it to all groups of a host.
        let group = identity.inside_gid;
        settings.push(("ipv4/ping_group_range", format!("{group} {group}")));
    }
    // No other machine is in this network, so low ports need no protection. With nat or the host's network they
    // could be visible outside.
    if matches!(mode, NetworkMode::None | NetworkMode::Proxy) {
        settings.push(("ipv4/ip_unprivileged_port_start", LOWEST_PORT.to_string()));
    }
    settings
}

/// Refuses what is not possible without namespaces.
pub(crate) fn refuse_without_namespaces(policy: &Policy, is_root: bool) -> Result<()> {
    let needs = |what, fix| Err(PlanError::NeedsNamespaces { what, fix });
    if policy.isolation_level != Level::Process {
        return needs("this isolation level", "ask for LEVEL_1 with --no-userns (--level 1)");
    }
    if is_root {
        return needs(
            "running for root",
            "without them the command would be root on the host; start as an ordinary user",
        );
    }
    if policy.view == palisade_policy::model::View::Minimal {
        return needs("the minimal view", "use the host view");
    }
    if !policy.filesystem.overlay_paths.is_empty() {
        return needs("--overlay", "use --ro or --rw");
    }
    if policy.filesystem.project.is_transaction() {
        return needs("--transaction", "do without --no-userns");
    }
    if policy.filesystem.root_path.is_some() {
        return needs("rootPath", "take it out");
    }
    if !policy.filesystem.execute_written {
        return needs(
            "executeWritten: false",
            "take it out, or list programs (allowedExecutables)",
        );
    }
    if let Some(what) = of_a_network_of_its_own(policy) {
        return needs(what, "use --network none or host, or do without --no-userns");
    }
    choose(policy).map(|_| ())
}

/// A setting that needs a network namespace. The policy crate reports it with its position in a file, but a
/// policy that a program builds does not pass through there.
fn of_a_network_of_its_own(policy: &Policy) -> Option<&'static str> {
    match policy.network.mode {
        NetworkMode::Proxy => Some("network mode proxy"),
        NetworkMode::Nat => Some("network mode nat"),
        NetworkMode::None | NetworkMode::Host if !policy.network.publish.is_empty() => {
            Some("--publish")
        }
        NetworkMode::None | NetworkMode::Host => None,
    }
}

/// Refuses settings that have no effect without isolation.
pub(crate) fn refuse_at_level_0(policy: &Policy) -> Result<()> {
    let filesystem = &policy.filesystem;
    let asked = [
        ("--ro", !filesystem.read_only_paths.is_empty()),
        ("--rw", !filesystem.read_write_paths.is_empty()),
        ("--overlay", !filesystem.overlay_paths.is_empty()),
        ("--transaction", filesystem.project.is_transaction()),
        ("--blacklist", !filesystem.denied_paths.is_empty()),
        ("--allow-write", !filesystem.unprotected_paths.is_empty()),
        ("--build-dir", !filesystem.build_dirs.is_empty()),
        ("executeWritten: false", !filesystem.execute_written),
        ("rootPath", filesystem.root_path.is_some()),
        ("a host name of its own", policy.process.hostname != DEFAULT_HOSTNAME),
        ("a time offset", policy.process.time_offset.is_some()),
        ("allowFork: false", !policy.process.allow_fork),
        ("allowExec: false", !policy.process.allow_exec),
        ("allowedExecutables", !policy.process.allowed_executables.is_empty()),
        ("a list of system calls", !policy.syscalls.syscalls.is_empty()),
        ("--no-userns", !policy.process.user_namespace),
    ];
    let asked = asked.into_iter().find(|(_, is_asked)| *is_asked).map(|(what, _)| what);
    match asked.or_else(|| of_a_network_of_its_own(policy)) {
        Some(what) => Err(PlanError::NoIsolation { what }),
        None => Ok(()),
    }
}
