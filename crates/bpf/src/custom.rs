//! A policy's own list of system calls. A list can tighten the baseline and open what the baseline refuses only by
//! default. It must never open what the baseline always refuses, nor remove a condition on arguments.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::baseline::ENOSYS;
use crate::groups::{Entry, Group, GroupDecision};
use crate::{Arch, BaselineOptions, CallAnswer, Error, Notice, Refusal, table};

const EPERM: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ListMode {
    /// Only the named calls.
    Whitelist,
    /// All calls but the named ones and those that are always refused. Numbers newer than the tables still fail with
    /// ENOSYS, since no list could name them.
    Blacklist,
}

/// A name that only the other architecture has is accepted and changes nothing, so that one policy works on both. A
/// white list also accepts `clone3`, which still fails with ENOSYS: C libraries then fall back to `clone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    mode: ListMode,
    names: BTreeSet<&'static str>,
}

/// How a list changes the baseline's rules for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Keeps,
    Opens,
    /// Refuses what the rules would allow. What they refuse keeps its errno and its notice.
    Closes,
}

pub(crate) struct Decided {
    pub(crate) change: Change,
    /// The list's part in the decision, in words.
    pub(crate) because: Option<&'static str>,
}

impl List {
    pub(crate) fn new<Name: AsRef<str>>(
        mode: ListMode,
        names: impl IntoIterator<Item = Name>,
    ) -> Result<Self, Error> {
        let names = names.into_iter().map(|name| known_name(name.as_ref()));
        Ok(Self { mode, names: names.collect::<Result<_, Error>>()? })
    }

    /// A white list that names a call which is never allowed is an error; ignoring the name would hide a mistake.
    pub(crate) fn check(
        &self,
        group: &Group,
        entry: &Entry,
        options: &BaselineOptions,
    ) -> Result<(), Error> {
        let asks = self.mode == ListMode::Whitelist && self.names.contains(entry.name);
        let may_be_named = match group.decision.answer(options) {
            CallAnswer::Allow | CallAnswer::Broker => true,
            // Callers fall back to another call.
            CallAnswer::Refuse(Refusal { errno: ENOSYS, .. }) => true,
            _ => {
                matches!(group.decision, GroupDecision::Refuse(_))
                    || passes_sometimes(group, entry, options)
            }
        };
        if !asks || may_be_named {
            return Ok(());
        }
        let Group { name: group, reason, .. } = *group;
        Err(Error::AlwaysRefused { name: entry.name.to_owned(), group, reason })
    }

    pub(crate) fn decide(
        &self,
        group: &Group,
        entry: &Entry,
        options: &BaselineOptions,
    ) -> Decided {
        let is_named = self.names.contains(entry.name);
        let because = match (self.mode, is_named) {
            (ListMode::Whitelist, true) => "the policy's list of allowed calls names it",
            (ListMode::Whitelist, false) => "the policy's list of allowed calls does not name it",
            (ListMode::Blacklist, true) => "the policy's list of refused calls names it",
            (ListMode::Blacklist, false) => "the policy's list of refused calls does not name it",
        };
        let opens = is_named == (self.mode == ListMode::Whitelist);
        let refused_by_default = matches!(group.decision, GroupDecision::Refuse(_));
        let passes = passes_sometimes(group, entry, options);
        let (change, because) = match (opens, refused_by_default, passes) {
            (true, true, _) => (Change::Opens, Some(because)),
            (true, false, true) => (Change::Keeps, Some(because)),
            (false, _, true) => (Change::Closes, Some(because)),
            (_, _, false) => (Change::Keeps, None),
        };
        Decided { change, because }
    }
}

impl Change {
    pub(crate) fn applied_to(self, answer: CallAnswer) -> CallAnswer {
        match (self, answer) {
            (Self::Opens, _) => CallAnswer::Allow,
            (Self::Closes, CallAnswer::Allow | CallAnswer::Broker) => {
                CallAnswer::Refuse(Refusal { errno: EPERM, notice: Notice::Logged })
            }
            (Self::Keeps | Self::Closes, answer) => answer,
        }
    }
}

/// Whether the baseline allows any call of this name.
fn passes_sometimes(group: &Group, entry: &Entry, options: &BaselineOptions) -> bool {
    entry
        .in_force(group.decision, options)
        .any(|rule| matches!(rule.answer, CallAnswer::Allow | CallAnswer::Broker))
}

/// The kernel's name of a call that at least one architecture has.
pub fn known_name(name: &str) -> Result<&'static str, Error> {
    // `umount` is the C function; on these architectures the kernel has only `umount2`.
    let kernel_name = if name == "umount" { "umount2" } else { name };
    [Arch::X86_64, Arch::Aarch64]
        .into_iter()
        .find_map(|arch| table::name(arch, table::number(arch, kernel_name)?))
        .ok_or_else(|| Error::UnknownSyscall {
            name: name.to_owned(),
            nearest: table::nearest(name),
        })
}

#[cfg(test)]
#[path = "custom_tests.rs"]
mod tests;
