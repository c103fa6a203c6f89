//! The shape of the rule files in `resources/seccomp`, and their content as static data made by the
//! build script. What a group decides is in the files, with its reason; nothing is decided here.

use serde::Serialize;

use crate::{Action, Arch, Arg, BaselineOptions, Condition, Rule, Test, Width};

include!(concat!(env!("OUT_DIR"), "/groups.rs"));

/// System calls that are decided together, for one reason.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    pub name: &'static str,
    pub reason: &'static str,
    pub decision: GroupDecision,
    pub entries: &'static [Entry],
}

/// What holds for a call of the group once none of its own rules does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GroupDecision {
    Allow,
    /// A custom list may open it.
    Refuse {
        errno: u16,
    },
    /// No list opens it.
    AlwaysRefuse {
        errno: u16,
    },
    AllowWhen {
        switch: Switch,
        errno: u16,
    },
}

/// A part of [`BaselineOptions`] that a rule depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Switch {
    Debug,
    RefuseSetidModes,
    DenyInet,
    DenyUnix,
    DenyOthers,
    DenyFork,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub name: &'static str,
    #[serde(skip)]
    x86_64: Option<u32>,
    #[serde(skip)]
    aarch64: Option<u32>,
    pub rules: &'static [EntryRule],
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryRule {
    pub when: Option<Switch>,
    pub conditions: &'static [Condition],
    pub action: Action,
}

/// Every rule of these groups that counts under these options.
pub(crate) fn rules_of(groups: &[Group], options: &BaselineOptions) -> Vec<Rule> {
    let mut rules = Vec::with_capacity(512);
    for group in groups {
        let fallback = group.decision.action(options);
        for entry in group.entries {
            if let Some(number) = entry.number(options.arch) {
                rules.extend(entry.rules(number, fallback, options));
            }
        }
    }
    rules
}

impl GroupDecision {
    pub(crate) fn action(self, options: &BaselineOptions) -> Action {
        match self {
            Self::Allow => Action::Allow,
            Self::Refuse { errno } | Self::AlwaysRefuse { errno } => Action::Errno(errno),
            Self::AllowWhen { switch, .. } if options.is_on(switch) => Action::Allow,
            Self::AllowWhen { errno, .. } => Action::Errno(errno),
        }
    }
}

impl Entry {
    /// `None` where the architecture has no such call.
    pub fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }

    /// The rules that count under these options, closed by `fallback`.
    pub(crate) fn rules(
        &self,
        syscall: u32,
        fallback: Action,
        options: &BaselineOptions,
    ) -> impl Iterator<Item = Rule> {
        let closing = EntryRule { when: None, conditions: &[], action: fallback };
        let in_force = |rule: &EntryRule| rule.when.is_none_or(|switch| options.is_on(switch));
        self.rules.iter().copied().filter(in_force).chain([closing]).map(move |rule| Rule {
            syscall,
            conditions: rule.conditions.to_vec(),
            action: rule.action,
        })
    }
}
