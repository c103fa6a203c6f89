//! A policy's own list of names. A list can tighten the baseline and open what it merely refuses by
//! default; it can never open what the baseline always refuses, nor lift a condition on arguments.

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
    /// All calls but the named ones and those that are always refused. Numbers newer than the tables
    /// still answer ENOSYS: nobody could have named them.
    Blacklist,
}

/// A name that only the other architecture has is accepted and changes nothing: one policy serves
/// both. In a white list `clone3` is accepted too and still answers ENOSYS, on which C libraries fall
/// back to `clone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    mode: ListMode,
    names: BTreeSet<&'static str>,
}

/// What a list makes of the baseline's rules for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Keeps,
    Opens,
    /// Refuses what they would let through. What they refuse keeps its errno and its mark.
    Closes,
}

pub(crate) struct Decided {
    pub(crate) change: Change,
    /// The list's part in it, for people.
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

    /// A white list that asks for what is never given is a mistake, and not silently less.
    pub(crate) fn check(
        &self,
        group: &Group,
        entry: &Entry,
        options: &BaselineOptions,
    ) -> Result<(), Error> {
        let asks = self.mode == ListMode::Whitelist && self.names.contains(entry.name);
        let may_be_named = match group.decision.answer(options) {
            CallAnswer::Allow | CallAnswer::Broker => true,
            // Callers know how to do without.
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

/// Whether the baseline lets some call of this name through.
fn passes_sometimes(group: &Group, entry: &Entry, options: &BaselineOptions) -> bool {
    entry
        .in_force(group.decision, options)
        .any(|rule| matches!(rule.answer, CallAnswer::Allow | CallAnswer::Broker))
}

/// The kernel's name of a call that one of the architectures has.
pub fn known_name(name: &str) -> Result<&'static str, Error> {
    // The name of the C function; the kernel has had only `umount2` on these architectures.
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
