//! What this version can not enforce, as data: asking for it refuses the run, nothing is ignored.
//!
//! When a later version enforces a key, its entry goes; nothing else has to change. Limits are never here:
//! whether somebody can hold one depends on the host, and the plan says so.

use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::layers::{LayerKind, Merged, Subject};
use crate::model::{Mode, NetworkMode, Policy};
use crate::presets::{self, Preset};
use crate::stack::Stack;
use palisade_gate::Effect;
use std::collections::BTreeMap;

struct Unenforced {
    key: &'static str,
    /// Whether the policy asks for something here; "nothing" is always held.
    asked: fn(&Policy) -> bool,
    why: &'static str,
    instead: &'static str,
}

#[rustfmt::skip] // A table.
const UNENFORCED: &[Unenforced] = &[
    Unenforced {
        key: "filesystem.rules", asked: |p| p.mode == Mode::Static && p.filesystem.rules.iter().any(|rule| rule.effect == Effect::Deny),
        why: "in static mode nothing is asked, and what a rule denies would be readable", instead: "use `mode: dynamic`, or `deniedPaths`",
    },
    Unenforced {
        key: "process.uid", asked: |p| p.process.uid.is_some(),
        why: "the user id inside can not be chosen yet", instead: "remove the key",
    },
    Unenforced {
        key: "process.gid", asked: |p| p.process.gid.is_some(),
        why: "the group id inside can not be chosen yet", instead: "remove the key",
    },
    Unenforced {
        key: "network.mode", asked: |p| matches!(p.network.mode, NetworkMode::Proxy | NetworkMode::Nat),
        why: "there is no egress by proxy or NAT yet", instead: "use `network.mode: none`, or `host` with its approval",
    },
    Unenforced {
        key: "network.allowedHosts", asked: |p| !p.network.allowed_hosts.is_empty(),
        why: "hosts are not filtered yet", instead: "remove the list",
    },
    Unenforced {
        key: "network.deniedHosts", asked: |p| !p.network.denied_hosts.is_empty() && p.network.mode != NetworkMode::None,
        why: "hosts are not filtered yet", instead: "use `network.mode: none`",
    },
    Unenforced {
        key: "network.allowedPorts", asked: |p| !p.network.allowed_ports.is_empty(),
        why: "ports are not filtered yet", instead: "remove the list",
    },
    Unenforced {
        key: "network.maxConnections", asked: |p| p.network.max_connections.is_some_and(|most| most > 0 || p.network.mode != NetworkMode::None),
        why: "connections are not counted yet", instead: "remove the key",
    },
];

/// Everything the merged policy asks for that this version can not hold. What a shipped policy asks
/// for is one complaint: nobody can take a key out of it.
pub fn not_enforced(merged: &Merged) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut by_preset: BTreeMap<&str, Vec<&Unenforced>> = BTreeMap::new();
    for entry in asked_of(merged) {
        let Some(setting) = merged.settings.get(entry.key) else { continue };
        match presets::named_by(&setting.origin.file) {
            Some(preset) => by_preset.entry(preset.name).or_default().push(entry),
            None => {
                let message =
                    format!("`{}` is not enforced in this version: {}", entry.key, entry.why);
                let problem =
                    Diagnostic::new(Problem::NotEnforced, &setting.origin, entry.key, message);
                found.push(problem.suggest(entry.instead));
            }
        }
    }
    found.extend(by_preset.into_iter().map(|(name, entries)| unusable(name, &entries, merged)));
    found.extend(merged.refused.iter().cloned());
    found
}

fn asked_of(merged: &Merged) -> impl Iterator<Item = &'static Unenforced> {
    UNENFORCED.iter().filter(|entry| (entry.asked)(&merged.policy))
}

fn unusable(preset: &str, entries: &[&Unenforced], merged: &Merged) -> Diagnostic {
    let wishes: Vec<String> =
        entries.iter().map(|entry| format!("{} (`{}`)", entry.why, entry.key)).collect();
    let origin = Origin { file: presets::file_of(preset).into(), line: 0, column: 0 };
    let message = format!("not usable in this version: {}", wishes.join(", "));
    let is_built_in = entries.iter().any(|entry| {
        let sources = merged.provenance.get(entry.key).and_then(|sources| sources.last());
        sources.is_some_and(|source| source.layer == LayerKind::BuiltIn.name())
    });
    let mend = if is_built_in {
        "leave `--tool` out, and use `--preset minimal` or `--preset strict`"
    } else {
        "use `--preset minimal` or `--preset strict`"
    };
    Diagnostic::new(Problem::NotEnforced, &origin, "", message).suggest(mend)
}

impl Preset {
    /// The keys for which a run under this preset is refused in this version.
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
