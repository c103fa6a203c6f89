//! The filter every sandboxed command gets unless its policy brings its own list: an allow-list whose
//! content and reasons are in `resources/seccomp/baseline.txt`. It must never let a number through
//! that the file does not name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::groups::{BASELINE, Group, Switch, rules_of};
use crate::{Action, Arch, FilterSpec, Rule};

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
}

impl BaselineOptions {
    /// Everything off.
    pub fn new(arch: Arch) -> Self {
        Self {
            arch,
            debug: false,
            refuse_setid_modes: false,
            deny_inet: false,
            deny_unix: false,
            deny_others: false,
            deny_fork: false,
        }
    }

    pub(crate) fn is_on(&self, switch: Switch) -> bool {
        match switch {
            Switch::Debug => self.debug,
            Switch::RefuseSetidModes => self.refuse_setid_modes,
            Switch::DenyInet => self.deny_inet,
            Switch::DenyUnix => self.deny_unix,
            Switch::DenyOthers => self.deny_others,
            Switch::DenyFork => self.deny_fork,
        }
    }
}

/// The groups in the order of the file.
pub fn groups() -> &'static [Group] {
    BASELINE
}

/// Calls newer than the tables answer ENOSYS, as on an older kernel, so that programs fall back.
pub fn spec(options: &BaselineOptions) -> FilterSpec {
    FilterSpec {
        arch: options.arch,
        default: Action::Errno(ENOSYS),
        rules: rules_of(BASELINE, options),
    }
}

/// What the baseline says to one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    pub decision: Decision,
    pub group: &'static str,
    pub reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    Allow,
    /// It depends on the arguments.
    Conditional,
    Refuse {
        errno: u16,
    },
}

/// `None` for a name the architecture does not have.
pub fn verdict(name: &str, options: &BaselineOptions) -> Option<Verdict> {
    BASELINE.iter().find_map(|group| {
        let entry = group.entries.iter().find(|entry| entry.name == name)?;
        let number = entry.number(options.arch)?;
        let rules: Vec<Rule> =
            entry.rules(number, group.decision.action(options), options).collect();
        Some(Verdict { decision: decision(&rules), group: group.name, reason: group.reason })
    })
}

/// What the rules of one call amount to.
fn decision(rules: &[Rule]) -> Decision {
    match rules {
        [Rule { conditions, action, .. }, ..] if conditions.is_empty() => match action {
            Action::Allow => Decision::Allow,
            Action::Errno(errno) => Decision::Refuse { errno: *errno },
            _ => Decision::Conditional,
        },
        _ => Decision::Conditional,
    }
}

/// A summary for people: how many calls fall on each side, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    pub allowed: usize,
    pub conditional: usize,
    pub refused: usize,
    pub groups: Vec<DescribedGroup>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedGroup {
    pub name: &'static str,
    pub reason: &'static str,
    /// `Conditional` also where its calls differ.
    pub decision: Decision,
    /// The calls of this architecture.
    pub syscalls: Vec<&'static str>,
}

pub fn describe(options: &BaselineOptions) -> Description {
    let mut description =
        Description { allowed: 0, conditional: 0, refused: 0, groups: Vec::new() };
    for group in BASELINE {
        let fallback = group.decision.action(options);
        let mut syscalls = Vec::new();
        let mut decisions = Vec::new();
        for entry in group.entries {
            let Some(number) = entry.number(options.arch) else { continue };
            let rules: Vec<Rule> = entry.rules(number, fallback, options).collect();
            let decision = decision(&rules);
            match decision {
                Decision::Allow => description.allowed += 1,
                Decision::Conditional => description.conditional += 1,
                Decision::Refuse { .. } => description.refused += 1,
            }
            syscalls.push(entry.name);
            decisions.push(decision);
        }
        let Some(first) = decisions.first() else { continue };
        let agreed = decisions.iter().all(|decision| decision == first);
        let decision = if agreed { *first } else { Decision::Conditional };
        let Group { name, reason, .. } = *group;
        description.groups.push(DescribedGroup { name, reason, decision, syscalls });
    }
    description
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { allowed, conditional, refused, groups } = self;
        write!(f, "{allowed} system calls allowed, {conditional} depending on their arguments, ")?;
        write!(f, "{refused} refused; newer ones answer ENOSYS")?;
        for group in groups {
            let word = match group.decision {
                Decision::Allow => "allow",
                Decision::Conditional => "partly",
                Decision::Refuse { .. } => "refuse",
            };
            write!(f, "\n  {word:6} {} ({}): {}", group.name, group.syscalls.len(), group.reason)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
