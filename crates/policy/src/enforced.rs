//! Settings that this version cannot enforce. A run that uses one is refused, so that nothing is silently
//! ignored.
//!
//! Remove an entry when the key is enforced; nothing else has to change. Limits must never be listed here:
//! whether one can be enforced depends on the host, and the plan reports it.

use crate::diagnostic::{Diagnostic, Problem};
use crate::merge::stack::Stack;
use crate::merge::{Merged, Subject};
use crate::model::{NetworkMode, Policy};
use crate::presets::Preset;

struct Unenforced {
    key: &'static str,
    /// Whether the policy asks for something that is not enforced.
    asked: fn(&Policy) -> bool,
    why: &'static str,
    instead: &'static str,
}

#[rustfmt::skip] // A table.
const UNENFORCED: &[Unenforced] = &[
    Unenforced {
        key: "process.uid", asked: |p| p.process.uid.is_some(),
        why: "the user id inside cannot be chosen yet", instead: "remove the key",
    },
    Unenforced {
        key: "process.gid", asked: |p| p.process.gid.is_some(),
        why: "the group id inside cannot be chosen yet", instead: "remove the key",
    },
    Unenforced {
        key: "network.maxConnections", asked: |p| p.network.max_connections.is_some() && matches!(p.network.mode, NetworkMode::Nat | NetworkMode::Host),
        why: "only the proxy counts connections", instead: "use `network.mode: proxy`, or remove the key",
    },
    Unenforced {
        key: "network.maxBytes", asked: |p| p.network.max_bytes.is_some() && matches!(p.network.mode, NetworkMode::Nat | NetworkMode::Host),
        why: "only the proxy counts bytes", instead: "use `network.mode: proxy`, or remove the key",
    },
    Unenforced {
        key: "network.maxQueries", asked: |p| p.network.max_queries.is_some() && matches!(p.network.mode, NetworkMode::Nat | NetworkMode::Host),
        why: "only the proxy's resolver counts look-ups", instead: "use `network.mode: proxy`, or remove the key",
    },
];

/// Everything in the merged policy that this version cannot enforce.
pub fn not_enforced(merged: &Merged) -> Vec<Diagnostic> {
    let complaint = |entry: &Unenforced| {
        let setting = merged.settings.get(entry.key)?;
        let message = format!("`{}` is not enforced in this version: {}", entry.key, entry.why);
        let problem = Diagnostic::new(Problem::NotEnforced, &setting.origin, entry.key, message);
        Some(problem.suggest(entry.instead))
    };
    let found = asked_of(merged).filter_map(complaint);
    found.chain(merged.refused.iter().cloned()).collect()
}

fn asked_of(merged: &Merged) -> impl Iterator<Item = &'static Unenforced> {
    UNENFORCED.iter().filter(|entry| (entry.asked)(&merged.policy))
}

impl Preset {
    /// The keys because of which this version refuses a run with this preset.
    pub fn not_enforced(&self) -> Vec<&'static str> {
        let subject = Subject::Run;
        let mut stack = Stack::new(&subject);
        stack.built_in();
        stack.shipped(self.name);
        stack.hold_to_maximum();
        let merged = stack.finish();
        merged.map(|merged| asked_of(&merged).map(|entry| entry.key).collect()).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "enforced_tests.rs"]
mod tests;
