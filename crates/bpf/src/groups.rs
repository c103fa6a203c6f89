//! The shape of the rule files in `resources/seccomp`, and their content as static data made by the
//! build script. What a group decides is in the files, with its reason; nothing is decided here.

use serde::Serialize;

use crate::{
    Arch, Arg, BaselineOptions, Condition, Notice, Refusal, Rule, SyscallAnswer, Test, Width,
};

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
    Refuse(Refusal),
    /// No list opens it.
    AlwaysRefuse(Refusal),
    AllowWhen {
        switch: Switch,
        otherwise: Refusal,
    },
}

/// A part of [`BaselineOptions`] that a rule depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Switch {
    Debug,
    RefuseSetidModes,
    MapRootOwner,
    DenyInet,
    DenyUnix,
    DenyOthers,
    DenyFork,
    PinCpus,
    DenyAnonymousPrograms,
    GuardWrites,
    GatePaths,
    AskChanges,
    GuardExec,
    WatchExec,
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
    /// The conditions, for people; empty where there are none.
    pub words: &'static str,
    pub answer: SyscallAnswer,
}

/// Every rule of these groups that counts under these options.
pub(crate) fn rules_of(groups: &[Group], options: &BaselineOptions) -> Vec<Rule> {
    let mut rules = Vec::new();
    for group in groups {
        for entry in group.entries {
            if let Some(syscall) = entry.number(options.arch) {
                let in_force = entry.in_force(group.decision, options);
                rules.extend(in_force.map(|rule| rule.of_call(syscall)));
            }
        }
    }
    rules
}

impl EntryRule {
    pub(crate) fn of_call(self, syscall: u32) -> Rule {
        Rule { syscall, conditions: self.conditions.to_vec(), answer: self.answer }
    }
}

impl GroupDecision {
    pub(crate) fn answer(self, options: &BaselineOptions) -> SyscallAnswer {
        match self {
            Self::Allow => SyscallAnswer::Allow,
            Self::Refuse(refusal) | Self::AlwaysRefuse(refusal) => SyscallAnswer::Refuse(refusal),
            Self::AllowWhen { switch, .. } if options.is_on(switch) => SyscallAnswer::Allow,
            Self::AllowWhen { otherwise, .. } => SyscallAnswer::Refuse(otherwise),
        }
    }

    fn switch(self) -> Option<Switch> {
        match self {
            Self::AllowWhen { switch, .. } => Some(switch),
            Self::Allow | Self::Refuse(_) | Self::AlwaysRefuse(_) => None,
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

    /// The rules that count under these options, up to the first that always holds; closed by the
    /// decision of the group.
    pub(crate) fn in_force(
        &self,
        decision: GroupDecision,
        options: &BaselineOptions,
    ) -> impl Iterator<Item = EntryRule> {
        let (when, answer) = (decision.switch(), decision.answer(options));
        let closing = EntryRule { when, conditions: &[], words: "", answer };
        let counts = |rule: &EntryRule| rule.when.is_none_or(|switch| options.is_on(switch));
        let mut closed = false;
        self.rules.iter().copied().filter(counts).chain([closing]).take_while(move |rule| {
            let reached = !closed;
            closed = rule.conditions.is_empty();
            reached
        })
    }
}
