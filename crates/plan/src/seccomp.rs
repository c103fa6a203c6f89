//! Which filter the command gets, and what a person may know of it.

use crate::error::PlanError;
use crate::model::{Seccomp, SeccompGroup};
use palisade_bpf::BaselineOptions;
use palisade_bpf::baseline;
use palisade_bpf::{Arch, FilterSpec, Group, GroupDecision, ListMode, Switch, custom};
use palisade_policy::model::{Policy, SyscallMode};

/// What a policy's own white list can not leave out: the command's first exec, and its end.
const FIRST_EXEC: [&str; 3] = ["execve", "exit", "exit_group"];

/// What no namespace holds back, so that the filter has to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unheld {
    pub(crate) inet: bool,
    pub(crate) unix: bool,
    pub(crate) processes: bool,
}

pub(crate) fn choose(policy: &Policy, unheld: Unheld) -> Result<Seccomp, PlanError> {
    let arch = Arch::native();
    let options = BaselineOptions {
        arch,
        debug: policy.process.debug,
        // Also for ordinary users: another user who runs such a file would get the caller's rights,
        // and neither git nor tar needs the bits (F14).
        refuse_setid_modes: true,
        deny_inet: unheld.inet,
        deny_unix: unheld.unix,
        deny_others: unheld.processes,
        deny_fork: !policy.process.allow_fork,
    };
    let (profile, filter) = choose_spec(policy, &options)?;
    Ok(Seccomp { profile, summary: summary(policy, &options), filter })
}

fn choose_spec(
    policy: &Policy,
    options: &BaselineOptions,
) -> Result<(String, FilterSpec), PlanError> {
    let names = policy.syscalls.syscalls.iter().map(String::as_str);
    Ok(match policy.syscalls.mode {
        SyscallMode::Whitelist if policy.syscalls.syscalls.is_empty() => {
            ("baseline".to_owned(), baseline::spec(options))
        }
        SyscallMode::Whitelist => {
            let spec = custom(ListMode::Whitelist, names.chain(FIRST_EXEC), options)?;
            (format!("only {} named calls", policy.syscalls.syscalls.len()), spec)
        }
        SyscallMode::Blacklist => {
            let spec = custom(ListMode::Blacklist, names, options)?;
            (format!("all but {} named calls", policy.syscalls.syscalls.len()), spec)
        }
    })
}

/// The groups of the baseline; a policy's own list is shown as it was given.
fn summary(policy: &Policy, options: &BaselineOptions) -> Vec<SeccompGroup> {
    if !policy.syscalls.syscalls.is_empty() {
        let decision = match policy.syscalls.mode {
            SyscallMode::Whitelist => "allow",
            SyscallMode::Blacklist => "refuse",
        };
        return vec![SeccompGroup {
            name: "policy",
            decision,
            reason: "named by the policy; what the baseline always refuses stays refused",
            syscalls: policy.syscalls.syscalls.len(),
        }];
    }
    baseline::groups()
        .iter()
        .map(|group| SeccompGroup {
            name: group.name,
            decision: decision(group, options),
            reason: group.reason,
            syscalls: group
                .entries
                .iter()
                .filter(|entry| entry.number(options.arch).is_some())
                .count(),
        })
        .collect()
}

fn decision(group: &Group, options: &BaselineOptions) -> &'static str {
    let allows = match group.decision {
        GroupDecision::Allow => true,
        GroupDecision::AllowWhen { switch: Switch::Debug, .. } => options.debug,
        GroupDecision::AllowWhen { .. }
        | GroupDecision::Refuse { .. }
        | GroupDecision::AlwaysRefuse { .. } => false,
    };
    match (allows, group.entries.iter().all(|entry| entry.rules.is_empty())) {
        (true, _) => "allow",
        (false, true) => "refuse",
        (false, false) => "by argument",
    }
}
