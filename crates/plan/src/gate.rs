//! Where a path that is missing inside may be asked about (GATE-1), and what never is.
//!
//! Asking only widens the view: nothing here holds anything back. What is asked about in red, or not at all, is
//! said by name and place; what may be granted in the end is the gate's part.

use crate::denied::{Class, Denied};
use crate::dotenv::is_dotenv;
use crate::facts::HostFacts;
use crate::host::Host;
use crate::lists::{self, Listed};
use crate::model::{Gate, MountOp, Nature};
use crate::own;
use crate::paths::Scope;
use palisade_policy::model::{Mode, Policy, View};
use std::path::{Path, PathBuf};

/// Questions that are open at once. A person answers none of more than this.
const MOST_QUESTIONS: usize = 256;

/// `None` where nothing is asked.
pub(crate) fn choose(
    policy: &Policy,
    facts: &HostFacts,
    host: &Host<'_>,
    mounts: &[MountOp],
    denied: &Denied,
) -> Option<Gate> {
    if policy.mode != Mode::Dynamic || policy.view != View::Host {
        return None;
    }
    let hard = |class: Class| matches!(class, Class::Asked | Class::Own);
    let never = own::OWN_AREAS.into_iter().map(PathBuf::from);
    let (homes, secrets) = if policy.filesystem.hide_secrets {
        (homes(facts, host), secrets(denied, facts))
    } else {
        (Vec::new(), Vec::new())
    };
    Some(Gate {
        grounds: grounds(mounts, host),
        never: never.chain(denied.of(hard)).collect(),
        secrets,
        homes,
        mounted: mounts.iter().filter(|op| is_mounted(op)).map(|op| op.target().into()).collect(),
        executes: policy.process.allow_exec && policy.process.allowed_executables.is_empty(),
        on_ask: policy.on_ask,
        ask_timeout_ms: policy.ask_timeout,
        most_questions: MOST_QUESTIONS,
        known_callers: true,
    })
}

impl Gate {
    /// Of something on the host, by its real path.
    pub fn nature(&self, path: &Path) -> Nature {
        let is_never = self.never.iter().any(|never| path.starts_with(never));
        if is_never || self.is_listed(path, |listed| listed.has("unasked")) {
            Nature::Never
        } else if self.is_secret(path) {
            Nature::Secret
        } else {
            Nature::Ordinary
        }
    }

    /// Whether a directory holds, or may come to hold, what its whole tree must not show or cover.
    pub fn holds_hidden(&self, directory: &Path) -> bool {
        let listed = [&self.never, &self.secrets, &self.mounted];
        let mut hidden = listed.into_iter().flatten();
        let is_above_home = self.homes.iter().any(|home| home.starts_with(directory));
        // Asked while somebody waits: for each home once, not for each name in each home.
        let below_homes = self.below_homes(directory);
        let is_above_name = |listed: &Listed| match listed.name.strip_prefix("~/") {
            Some(name) => {
                is_above_home || below_homes.iter().any(|rest| Path::new(name).starts_with(rest))
            }
            None => !self.homes.is_empty() && Path::new(listed.name).starts_with(directory),
        };
        hidden.any(|path| path.starts_with(directory)) || lists::SECRETS.iter().any(is_above_name)
    }

    /// Also what appears later: the shipped names count in every home directory.
    fn is_secret(&self, path: &Path) -> bool {
        if self.secrets.iter().any(|secret| path.starts_with(secret)) {
            return true;
        }
        !self.homes.is_empty()
            && (path.file_name().is_some_and(is_dotenv) || self.is_listed(path, |_| true))
    }

    fn is_listed(&self, path: &Path, is_meant: impl Fn(&Listed) -> bool) -> bool {
        if self.homes.is_empty() {
            return false;
        }
        let below_homes = self.below_homes(path);
        let mut meant = lists::SECRETS.iter().filter(|listed| is_meant(listed));
        meant.any(|listed| match listed.name.strip_prefix("~/") {
            Some(name) => below_homes.iter().any(|rest| is_named(name, rest)),
            None => is_named(listed.name, path),
        })
    }

    fn below_homes<'p>(&self, path: &'p Path) -> Vec<&'p Path> {
        self.homes.iter().filter_map(|home| path.strip_prefix(home).ok()).collect()
    }
}

/// Whether a path is what a list's line means, or lies below it.
fn is_named(name: &str, path: &Path) -> bool {
    let Some(start) = name.strip_suffix('*') else { return path.starts_with(name) };
    let (dir, start) = start.rsplit_once('/').unwrap_or(("", start));
    let dir = if name.starts_with('/') && dir.is_empty() { "/" } else { dir };
    path.strip_prefix(dir).is_ok_and(|rest| {
        let first = rest.components().next().map(|part| part.as_os_str().as_encoded_bytes());
        first.is_some_and(|first| first.starts_with(start.as_bytes()))
    })
}

/// Our own scaffolding: what is missing there was not granted.
fn grounds(mounts: &[MountOp], host: &Host<'_>) -> Vec<PathBuf> {
    let is_ground = |op: &&MountOp| match op {
        MountOp::Frame { .. } => true,
        MountOp::Tmpfs { target, .. } => Some(target.as_path()) == host.home(),
        _ => false,
    };
    let on_root = mounts.iter().filter(is_ground).map(|op| op.target().to_owned());
    std::iter::once(PathBuf::from("/")).chain(on_root).collect()
}

/// Directories and links are parts of the scaffolding itself.
fn is_mounted(op: &MountOp) -> bool {
    !matches!(op, MountOp::Dir { .. } | MountOp::Symlink { .. })
}

fn homes(facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = host.home().map(Path::to_owned).into_iter().collect();
    homes.extend(facts.homes.iter().filter(|home| Some(home.as_path()) != host.home()).cloned());
    homes
}

/// What is there now, at every place where it shows, and what a variable names.
fn secrets(denied: &Denied, facts: &HostFacts) -> Vec<PathBuf> {
    let scope = Scope::new(facts);
    let by_variable = lists::SECRETS.iter().filter(|listed| listed.name.starts_with('$'));
    let by_variable = by_variable.filter_map(|listed| scope.listed(listed.name));
    let known = denied.of(|class| matches!(class, Class::Secret | Class::RootOnly));
    known.chain(by_variable).collect()
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
