//! The filter that a policy asks for: the baseline, or the baseline restricted by the policy's own list. The
//! specification for the kernel and the explanation for people come from the same decisions.

use serde::Serialize;

use crate::baseline::ENOSYS;
use crate::custom::{Change, Decided, List, known_name};
use crate::groups::{BASELINE, Entry, EntryRule, Group, Switch};
use crate::{Arch, BaselineOptions, CallAnswer, Error, FilterSpec, ListMode, Notice, Refusal};
use crate::{SeccompData, table};

/// Calls newer than the tables fail with ENOSYS, as on an older kernel, so that programs fall back.
const UNKNOWN: CallAnswer = CallAnswer::Refuse(Refusal { errno: ENOSYS, notice: Notice::Quiet });

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    options: BaselineOptions,
    list: Option<List>,
}

impl Profile {
    pub fn baseline(options: BaselineOptions) -> Self {
        Self { options, list: None }
    }

    pub fn with_list<Name: AsRef<str>>(
        options: BaselineOptions,
        mode: ListMode,
        names: impl IntoIterator<Item = Name>,
    ) -> Result<Self, Error> {
        let list = List::new(mode, names)?;
        for group in BASELINE {
            for entry in group.entries {
                list.check(group, entry, &options)?;
            }
        }
        Ok(Self { options, list: Some(list) })
    }

    /// The same policy on another architecture.
    pub fn on(self, arch: Arch) -> Self {
        Self { options: BaselineOptions { arch, ..self.options }, ..self }
    }

    pub fn arch(&self) -> Arch {
        self.options.arch
    }

    pub fn spec(&self) -> FilterSpec {
        let mut rules = Vec::with_capacity(512);
        for group in BASELINE {
            for entry in group.entries {
                let Some(syscall) = entry.number(self.options.arch) else { continue };
                let (in_force, _) = self.in_force(group, entry);
                rules.extend(in_force.map(|rule| rule.of_call(syscall)));
            }
        }
        FilterSpec::new(self.options.arch, UNKNOWN, rules)
    }

    /// How a call of this name is answered, and why.
    pub fn explain(&self, name: &str) -> Result<Explanation, Error> {
        let name = known_name(name)?;
        let decided = BASELINE.iter().find_map(|group| {
            let entry = group.entries.iter().find(|entry| entry.name == name)?;
            Some(self.explanation(group, entry))
        });
        // The build script checks that every name is decided.
        decided.ok_or_else(|| Error::UnknownSyscall { name: name.to_owned(), nearest: None })
    }

    /// The same by number; `None` if the tables do not contain it.
    pub fn explain_number(&self, number: u32) -> Option<Explanation> {
        self.explain(table::name(self.options.arch, number)?).ok()
    }

    /// The option that the rule for this call depends on; `None` if the rule is unconditional.
    pub fn switch_behind(&self, call: &SeccompData) -> Option<Switch> {
        let name = table::name(self.options.arch, call.nr)?;
        BASELINE.iter().find_map(|group| {
            let entry = group.entries.iter().find(|entry| entry.name == name)?;
            let (mut in_force, _) = self.in_force(group, entry);
            in_force.find(|rule| rule.conditions.iter().all(|test| test.holds(&call.args)))?.when
        })
    }

    /// Every call of every group, in the order of the file.
    pub fn explanations(&self) -> impl Iterator<Item = Explanation> {
        BASELINE.iter().flat_map(move |group| {
            group.entries.iter().map(move |entry| self.explanation(group, entry))
        })
    }

    fn explanation(&self, group: &Group, entry: &Entry) -> Explanation {
        let (in_force, because) = self.in_force(group, entry);
        let mut switches = Vec::new();
        let mut rules = Vec::new();
        for rule in in_force {
            switches.extend(rule.when.filter(|switch| !switches.contains(switch)));
            rules.push(ExplainedRule { when: rule.words, answer: rule.answer });
        }
        Explanation {
            name: entry.name,
            number: entry.number(self.options.arch),
            verdict: CallVerdict::of(&rules),
            group: group.name,
            reason: group.reason,
            list: because,
            switches,
            rules,
        }
    }

    /// The rules for one call after the list was applied, and the list's part in the decision.
    fn in_force(
        &self,
        group: &Group,
        entry: &Entry,
    ) -> (impl Iterator<Item = EntryRule>, Option<&'static str>) {
        let Decided { change, because } = match &self.list {
            Some(list) => list.decide(group, entry, &self.options),
            None => Decided { change: Change::Keeps, because: None },
        };
        let rules = entry
            .in_force(group.decision, &self.options)
            .map(move |rule| EntryRule { answer: change.applied_to(rule.answer), ..rule });
        (rules, because)
    }
}

/// Why a call is answered as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub name: &'static str,
    /// `None` where the architecture has no such call.
    pub number: Option<u32>,
    pub verdict: CallVerdict,
    /// The group of the baseline, and its reason.
    pub group: &'static str,
    pub reason: &'static str,
    /// The part of the policy's own list in the decision.
    pub list: Option<&'static str>,
    /// The options that the rules depend on.
    pub switches: Vec<Switch>,
    /// The first that holds wins; the last one always holds.
    pub rules: Vec<ExplainedRule>,
}

/// A summary of the rules of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CallVerdict {
    Allowed,
    Refused,
    /// The broker performs it, if its own rules allow it.
    Brokered,
    ByArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedRule {
    /// The conditions in words; empty where there are none.
    pub when: &'static str,
    pub answer: CallAnswer,
}

impl CallVerdict {
    fn of(rules: &[ExplainedRule]) -> Self {
        let each = |rule: &ExplainedRule| match rule.answer {
            CallAnswer::Allow => Self::Allowed,
            CallAnswer::Refuse(_) | CallAnswer::KillProcess => Self::Refused,
            CallAnswer::Broker => Self::Brokered,
        };
        let Some(first) = rules.first().map(each) else { return Self::Refused };
        if rules.iter().all(|rule| each(rule) == first) { first } else { Self::ByArgument }
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
