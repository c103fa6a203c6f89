//! The differences between two merged policies (POL-5).

use crate::keys;
use crate::merge::Merged;
use crate::merge::tighten::{self, Direction, SyscallRule};
use crate::settings::{Settings, Value, word};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyChange {
    pub key: String,
    /// Empty if the key had no value.
    pub from: String,
    pub to: String,
    pub direction: Direction,
}

/// Key by key, in the order of the key table.
pub fn diff(from: &Merged, to: &Merged) -> Vec<PolicyChange> {
    let mut changes = Vec::new();
    for key in keys::KEYS {
        let value = |merged: &Merged| merged.settings.get(key.path).map(|s| s.value.clone());
        let (old, new) = (value(from), value(to));
        let direction = if keys::is_syscall_rule(key.path) {
            (old != new).then(|| syscalls(&from.settings, &to.settings)).flatten()
        } else {
            tighten::direction(key, old.as_ref(), new.as_ref())
        };
        if let Some(direction) = direction {
            let show = |value: Option<Value>| value.map_or(String::new(), |v| v.show(key.kind));
            changes.push(PolicyChange {
                key: key.path.to_owned(),
                from: show(old),
                to: show(new),
                direction,
            });
        }
    }
    changes
}

fn syscalls(from: &Settings, to: &Settings) -> Option<Direction> {
    fn rule(settings: &Settings) -> Option<SyscallRule<'_>> {
        let list = &settings.get("syscalls.syscalls")?.value;
        Some(SyscallRule { mode: word(settings, "syscalls.mode")?, list })
    }
    tighten::syscalls(rule(from)?, rule(to)?)
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
