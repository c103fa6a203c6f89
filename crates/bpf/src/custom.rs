//! Filters from a policy's own list of names. A list can tighten the baseline and open what it merely
//! refuses by default; it can never open what the baseline always refuses, nor lift a condition on
//! arguments.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::baseline::ENOSYS;
use crate::groups::{BASELINE, Entry, Group, GroupDecision};
use crate::{Action, Arch, BaselineOptions, Error, FilterSpec, table};

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
pub fn custom<Name: AsRef<str>>(
    mode: ListMode,
    names: impl IntoIterator<Item = Name>,
    options: &BaselineOptions,
) -> Result<FilterSpec, Error> {
    let named = names
        .into_iter()
        .map(|name| known_name(name.as_ref()))
        .collect::<Result<BTreeSet<&'static str>, Error>>()?;
    let mut rules = Vec::with_capacity(512);
    for group in BASELINE {
        for entry in group.entries {
            let decided = decide(mode, named.contains(entry.name), group, entry, options)?;
            let Some(number) = entry.number(options.arch) else { continue };
            match decided {
                Decided::ByBaseline => {
                    let fallback = group.decision.action(options);
                    rules.extend(entry.rules(number, fallback, options));
                }
                Decided::As(action) => {
                    rules.push(crate::Rule { syscall: number, conditions: Vec::new(), action });
                }
            }
        }
    }
    Ok(FilterSpec { arch: options.arch, default: Action::Errno(ENOSYS), rules })
}

enum Decided {
    ByBaseline,
    As(Action),
}

fn decide(
    mode: ListMode,
    is_named: bool,
    group: &Group,
    entry: &Entry,
    options: &BaselineOptions,
) -> Result<Decided, Error> {
    let baseline = group.decision.action(options);
    let refuses_by_default = matches!(group.decision, GroupDecision::Refuse { .. });
    let may_be_named = baseline == Action::Allow
        || baseline == Action::Errno(ENOSYS)
        || entry.rules.iter().any(|rule| rule.action == Action::Allow);
    Ok(match (mode, is_named) {
        (ListMode::Whitelist, true) | (ListMode::Blacklist, false) if refuses_by_default => {
            Decided::As(Action::Allow)
        }
        (ListMode::Whitelist, true) if !may_be_named => {
            return Err(Error::AlwaysRefused {
                name: entry.name.to_owned(),
                group: group.name,
                reason: group.reason,
            });
        }
        (ListMode::Whitelist, true) | (ListMode::Blacklist, false) => Decided::ByBaseline,
        (ListMode::Whitelist, false) | (ListMode::Blacklist, true) => match baseline {
            // Keeps ENOSYS where callers know how to fall back.
            Action::Errno(ENOSYS) => Decided::As(baseline),
            _ => Decided::As(Action::Errno(EPERM)),
        },
    })
}

fn known_name(name: &str) -> Result<&'static str, Error> {
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
